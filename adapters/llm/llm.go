// Package llm opens language models by the names of configuration.
//
// It holds what every provider shares: the models of the configured providers
// (this file) and what configuration says of each (provider.go, address.go,
// key.go), what is known about common models (catalogue.go), one HTTP client
// with its time limits (transport.go, exchange.go), the readers of
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
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Config is what New needs.
type Config struct {
	Providers []ProviderConfig // in the order of configuration
	HTTP      HTTPConfig
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
