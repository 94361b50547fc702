package config

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// ProviderType is a kind of model provider.
type ProviderType struct {
	Name string // as in providers.<name>.type
	// Wire names the adapter that speaks it: "openai-chat" (chat completions),
	// "offline", "scripted". Empty: the type is known but not built in.
	Wire string
	// BaseURL is the type's own address, without a trailing slash; "" when
	// there is none.
	BaseURL string
	// KeyEnv is the environment variable the key usually stands in; "" for
	// types without a key.
	KeyEnv string
	// DefaultModel is the id used when nobody chose a model; "" for none.
	DefaultModel string
	// Implicit types can be used as "<type>/<model>" without configuration.
	Implicit bool
}

// Available reports whether this build can talk to providers of the type.
func (t ProviderType) Available() bool { return t.Wire != "" }

// ProviderTypes returns every type the file may name. The first ones, in this
// order, decide DefaultModel.
func ProviderTypes() []ProviderType {
	return []ProviderType{
		{Name: "anthropic", Wire: "openai-chat", BaseURL: "https://api.anthropic.com/v1", KeyEnv: "ANTHROPIC_API_KEY", DefaultModel: "claude-sonnet-5", Implicit: true},
		{Name: "openai", Wire: "openai-chat", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", DefaultModel: "gpt-5.5", Implicit: true},
		{Name: "gemini", Wire: "openai-chat", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", KeyEnv: "GEMINI_API_KEY", DefaultModel: "gemini-flash-latest", Implicit: true},
		{Name: "openrouter", Wire: "openai-chat", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY", DefaultModel: "openrouter/auto", Implicit: true},
		{Name: "ollama", Wire: "openai-chat", BaseURL: "http://127.0.0.1:11434/v1", Implicit: true},
		{Name: "openai-compatible", Wire: "openai-chat"},
		{Name: "openai-responses", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY"},
		{Name: "azure"},
		{Name: "bedrock"},
		{Name: "offline", Wire: "offline", DefaultModel: "offline", Implicit: true},
		{Name: "scripted", Wire: "scripted"},
	}
}

// providerType returns the type of that name.
func providerType(name string) (ProviderType, bool) {
	types := ProviderTypes()
	i := slices.IndexFunc(types, func(t ProviderType) bool { return t.Name == name })
	if i < 0 {
		return ProviderType{}, false
	}
	return types[i], true
}

// Wire returns the adapter of the provider's type, see ProviderType.Wire. The
// error is coded Unsupported when this build has none.
func (p Provider) Wire() (string, error) {
	t, _ := providerType(p.Type)
	if !t.Available() {
		return "", domain.Errorf(domain.Unsupported,
			"provider type %s is not available in this version; configure %q as another type, such as openai-compatible", p.Type, p.Name)
	}
	return t.Wire, nil
}

// NeedsKey reports whether the provider cannot answer without an API key: it
// is a hosted one at its own address.
func (p Provider) NeedsKey() bool {
	t, ok := providerType(p.Type)
	return ok && t.KeyEnv != "" && p.BaseURL == t.BaseURL
}

// complete fills in what the type implies. The usual key goes only to the
// type's own address: a key must not reach a host because a line about
// another provider stands in the file.
func (p *Provider) complete(a ambient) {
	if p.Type == "" {
		if _, ok := providerType(p.Name); ok {
			p.Type = p.Name
		}
	}
	t, _ := providerType(p.Type)
	if p.BaseURL == "" {
		p.BaseURL = t.BaseURL
	}
	// People write the address that Ollama prints; the API is below /v1.
	if p.Type == "ollama" && strings.Count(p.BaseURL, "/") == 2 {
		p.BaseURL += "/v1"
	}
	if !p.APIKey.IsSet() && p.NeedsKey() {
		p.APIKey = a.key(t.KeyEnv)
	}
	p.stored = a.stored
}

// LookupProvider returns the configured provider of that name, or one that
// needs no configuration: a hosted one with its usual environment variable,
// Ollama at its default address, offline.
func (c *Config) LookupProvider(name string) (Provider, bool) {
	if p, ok := c.Providers[name]; ok {
		return p, true
	}
	t, ok := providerType(name)
	if !ok || !t.Implicit {
		return Provider{}, false
	}
	p := Provider{Name: name, Type: name}
	fillDefaults(&target{provider: &p}, providerKeys())
	p.complete(c.ambient)
	return p, true
}

// DefaultModel returns the model of a start without configuration: the
// default one of the first provider whose usual key is in the environment,
// given as "NAME=value" strings. ok is false when there is no key; then an
// Ollama that answers comes next, then offline.
func DefaultModel(env []string) (ref domain.ModelRef, ok bool) {
	return ambientOf(env).defaultModel(nil)
}

// AgentModel returns the model of an agent. Without one of its own it is the
// default model of a configured provider that has a key, else DefaultModel,
// else that of a provider whose key is stored by now.
func (c *Config) AgentModel(alias string) (ref domain.ModelRef, ok bool) {
	if m := c.Agents[alias].Model; m != (domain.ModelRef{}) {
		return m, true
	}
	return c.ambient.defaultModel(c.Providers)
}

// ambient is what there is besides settings: the usual keys of providers in
// the environment, whose rest is not kept, and the stored ones.
type ambient struct {
	keys   map[string]Secret
	stored *Credentials
}

func ambientOf(env environment) ambient {
	a := ambient{}
	for _, t := range ProviderTypes() {
		if v, ok := env.get(t.KeyEnv); ok && v != "" {
			if a.keys == nil {
				a.keys = map[string]Secret{}
			}
			ref := "env:" + t.KeyEnv
			a.keys[t.KeyEnv] = secretOf(secretBox{ref: ref, shown: ref, value: v})
		}
	}
	return a
}

func (a ambient) key(name string) Secret { return a.keys[name] }

func (a ambient) defaultModel(configured map[string]Provider) (domain.ModelRef, bool) {
	for _, t := range ProviderTypes() {
		if t.KeyEnv == "" || t.DefaultModel == "" {
			continue
		}
		for _, name := range sortedNames(configured) {
			if p := configured[name]; p.Type == t.Name && p.APIKey.IsSet() && p.NeedsKey() {
				return domain.ModelRef{Provider: name, Model: t.DefaultModel}, true
			}
		}
		if _, shadowed := configured[t.Name]; !shadowed && a.key(t.KeyEnv).IsSet() {
			return domain.ModelRef{Provider: t.Name, Model: t.DefaultModel}, true
		}
	}
	return a.storedModel(configured)
}

// SecretVariables returns the names of environment variables that hold keys
// or tokens, sorted. They are never passed to a child process.
func (c *Config) SecretVariables() []string {
	names := append([]string{"BERTH_GATEWAY_TOKEN", "BERTH_ACP_BRIDGE_TOKEN", "ZEROCLAW_ACP_BRIDGE_TOKEN"}, keyVariables()...)
	for _, t := range ProviderTypes() {
		if t.KeyEnv != "" {
			names = append(names, t.KeyEnv)
		}
	}
	for _, s := range c.settings {
		secret, ok := s.value.(Secret)
		if !ok {
			continue
		}
		if name, ok := strings.CutPrefix(secret.Ref(), "env:"); ok {
			names = append(names, name)
		}
		if s.origin.Layer == FromEnv {
			names = append(names, s.origin.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
