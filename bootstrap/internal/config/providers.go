package config

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// ProviderType is a kind of model provider.
type ProviderType struct {
	Name string // as in providers.<name>.type
	// Wire names the adapter that speaks it, such as "openai-chat" for chat
	// completions.
	Wire string
	// BaseURL is the type's own address, without a trailing slash; "" when
	// there is none, or when it depends on the account.
	BaseURL string
	// Hosts are patterns of the hosts that belong to the type besides that of
	// BaseURL; "*" stands for one or more labels of the name.
	Hosts []string
	// KeyEnv is the environment variable the key usually stands in; "" for
	// types without a key.
	KeyEnv string
	// DefaultModel is the id used when nobody chose a model; "" for none.
	DefaultModel string
	// Implicit types can be used as "<type>/<model>" without configuration, as
	// soon as their address is known.
	Implicit bool
}

// ProviderTypes returns every type the file may name. The first ones, in this
// order, decide DefaultModel.
func ProviderTypes() []ProviderType {
	return []ProviderType{
		{Name: "anthropic", Wire: "anthropic", BaseURL: "https://api.anthropic.com/v1", KeyEnv: "ANTHROPIC_API_KEY", DefaultModel: "claude-sonnet-5", Implicit: true},
		{Name: "openai", Wire: "openai-chat", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", DefaultModel: "gpt-5.5", Implicit: true},
		{Name: "gemini", Wire: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta", KeyEnv: "GEMINI_API_KEY", DefaultModel: "gemini-flash-latest", Implicit: true},
		{Name: "openrouter", Wire: "openrouter", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY", DefaultModel: "openrouter/auto", Implicit: true},
		{Name: "ollama", Wire: "ollama", BaseURL: "http://127.0.0.1:11434", Implicit: true},
		{Name: "openai-compatible", Wire: "openai-chat"},
		{Name: "openai-responses", Wire: "openai-responses", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY"},
		{
			Name: "azure", Wire: "azure", KeyEnv: "AZURE_OPENAI_API_KEY",
			Hosts: []string{"*.openai.azure.com", "*.services.ai.azure.com", "*.cognitiveservices.azure.com"},
		},
		{
			Name: "bedrock", Wire: "bedrock", KeyEnv: bearerEnv, Implicit: true,
			Hosts: []string{"bedrock-runtime.*.amazonaws.com", "bedrock-runtime-fips.*.amazonaws.com", "bedrock-runtime.*.amazonaws.com.cn"},
		},
		{Name: "offline", Wire: "offline", DefaultModel: "offline", Implicit: true},
		{Name: "scripted", Wire: "scripted"},
	}
}

// owns reports whether an address is one of the type's own: the usual key may
// go there.
func (t ProviderType) owns(base string) bool {
	if base == "" {
		return false
	}
	if base == t.BaseURL {
		return true
	}
	rest, ok := strings.CutPrefix(base, "https://")
	if !ok {
		return false
	}
	host, _, _ := strings.Cut(rest, "/")
	return slices.ContainsFunc(t.Hosts, func(pattern string) bool { return hostMatches(pattern, strings.ToLower(host)) })
}

// hostMatches reports whether a host name, which may carry a port, is one of a
// pattern with a single "*".
func hostMatches(pattern, host string) bool {
	before, after, _ := strings.Cut(pattern, "*")
	middle, ok := strings.CutPrefix(host, before)
	if !ok {
		return false
	}
	middle, ok = strings.CutSuffix(middle, after)
	return ok && middle != "" && !strings.ContainsAny(middle, "/@:?#\\%") && !strings.HasPrefix(middle, ".") && !strings.HasSuffix(middle, ".")
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

// Wire returns the adapter of the provider's type, see ProviderType.Wire; ""
// for a type that is not known.
func (p Provider) Wire() string {
	t, _ := providerType(p.Type)
	return t.Wire
}

// NeedsKey reports whether the provider cannot answer without an API key: it
// is a hosted one at its own address.
func (p Provider) NeedsKey() bool {
	t, ok := providerType(p.Type)
	return ok && t.KeyEnv != "" && t.owns(p.BaseURL)
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
	if p.BaseURL == "" && p.Type == "bedrock" && a.region != "" {
		p.BaseURL = "https://bedrock-runtime." + a.region + ".amazonaws.com"
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
	if p.BaseURL == "" && t.KeyEnv != "" {
		return Provider{}, false // its address is not known
	}
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
	keys   map[string]Secret // by the type's usual variable
	region string            // of Amazon's services; "" when none is set
	stored *Credentials
}

// The variables of Amazon's services. A bearer key stands by itself; else the
// parts of a signing key are put together.
const (
	bearerEnv       = "AWS_BEARER_TOKEN_BEDROCK"
	accessKeyEnv    = "AWS_ACCESS_KEY_ID"
	secretKeyEnv    = "AWS_SECRET_ACCESS_KEY"
	sessionTokenEnv = "AWS_SESSION_TOKEN"
)

// signingKey is Amazon's key as the bedrock adapter reads it:
// "ID:SECRET" or "ID:SECRET:TOKEN".
func signingKey(env environment) string {
	id, _ := env.get(accessKeyEnv)
	secret, _ := env.get(secretKeyEnv)
	token, _ := env.get(sessionTokenEnv)
	switch {
	case id == "" || secret == "":
		return ""
	case token == "":
		return id + ":" + secret
	}
	return id + ":" + secret + ":" + token
}

func ambientOf(env environment) ambient {
	a := ambient{}
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if v, _ := env.get(name); a.region == "" && isRegion(v) {
			a.region = v
		}
	}
	if key := signingKey(env); key != "" {
		ref := "env:" + accessKeyEnv
		a.keys = map[string]Secret{bearerEnv: secretOf(secretBox{ref: ref, shown: ref, value: key})}
	}
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

// isRegion reports whether s can be the name of a region, so that nothing else
// becomes part of an address.
func isRegion(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func (a ambient) key(name string) Secret { return a.keys[name] }

func (a ambient) defaultModel(configured map[string]Provider) (domain.ModelRef, bool) {
	for _, t := range ProviderTypes() {
		if t.KeyEnv == "" || t.DefaultModel == "" {
			continue
		}
		for _, name := range sortedNames(configured) {
			if p := configured[name]; p.Type == t.Name && p.APIKey.IsSet() {
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
