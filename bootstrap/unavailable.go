package bootstrap

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unavailable returns a sentence for each setting that is valid and has no
// effect in this version, so that nothing is dropped in silence.
func unavailable(cfg *Config) []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Profiles)) {
		p := cfg.Profiles[name]
		for key, rules := range map[string][]RuleConfig{"deny": p.Deny, "always_ask": p.AlwaysAsk, "auto_approve": p.AutoApprove} {
			for _, r := range rules {
				if strings.Contains(r.Rule, "(") {
					notes = append(notes, fmt.Sprintf("profiles.%s.%s: the rule %q has a pattern; patterns are about commands, which this version cannot run", name, key, r.Rule))
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.MCPServers)) {
		if cfg.MCPServers[name].Enabled {
			notes = append(notes, fmt.Sprintf("mcp_servers.%s: MCP servers cannot be used in this version; its tools are off", name))
		}
	}
	slices.Sort(notes)
	return notes
}
