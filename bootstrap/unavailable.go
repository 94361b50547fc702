package bootstrap

import (
	"fmt"
	"maps"
	"slices"
)

// unavailable returns a sentence for each setting that is valid and has no
// effect in this version, so that nothing is dropped in silence. What a start
// tells by itself is not among them; see withoutEffect.
func unavailable(cfg *Config) []string {
	var notes []string
	say := func(setting, format string, args ...any) {
		notes = append(notes, setting+": "+fmt.Sprintf(format, args...))
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.MCPServers)) {
		if cfg.MCPServers[name].Enabled {
			say("mcp_servers."+name, "MCP servers cannot be used in this version; its tools are off")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Profiles)) {
		if cfg.Profiles[name].ClientTerminal {
			say("profiles."+name+".client_terminal", "commands run here, not in the client's terminal, in this version")
		}
	}
	if cfg.ACP.ExperimentalV2 {
		say("acp.experimental_v2", "this version speaks version 1 of the protocol only")
	}
	notes = append(notes, unknownTools(cfg)...)
	slices.Sort(notes)
	return notes
}

// withoutEffect returns what "config validate" says of a configuration: that
// of unavailable, and what a start would only tell when it is too late.
func withoutEffect(cfg *Config) []string {
	notes := unavailable(cfg)
	if why := noSuchStore(cfg.Store.Driver); why != "" {
		effect := "sessions will not be saved"
		if cfg.Store.Required {
			effect = "berth will not start, for store.required is set"
		}
		notes = append(notes, why+"; "+effect)
	}
	return notes
}

// noSuchStore says that a store cannot be had in this version, or "".
func noSuchStore(driver string) string {
	switch driver {
	case "sqlite", "memory":
		return ""
	}
	return fmt.Sprintf("store.driver: %q is not available in this version; use sqlite or memory", driver)
}
