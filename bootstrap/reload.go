package bootstrap

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// Reload takes agents, providers, profiles and the log's level from another
// configuration. No connection and no session is dropped; a turn that runs ends
// with the agent and the model it began with, while its commands and paths
// follow the new profile at once. Ports that were given by an option stay.
//
// It returns the settings that took effect and those that would need another
// start. When it fails, everything is as it was.
func (a *App) Reload(cfg *Config) (taken, left []string, err error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	if err := checkProfiles(cfg); err != nil {
		return nil, nil, err
	}
	if models, ok := a.p.Models.(*liveModels); ok {
		next, err := modelsOf(cfg, a.p.Observer)
		if err != nil {
			return nil, nil, err
		}
		// From here on nothing fails. What uses the old models has its own hold
		// on them; only their idle connections are closed.
		defer models.now.Swap(next).Close()
	}
	before := a.now.config()
	a.now.set(cfg)
	_ = a.now.log.level(cfg.LogLevel(a.opts.daemon)) // a valid configuration names one that there is
	if agents, ok := a.p.Agents.(*liveAgents); ok {
		agents.now.Store(agentsOf(cfg, &a.opts))
	}
	for _, key := range cfg.Changed(before) {
		if reloads(key) {
			taken = append(taken, key)
		} else {
			left = append(left, key)
		}
	}
	return taken, left, nil
}

// wholes replaces the settings of an agent, a provider or a profile that is new,
// or is there no more, by its name: most of them are defaults that nobody wrote.
func wholes(keys []string, before, now *Config) []string {
	was, is := entries(before), entries(now)
	var out []string
	for _, key := range keys {
		for name := range was {
			if !is[name] && strings.HasPrefix(key, name+".") {
				key = name + " (removed)"
			}
		}
		for name := range is {
			if !was[name] && strings.HasPrefix(key, name+".") {
				key = name + " (new)"
			}
		}
		if !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// entries are the agents, providers and profiles that a configuration names.
func entries(cfg *Config) map[string]bool {
	all := map[string]bool{}
	for name := range cfg.Agents {
		all["agents."+name] = true
	}
	for name := range cfg.Providers {
		all["providers."+name] = true
	}
	for name := range cfg.Profiles {
		all["profiles."+name] = true
	}
	return all
}

// reloads reports whether a setting takes effect without another start.
func reloads(key string) bool {
	for _, table := range []string{"agents.", "providers.", "profiles."} {
		if strings.HasPrefix(key, table) {
			return true
		}
	}
	return key == "acp.default_agent" || key == "log.level" || strings.HasPrefix(key, "bridge.") // no process of ours keeps those
}

// reload reads the configuration again and tells in the log what came of it.
// A configuration that is not valid changes nothing.
// The log's file is opened again in any case, for what rotates logs.
func (a *App) reload(read func() (*Config, error)) error {
	ctx := context.Background()
	if err := a.now.log.reopen(); err != nil {
		a.p.Observer.Observe(ctx, domain.Trouble{Where: "the log goes on in the file it had", Err: err})
	}
	before := a.now.config()
	cfg, err := read()
	var taken, left []string
	if err == nil {
		taken, left, err = a.Reload(cfg)
	}
	if a.opts.metrics != nil {
		a.opts.metrics.Reloaded(err)
	}
	if err != nil {
		a.p.Observer.Observe(ctx, domain.Trouble{Where: "the configuration was not reloaded; the one before stays", Err: err})
		return err
	}
	if ferr := forgetVariables(cfg.SecretVariables()); ferr != nil {
		a.p.Observer.Observe(ctx, domain.Trouble{Where: keysVisible, Err: ferr})
	}
	said := []string{"the configuration was reloaded; changed: " + some(wholes(taken, before, cfg))}
	if len(left) > 0 {
		said = append(said, "these settings changed and take effect with the next start: "+some(left))
	}
	for _, what := range append(said, append(cfg.Warnings, unavailable(cfg)...)...) {
		a.p.Observer.Observe(ctx, domain.Noted{What: what})
	}
	warnOfLimits(a.p.Agents, a.p.Models, a.p.Observer)
	return nil
}

// keysVisible says what follows when variables cannot be blanked.
const keysVisible = "other programs of this user can see the keys in the environment"

// maxNamed is how many settings a line of the log names.
const maxNamed = 20

// some lists keys, for a line of the log.
func some(keys []string) string {
	switch {
	case len(keys) == 0:
		return "nothing"
	case len(keys) > maxNamed:
		return fmt.Sprintf("%s and %d more", strings.Join(keys[:maxNamed], ", "), len(keys)-maxNamed)
	}
	return strings.Join(keys, ", ")
}
