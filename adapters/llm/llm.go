// Package llm opens language models by the names of configuration.
//
// It holds what every provider shares: the list of configured providers
// (this file), what is known about common models (catalogue.go), one HTTP
// client with its time limits (transport.go, exchange.go), the readers of
// streams (events.go, lines.go, scanner.go), fields and endings as all wires
// have them (fields.go, closing.go, names.go), the meaning of refusals
// (refusal.go), what may stand in an error (redact.go), the rules of retrying
// and of falling back (retry.go, fallback.go), and what several wires must know
// of one maker's models (effort.go, claude.go). A wire format is a child
// package, such as openai. Children import this package, never the other way
// round and never each other; bootstrap hands their Openers to New.
//
// Nothing is opened, read or resolved before a model is asked: importing the
// package and calling New cost no more than the allocation of the lists.
//
// Read next: retry.go, then openai/model.go.
package llm

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Config is what New needs.
type Config struct {
	Providers []ProviderConfig // in the order of configuration
	HTTP      HTTPConfig
}

// ProviderConfig is one provider as configured ("providers.<name>").
type ProviderConfig struct {
	Name string
	Type string // selects the Opener
	// BaseURL is where the provider answers; "" takes the type's own default,
	// where it has one.
	BaseURL string
	// APIKey returns the key as of now. It is called for every request, so a
	// key that was stored or removed meanwhile counts at once. A nil function
	// means the provider takes no key; "" means that it is missing.
	APIKey func() (string, error)
	// KeyOptional says that a missing key is no failure: the provider may do
	// without.
	KeyOptional bool
	// KeyHint tells a person where to put a missing key, such as
	// "set OPENAI_API_KEY or providers.openai.api_key". "" names the
	// configuration key.
	KeyHint string
	Headers map[string]string // sent with every request, over the adapter's own
	CAFile  string            // authorities to trust besides the system's, a PEM file; "" for none
	// Timeout is how long a request may wait for the first sign of an answer;
	// 0 means DefaultTimeout. A running stream has its own limit.
	Timeout time.Duration
	// MaxRetries is how many attempts may follow a failed one, as long as
	// nothing of a reply was passed on; 0 means none.
	MaxRetries int
	Models     map[string]ModelFacts // by the provider's own model name
	// Fallback are the models to ask, in this order, when one of the provider
	// cannot answer now. Those that are not configured are passed over.
	Fallback []domain.ModelRef
}

// DefaultTimeout is how long a provider may take to its first sign of an
// answer unless configured otherwise.
const DefaultTimeout = 120 * time.Second

// FirstByte returns the limit that applies.
func (p ProviderConfig) FirstByte() time.Duration {
	if p.Timeout <= 0 {
		return DefaultTimeout
	}
	return p.Timeout
}

// keyHint returns what to do about a missing key.
func (p ProviderConfig) keyHint() string {
	if p.KeyHint != "" {
		return p.KeyHint
	}
	return "set providers." + p.Name + ".api_key"
}

// lacksVersion reports whether the address has no path at all, though the wire
// is one that nearly always lives below /v1.
func (p ProviderConfig) lacksVersion() bool {
	u, err := url.Parse(p.BaseURL)
	return err == nil && u.Host != "" && strings.Trim(u.Path, "/") == "" &&
		slices.Contains([]string{"openai-chat", "openai-responses", "anthropic", "openrouter"}, p.Type)
}

// ModelFacts is what is known about a model. Zero fields are unknown; in
// configuration they leave the catalogue's value.
type ModelFacts struct {
	Title         string
	ContextWindow int64 // tokens
	MaxOutput     int64 // tokens
	Images        *bool
	Audio         *bool
	Tools         *bool
	Thoughts      *bool
	// The prices are US dollars per million tokens.
	InputPrice      float64
	OutputPrice     float64
	CacheReadPrice  float64
	CacheWritePrice float64
}

// Provider is a configured provider as an Opener gets it.
type Provider struct {
	ProviderConfig
	Client *Client // shared by providers; opens connections when asked
}

// Opener makes the models of one provider type.
type Opener struct {
	// Open returns a model without asking it anything. The info holds what
	// catalogue and configuration know; Complete has completed it.
	Open func(Provider, domain.ModelInfo) (ports.Model, error)
	// Models are listed in the catalogue even when configuration names none.
	Models []string
	// Complete, when not nil, adds what the type itself knows about a model,
	// for the catalogue, which opens nothing.
	Complete func(domain.ModelInfo) domain.ModelInfo
	// Probe, when not nil, asks the provider, at no cost, whether it answers and
	// takes the key, such as by listing its models. Errors are coded as those of
	// a stream. The names it returns are the models the provider offers; nil
	// when it does not say.
	Probe func(context.Context, Provider) (models []string, err error)
	// Warn, when not nil, returns settings of a provider that cannot have the
	// effect they promise, one sentence each.
	Warn func(ProviderConfig) []string
}

// Models opens the models of configured providers. It is safe for concurrent
// use. One reference always gives the same model, so what a model learned
// about its server is kept.
type Models struct {
	providers map[string]ProviderConfig
	names     []string // in the order of configuration
	openers   map[string]Opener
	clients   map[string]*Client // by CAFile

	mu     sync.Mutex
	open   map[domain.ModelRef]ports.Model
	chains map[domain.ModelRef]*chain // of models with fallbacks
	cool   cooling
}

var _ ports.Models = (*Models)(nil)

// New returns the models of the configured providers. It fails with
// InvalidArgument when two providers share a name or a type has no opener.
func New(cfg Config, openers map[string]Opener) (*Models, error) {
	m := &Models{
		providers: make(map[string]ProviderConfig, len(cfg.Providers)),
		openers:   openers,
		clients:   make(map[string]*Client),
		open:      make(map[domain.ModelRef]ports.Model),
		chains:    make(map[domain.ModelRef]*chain),
	}
	for _, p := range cfg.Providers {
		if _, twice := m.providers[p.Name]; twice {
			return nil, domain.Errorf(domain.InvalidArgument, "provider %q is configured twice", p.Name)
		}
		if _, known := openers[p.Type]; !known {
			return nil, domain.Errorf(domain.InvalidArgument, "provider %q has the unknown type %q; known types: %s",
				p.Name, p.Type, strings.Join(slices.Sorted(maps.Keys(openers)), ", "))
		}
		m.providers[p.Name] = p
		m.names = append(m.names, p.Name)
		if m.clients[p.CAFile] == nil {
			http := cfg.HTTP
			http.CAFile = cmp.Or(p.CAFile, http.CAFile)
			m.clients[p.CAFile] = NewClient(http)
		}
	}
	return m, nil
}

// Open returns the model of that name, which asks the provider's fallbacks
// when it cannot answer. Any model name of a configured provider is accepted:
// providers have more models than a catalogue knows.
func (m *Models) Open(ctx context.Context, ref domain.ModelRef) (ports.Model, error) {
	if err := ctx.Err(); err != nil {
		return nil, domain.WrapError(domain.Cancelled, context.Cause(ctx), "opening the model was cancelled")
	}
	model, err := m.single(ref)
	if err != nil {
		return nil, err
	}
	refs := m.providers[ref.Provider].chained(ref)
	if len(refs) == 1 {
		return model, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.chains[ref] == nil {
		m.chains[ref] = &chain{models: m, primary: model, refs: refs}
	}
	return m.chains[ref], nil
}

// single returns a model that asks nobody else.
func (m *Models) single(ref domain.ModelRef) (ports.Model, error) {
	p, ok := m.providers[ref.Provider]
	if !ok {
		return nil, domain.Errorf(domain.InvalidArgument, "provider %q is not configured; %s", ref.Provider, m.known())
	}
	if ref.Model == "" {
		return nil, domain.Errorf(domain.InvalidArgument, "model %q names no model; write it as \"%s/<model>\"", ref, ref.Provider)
	}
	if err := p.checkKey(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if model, ok := m.open[ref]; ok {
		return model, nil
	}
	model, err := m.openers[p.Type].Open(m.reach(p), m.info(p, ref.Model))
	if err != nil {
		return nil, err
	}
	m.open[ref] = model
	return model, nil
}

func (m *Models) known() string {
	if len(m.names) == 0 {
		return "no provider is"
	}
	return "there are: " + strings.Join(m.names, ", ")
}

// Describe returns what catalogue, configuration and the provider's type know
// of a model.
func (m *Models) Describe(ref domain.ModelRef) domain.ModelInfo {
	p, ok := m.providers[ref.Provider]
	if !ok {
		return domain.ModelInfo{Ref: ref}
	}
	return m.info(p, ref.Model)
}

// info puts together what catalogue, the provider's type and configuration
// know of a model; each is over the one before.
func (m *Models) info(p ProviderConfig, model string) domain.ModelInfo {
	info := p.info(model)
	if complete := m.openers[p.Type].Complete; complete != nil {
		info = complete(info)
		p.Models[model].apply(&info)
	}
	return info
}

// Catalog lists the models that configuration names, those every provider of a
// type has, and those of the catalogue that are sold at the provider's address,
// in the order of configuration and then by name.
func (m *Models) Catalog(ctx context.Context) ([]domain.ModelInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, domain.WrapError(domain.Cancelled, context.Cause(ctx), "listing the models was cancelled")
	}
	var all []domain.ModelInfo
	for _, name := range m.names {
		p := m.providers[name]
		ids := slices.Concat(slices.Collect(maps.Keys(p.Models)), m.openers[p.Type].Models, listedBy(p.seller()))
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			all = append(all, m.Describe(domain.ModelRef{Provider: name, Model: id}))
		}
	}
	return all, nil
}

// Warnings returns what a person should know about the configured providers,
// one sentence each: settings that a server ignores.
func (m *Models) Warnings() []string {
	var all []string
	for _, name := range m.names {
		p := m.providers[name]
		if warn := m.openers[p.Type].Warn; warn != nil {
			all = append(all, warn(p)...)
		}
	}
	return all
}

// Close closes idle connections. Running exchanges end by their contexts.
func (m *Models) Close() {
	for _, c := range m.clients {
		c.Close()
	}
}

// reach is a provider with the client that reaches it.
func (m *Models) reach(p ProviderConfig) Provider {
	return Provider{ProviderConfig: p, Client: m.clients[p.CAFile]}
}

// info puts together what is known of one of the provider's models.
func (p ProviderConfig) info(model string) domain.ModelInfo {
	info := domain.ModelInfo{
		Ref:   domain.ModelRef{Provider: p.Name, Model: model},
		Title: model,
		Tools: true,
	}
	if f, ok := known(p.seller(), model); ok {
		f.apply(&info)
	}
	p.Models[model].apply(&info)
	return info
}

// apply overwrites what f knows.
func (f ModelFacts) apply(info *domain.ModelInfo) {
	if f.Title != "" {
		info.Title = f.Title
	}
	if f.ContextWindow > 0 {
		info.ContextWindow = f.ContextWindow
	}
	if f.MaxOutput > 0 {
		info.MaxOutput = f.MaxOutput
	}
	for _, b := range []struct {
		known *bool
		to    *bool
	}{{f.Images, &info.Images}, {f.Audio, &info.Audio}, {f.Tools, &info.Tools}, {f.Thoughts, &info.Thoughts}} {
		if b.known != nil {
			*b.to = *b.known
		}
	}
	for _, price := range []struct {
		known float64
		to    *float64
	}{
		{f.InputPrice, &info.InputPrice},
		{f.OutputPrice, &info.OutputPrice},
		{f.CacheReadPrice, &info.CacheReadPrice},
		{f.CacheWritePrice, &info.CacheWritePrice},
	} {
		if price.known > 0 {
			*price.to = price.known
		}
	}
}

// checkKey tells whether a needed key is there.
func (p ProviderConfig) checkKey() error {
	_, err := p.key()
	return err
}

// key returns the key, "" when the provider takes none.
func (p ProviderConfig) key() (string, error) {
	if p.APIKey == nil {
		return "", nil
	}
	key, err := p.APIKey()
	key = strings.TrimSpace(key)
	switch {
	case err != nil:
		// The cause may quote what it read; only a coded one is known to be
		// fit to show.
		why := "its API key cannot be read"
		var coded *domain.Error
		if errors.As(err, &coded) {
			why += ": " + coded.Msg
		}
		return "", p.noKey("provider \"" + p.Name + "\": " + why + "; " + p.keyHint())
	case key == "" && p.KeyOptional:
		return "", nil
	case key == "":
		return "", p.noKey("provider \"" + p.Name + "\" has no API key; " + p.keyHint())
	case !printable(key):
		return "", p.noKey("provider \"" + p.Name + "\": the API key holds a space, a line break or another character that no key has; check the key: " + p.keyHint())
	}
	return key, nil
}

func (p ProviderConfig) noKey(msg string) *domain.Error {
	return domain.Errorf(domain.AuthRequired, "%s", msg).With("provider", p.Name).With("key", "missing")
}

// printable reports whether s is visible ASCII, as a header value must be.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
