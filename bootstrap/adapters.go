package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.uber.org/fx"

	"github.com/berth-dev/berth/adapters/fs"
	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/anthropic"
	"github.com/berth-dev/berth/adapters/llm/bedrock"
	"github.com/berth-dev/berth/adapters/llm/gemini"
	"github.com/berth-dev/berth/adapters/llm/offline"
	"github.com/berth-dev/berth/adapters/llm/ollama"
	"github.com/berth-dev/berth/adapters/llm/openai"
	"github.com/berth-dev/berth/adapters/llm/responses"
	"github.com/berth-dev/berth/adapters/llm/scripted"
	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/adapters/observe"
	"github.com/berth-dev/berth/adapters/people"
	"github.com/berth-dev/berth/adapters/sqlite"
	"github.com/berth-dev/berth/adapters/web"
	"github.com/berth-dev/berth/bootstrap/internal/config"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// given returns a constructor that hands out v if there is one, and make's
// own result otherwise.
func given[P comparable](v P, make any) any {
	var none P
	if v == none {
		return make
	}
	return func() P { return v }
}

func newClock(o *options) ports.Clock { return o.clock }

func newIDs(o *options) ports.IDs { return o.ids }

// newLog is the log: to standard error, or to the configured file.
func newLog(lc fx.Lifecycle, cfg *Config, now *current, o *options) (ports.Observer, error) {
	out, file := o.logTo, (*logFile)(nil)
	if cfg.Log.File != "" {
		var err error
		if file, err = openLogFile(cfg.Log.File); err != nil {
			return nil, err
		}
		lc.Append(fx.StopHook(file.Close))
		out = file
	}
	l, err := observe.New(observe.Config{
		Out: out, Level: cfg.LogLevel(o.daemon), JSON: cfg.Log.Format == "json", Secrets: now.secretValues,
	})
	if err != nil {
		return nil, err
	}
	now.log = liveLog{l, file}
	lc.Append(fx.StopHook(l.Close))
	for _, w := range append(slices.Clone(cfg.Warnings), unavailable(cfg)...) {
		l.Log().Warn().Msg(w)
	}
	return l, nil
}

func newAgentsPort(cfg *Config, o *options) ports.Agents {
	a := &liveAgents{}
	a.now.Store(agentsOf(cfg, o))
	return a
}

// agentsOf are the agents of one configuration.
func agentsOf(cfg *Config, o *options) *agents {
	return newAgents(cfg, o.model, func() domain.ModelRef {
		p, _ := cfg.LookupProvider("ollama")
		return findOllama(strings.TrimSuffix(p.BaseURL, "/v1"))
	})
}

func newModels(lc fx.Lifecycle, cfg *Config, obs ports.Observer) (ports.Models, error) {
	models, err := modelsOf(cfg, obs)
	if err != nil {
		return nil, err
	}
	live := &liveModels{}
	live.now.Store(models)
	lc.Append(fx.StopHook(live.Close))
	return live, nil
}

// modelsOf is every provider that is configured, and those that need no
// configuration.
func modelsOf(cfg *Config, obs ports.Observer) (*llm.Models, error) {
	var list []llm.ProviderConfig
	names := slices.Collect(maps.Keys(cfg.Providers))
	for _, t := range config.ProviderTypes() {
		if t.Implicit && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		p, ok := cfg.LookupProvider(name)
		if !ok {
			continue
		}
		list = append(list, providerConfig(p, obs))
	}
	models, err := llm.New(llm.Config{
		Providers: list,
		HTTP:      llm.HTTPConfig{Proxy: http.ProxyFromEnvironment, UserAgent: userAgent()},
	}, openers())
	if err != nil {
		return nil, err
	}
	for _, w := range models.Warnings() {
		obs.Observe(context.Background(), domain.Trouble{Where: w})
	}
	return models, nil
}

// openers are the adapters by the names of config.ProviderType.Wire.
func openers() map[string]llm.Opener {
	return map[string]llm.Opener{
		"anthropic":        anthropic.Opener(),
		"openai-chat":      openai.Opener(),
		"openai-responses": responses.Opener(),
		"openrouter":       openai.OpenRouter(),
		"azure":            openai.Azure(),
		"gemini":           gemini.Opener(),
		"ollama":           ollama.Opener(),
		"bedrock":          bedrock.Opener(),
		"offline":          offline.Opener(),
		"scripted":         scripted.Opener(),
	}
}

// providerConfig hands a provider's settings to the adapter. Secrets are
// revealed when a request is made, not before.
func providerConfig(p config.Provider, obs ports.Observer) llm.ProviderConfig {
	out := llm.ProviderConfig{
		Name: p.Name, Type: p.Wire(), BaseURL: p.BaseURL, Timeout: p.Timeout, MaxRetries: p.MaxRetries,
		Models: make(map[string]llm.ModelFacts, len(p.Models)), Fallback: p.Fallback, CAFile: p.CAFile,
	}
	if p.Script != "" {
		out.BaseURL = "file:" + p.Script
	}
	if p.APIKey.IsSet() || p.NeedsKey() || p.TakesKey() {
		out.APIKey, out.KeyOptional = p.Key, !p.APIKey.IsSet() && !p.NeedsKey()
	}
	if len(p.Headers) > 0 {
		out.Headers = make(map[string]string, len(p.Headers))
		for name, secret := range p.Headers {
			value, err := secret.Reveal()
			if err != nil {
				obs.Observe(context.Background(), domain.Trouble{
					Where: fmt.Sprintf("providers.%s.headers.%s is left out", p.Name, name), Err: err,
				})
				continue
			}
			out.Headers[name] = value
		}
	}
	for id, m := range p.Models {
		out.Models[id] = llm.ModelFacts{
			ContextWindow: m.ContextWindow, MaxOutput: m.MaxOutputTokens,
			Images: m.Images, Audio: m.Audio, Thoughts: m.Thoughts,
			InputPrice: m.InputPrice, OutputPrice: m.OutputPrice,
			CacheReadPrice: m.CacheReadPrice, CacheWritePrice: m.CacheWritePrice,
		}
	}
	out.KeyHint = keyHint(p)
	return out
}

// keyHint tells a person where to put a missing key: to where the setting
// refers, if it does. It names the reference and never a value.
func keyHint(p config.Provider) string {
	setting := "providers." + p.Name + ".api_key"
	usual := ""
	for _, t := range config.ProviderTypes() {
		if t.Name == p.Type {
			usual = t.KeyEnv
		}
	}
	kind, name, _ := strings.Cut(p.APIKey.Ref(), ":")
	switch {
	case p.APIKey.IsSet() && kind == "":
		return "" // the adapter names the setting
	case kind == "env" && name == usual:
		return "set " + usual + " or " + setting + ", which go before a key that berth login stored"
	case kind == "env":
		return "set the environment variable " + name + " where berth is started; " + setting + " refers to it"
	case kind == "file":
		return "put the key into the file " + name + "; " + setting + " refers to it"
	case kind == "keyring":
		return "put the key into the keyring as " + name + "; " + setting + " refers to it"
	case usual != "" && p.TakesKey() && !p.NeedsKey(): // not at the type's own address
		return "run: berth login " + p.Name + " (or set " + setting + " = \"env:" + usual + "\": by itself that variable is not sent to this address)"
	case usual != "" && p.TakesKey():
		return "run: berth login " + p.Name + " (or set " + usual + " or " + setting + ")"
	case usual != "":
		return "set " + usual + " or " + setting
	case p.TakesKey() && !p.APIKey.IsSet():
		return "run: berth login " + p.Name + " (or set " + setting + ")"
	}
	return "" // the adapter names the setting
}

// requiredStore begins the error of a store that must work and does not.
const requiredStore = "store.required is set and "

// newStore opens the configured store behind the start, or before it when the
// operator requires it.
func newStore(lc fx.Lifecycle, cfg *Config, obs ports.Observer, clock ports.Clock) (ports.Store, error) {
	if cfg.Store.Driver == "memory" {
		return memory.New(clock), nil
	}
	open := func() (ports.Store, error) {
		if why := noSuchStore(cfg.Store.Driver); why != "" {
			return nil, domain.Errorf(domain.StoreUnavailable, "%s", why)
		}
		if err := cfg.PrepareDataDir(); err != nil {
			return nil, domain.WrapError(domain.StoreUnavailable, err, err.Error())
		}
		return sqlite.Open(context.Background(), sqlite.Config{Path: cfg.SessionStore(), Clock: clock, Observer: obs})
	}
	if cfg.Store.Required {
		s, err := open()
		if err != nil {
			return nil, errors.New(requiredStore + storeTrouble(err))
		}
		lc.Append(fx.StopHook(s.Close))
		return s, nil
	}
	late := openLate(func() ports.Store {
		s, err := open()
		if err != nil {
			obs.Observe(context.Background(), domain.Trouble{
				Where: "sessions are not saved", Err: errors.New(storeTrouble(err)),
			})
			return memory.New(clock)
		}
		return s
	})
	lc.Append(fx.StopHook(late.Close))
	return late, nil
}

// newDisk is the file system as sessions may see it.
func newDisk(cfg *Config, now *current) *fs.Disk {
	here, err := os.Getwd()
	if err != nil {
		here = string(filepath.Separator)
	}
	home, _ := os.UserHomeDir()
	return fs.New(fs.Config{
		ConfigDir: cfg.ConfigDir, DataDir: cfg.DataDir, ProcessDir: here, Home: home,
		MaxPromptBlobs: cfg.ACP.MaxPromptBlobBytes,
		PolicyFor: func(agent string) fs.Policy {
			cfg := now.config()
			pol := pathPolicy(profileOf(cfg, agent))
			pol.ReadRoots = cfg.Agents[agent].Skills
			return pol
		},
	})
}

// profileOf is the profile of an agent.
func profileOf(cfg *Config, agent string) ProfileConfig {
	return cfg.Profiles[cfg.Agents[agent].Profile]
}

// pathPolicy is what a profile says about paths.
func pathPolicy(p ProfileConfig) fs.Policy {
	return fs.Policy{Level: p.Level, AllowedRoots: p.AllowedRoots, Forbidden: p.ForbiddenPaths}
}

// newTools is every tool of a session, save those of the engine itself.
func newTools(o *options, cfg *Config, d *fs.Disk, c *commands, obs ports.Observer) []ports.ToolSource {
	if o.tools != nil {
		return o.tools
	}
	return []ports.ToolSource{
		fs.NewSource(d),
		c.source,
		web.NewSource(web.Config{UserAgent: userAgent(), Proxy: http.ProxyFromEnvironment}),
		people.NewSource(people.Config{Observer: obs, Wait: cfg.ACP.SessionTimeout}),
	}
}

func userAgent() string { return "berth/" + Version().Version }

// newSandbox reports how the shell tools confine commands. Whoever replaces
// the tools says himself.
func newSandbox(o *options, c *commands) ports.Sandbox {
	if o.tools != nil {
		return noCommands{}
	}
	return c.confiner()
}
