package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/exec/sandbox"
	"github.com/berth-dev/berth/core/domain"
)

// The states of a Finding.
const (
	FindingOK   = "ok"
	FindingWarn = "warn" // works, with something to know or to mend
	FindingFail = "fail" // does not work
)

// Finding is one thing that Diagnose looked at.
type Finding struct {
	Name   string `json:"name"`  // config, store, agent default, sandbox of profile default, …
	State  string `json:"state"` // ok, warn, fail
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"` // what to do about it
}

// diagnoseLimit bounds a whole diagnosis.
const diagnoseLimit = 30 * time.Second

// Diagnose looks at everything a session needs, in the order in which a
// session needs it, and says how to mend what does not work. It opens the
// session store, and with it creates a missing data directory, and really
// tries the sandbox. Providers are asked for their models, which costs nothing;
// no model is asked.
func Diagnose(ctx context.Context, o LoadOptions, opts ...Option) []Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnoseLimit)
	defer cancel()
	cfg, err := LoadConfig(o)
	if err != nil {
		return []Finding{{Name: "config", State: FindingFail, Detail: err.Error(), Mend: "edit the file, or see docs/configuration.md"}}
	}
	found := []Finding{configFinding(cfg)}
	app, store := diagnoseStore(cfg, opts)
	found = append(found, store)
	if app == nil {
		return found
	}
	defer func() { _ = app.Stop(ctx) }() // a diagnosis has nothing to save
	found = append(found, app.diagnoseAgents(ctx)...)
	found = append(found, app.diagnoseProviders(ctx)...)
	return append(found, app.diagnoseSandbox(ctx)...)
}

func configFinding(cfg *Config) Finding {
	file := filepath.Join(cfg.ConfigDir, "config.toml")
	f := Finding{Name: "config", State: FindingOK, Detail: file}
	notes := append(slices.Clone(cfg.Warnings), unavailable(cfg)...)
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		f.Detail = "no " + file + ": everything has its default"
		notes = unavailable(cfg)
	}
	if len(notes) > 0 {
		told := strings.Join(notes, "; ")
		if !strings.HasPrefix(told, file) { // most notes begin with their place
			told = f.Detail + ": " + told
		}
		f.State, f.Detail = FindingWarn, told
	}
	return f
}

// diagnoseStore opens the store as if it were required, so that its trouble
// is told, and falls back to memory for the rest of the diagnosis.
func diagnoseStore(cfg *Config, opts []Option) (*App, Finding) {
	f := Finding{Name: "store", State: FindingOK, Detail: cfg.SessionStore()}
	strict := *cfg
	strict.Store.Required = true
	strict.Log.Level, strict.Log.File = "off", ""
	app, err := New(&strict, opts...)
	if err == nil {
		if cfg.Store.Driver == "memory" {
			f.State, f.Detail = FindingWarn, "in memory, as configured: sessions end with the process"
		}
		return app, f
	}
	f.State, f.Detail = FindingFail, strings.TrimPrefix(err.Error(), requiredStore)
	f.Mend = "until then sessions live in memory only; docs/reliability.md says what to do with a damaged store"
	strict.Store.Driver, strict.Store.Required = "memory", false
	if app, err = New(&strict, opts...); err != nil {
		f.Detail = err.Error()
		return nil, f
	}
	return app, f
}

// diagnoseAgents says which model each agent would use, and whether it could.
func (a *App) diagnoseAgents(ctx context.Context) []Finding {
	found := make([]Finding, 0, len(a.cfg.Agents))
	for _, alias := range slices.Sorted(maps.Keys(a.cfg.Agents)) {
		f := Finding{Name: "agent " + alias, State: FindingOK}
		agent, _ := a.p.Agents.Agent(alias)
		model, err := a.p.Models.Open(ctx, agent.Model)
		switch {
		case !agent.Enabled:
			f.Detail = "disabled"
		case err != nil:
			f.State, f.Detail = FindingFail, fmt.Sprintf("model %s: %v", agent.Model, err)
		case model.Info().Offline && agent.Model.Provider == offlineModel.Provider:
			f.State, f.Detail = FindingWarn, "the built-in offline model, which is no language model"
			f.Mend = "run: berth login, or set a provider's key, such as ANTHROPIC_API_KEY, or agents." + alias + ".model"
			if names := a.servers(); len(names) > 0 { // its default model need not be there, so none is chosen
				f.Mend = "set agents." + alias + ".model to a model of " + strings.Join(names, " or ") + ": berth models list; or run: berth login"
			}
		default:
			f.Detail = "model " + agent.Model.String()
			if info := a.p.Models.Describe(agent.Model); !info.Offline {
				if notes := disappoints(agent, info); len(notes) > 0 {
					f.State, f.Mend = FindingWarn, strings.Join(notes, "; ")
				}
			}
		}
		found = append(found, f)
	}
	return found
}

// servers are the configured providers that are reached by an address.
func (a *App) servers() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(a.cfg.Providers)), func(name string) bool { return !a.cfg.Providers[name].TakesKey() })
}

// diagnoseSandbox tries the sandbox of each profile that an agent uses.
func (a *App) diagnoseSandbox(ctx context.Context) []Finding {
	byProfile := map[string]string{}
	for alias, agent := range a.cfg.Agents {
		if agent.Enabled {
			byProfile[agent.Profile] = alias
		}
	}
	var found []Finding
	for _, profile := range slices.Sorted(maps.Keys(byProfile)) {
		found = append(found, sandboxFinding(profile, a.cfg.Profiles[profile], a.p.Sandbox.Posture(ctx, byProfile[profile])))
	}
	return found
}

func sandboxFinding(name string, profile ProfileConfig, p domain.Posture) Finding {
	f := Finding{Name: "sandbox of profile " + name, State: FindingWarn, Detail: string(p.Word)}
	if p.Backend != "" {
		f.Detail += ", by " + p.Backend
	}
	if len(p.Lacks) > 0 {
		f.Detail += "; open: " + strings.Join(p.Lacks, ", ")
	}
	f.Mend = p.Reason
	switch p.Word {
	case domain.PostureStrong:
		f.State = FindingOK
	case domain.PostureNone:
		switch {
		case profile.Level == domain.LevelFull:
			f.State, f.Detail = FindingFail, "none, and the profile asks nobody: its sessions are refused"
		case profile.Sandbox != "" && profile.Sandbox != sandbox.Auto:
			f.State, f.Detail = FindingFail, "none: the sandbox that the profile asks for does not work here, and no command is run"
		default:
			f.Detail += "; every command is asked about"
		}
	case domain.PosturePartial, domain.PostureOff:
	}
	return f
}
