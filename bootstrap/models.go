package bootstrap

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

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/bootstrap/internal/config"
	"github.com/berth-dev/berth/core/domain"
)

// The states of a ProviderReport.
const (
	ProviderReachable   = "reachable"   // it answers, and takes the key
	ProviderUnreachable = "unreachable" // no answer, or one that cannot be used
	ProviderRefuses     = "refuses"     // it answers, but not this question
	ProviderNoKey       = "no_key"      // it needs a key and has none
	ProviderKeyRefused  = "key_refused" // it does not take the key
	ProviderNotAsked    = "not_asked"   // nobody wanted to know, or it cannot be asked
)

// ProviderReport is a provider with its models, as "berth models list" shows
// it. Its JSON form is documented in docs/models.md.
type ProviderReport struct {
	Name   string `json:"provider"`
	Type   string `json:"type"`
	Server string `json:"server,omitempty"` // its address, without a password
	State  string `json:"state"`
	// Detail says what is wrong, and what to do about it.
	Detail   string        `json:"detail,omitempty"`
	Fallback []string      `json:"fallback,omitempty"`
	Models   []ModelReport `json:"models"`
}

// ModelReport is one model. Zero numbers are unknown; prices are US dollars per
// million tokens.
type ModelReport struct {
	ID              string  `json:"id"` // "<provider>/<model>", as settings take it
	Title           string  `json:"title,omitempty"`
	ContextWindow   int64   `json:"context_window,omitempty"`
	MaxOutputTokens int64   `json:"max_output_tokens,omitempty"`
	InputPrice      float64 `json:"input_price,omitempty"`
	OutputPrice     float64 `json:"output_price,omitempty"`
	CacheReadPrice  float64 `json:"cache_read_price,omitempty"`
	CacheWritePrice float64 `json:"cache_write_price,omitempty"`
	Tools           bool    `json:"tools"`
	Images          bool    `json:"images"`
	Audio           bool    `json:"audio"`
	Thoughts        bool    `json:"thoughts"`
	// Offered tells whether the provider lists the model; nil when it was not
	// asked or does not say.
	Offered *bool `json:"offered,omitempty"`
	// Agents are the enabled agents whose model it is.
	Agents []string `json:"agents,omitempty"`
	// FallbackOf are the providers that have it as a fallback.
	FallbackOf []string `json:"fallback_of,omitempty"`
}

// Known reports whether anything but its name is known of the model.
func (m ModelReport) Known() bool { return m.ContextWindow > 0 || m.InputPrice > 0 }

// ModelQuery is what ListModels is asked.
type ModelQuery struct {
	Providers []string // none: those that are configured or can be used as it is
	Probe     bool     // ask the providers

	limit time.Duration // of one answer; 0 is probeLimit
}

// probeLimit bounds one provider's answer.
const probeLimit = 5 * time.Second

// ListModels reports on providers and their models. With Probe each of them is
// asked for its models, all at the same time, at no cost; a provider without a
// key it needs is not. It fails when the configuration is wrong or a provider
// is named that there is not.
func ListModels(ctx context.Context, o LoadOptions, q ModelQuery, opts ...Option) ([]ProviderReport, error) {
	cfg, err := LoadConfig(o)
	if err != nil {
		return nil, err
	}
	quiet := *cfg
	quiet.Store.Driver, quiet.Store.Required = "memory", false
	quiet.Log.Level, quiet.Log.File = "off", ""
	app, err := New(&quiet, opts...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = app.Stop(ctx) }() // it has nothing to save
	names, err := app.reported(q.Providers, q.Probe)
	if err != nil {
		return nil, err
	}
	return app.report(ctx, names, q)
}

// reported returns the names of providers to report on.
func (a *App) reported(wanted []string, probe bool) ([]string, error) {
	if len(wanted) > 0 {
		for _, name := range wanted {
			if _, ok := a.cfg.LookupProvider(name); !ok {
				return nil, domain.Errorf(domain.InvalidArgument, "there is no provider %q; there are: %s", name, strings.Join(a.providerNames(), ", "))
			}
		}
		return wanted, nil
	}
	used := a.uses(probe)
	return slices.DeleteFunc(a.providerNames(), func(name string) bool {
		_, configured := a.cfg.Providers[name]
		p, _ := a.cfg.LookupProvider(name)
		return !configured && !used.provider(name) && p.NeedsKey() && p.KeySource() == ""
	}), nil
}

// providerNames are the configured providers, and then those that need no
// configuration.
func (a *App) providerNames() []string {
	names := slices.Sorted(maps.Keys(a.cfg.Providers))
	for _, t := range config.ProviderTypes() {
		if _, ok := a.cfg.LookupProvider(t.Name); ok && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// uses is who uses which model.
type uses struct {
	agents    map[domain.ModelRef][]string
	fallbacks map[domain.ModelRef][]string // providers by the fallback they have
}

// uses collects who uses which model. Find lets an agent without a model look
// for one on this machine.
func (a *App) uses(find bool) uses {
	u := uses{agents: map[domain.ModelRef][]string{}, fallbacks: map[domain.ModelRef][]string{}}
	for _, agent := range a.p.Agents.All() {
		if find {
			agent, _ = a.p.Agents.Agent(agent.Alias)
		}
		if agent.Enabled {
			u.agents[agent.Model] = append(u.agents[agent.Model], agent.Alias)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.cfg.Providers)) {
		for _, ref := range a.cfg.Providers[name].Fallback {
			u.fallbacks[ref] = append(u.fallbacks[ref], name)
		}
	}
	return u
}

// provider reports whether any model of a provider is used.
func (u uses) provider(name string) bool { return len(u.of(name)) > 0 }

// of returns the used models of a provider.
func (u uses) of(name string) []domain.ModelRef {
	var refs []domain.ModelRef
	for _, m := range []map[domain.ModelRef][]string{u.agents, u.fallbacks} {
		for ref := range m {
			if ref.Provider == name {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

// report looks at providers, all at the same time.
func (a *App) report(ctx context.Context, names []string, q ModelQuery) ([]ProviderReport, error) {
	catalogue, err := a.p.Models.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	used := a.uses(q.Probe)
	answers := make([]probeAnswer, len(names))
	if q.Probe {
		answers = a.probeAll(ctx, names, cmp.Or(q.limit, probeLimit))
	}
	reports := make([]ProviderReport, len(names))
	for i, name := range names {
		p, _ := a.cfg.LookupProvider(name)
		r := ProviderReport{Name: name, Type: p.Type, Server: withoutPassword(p.BaseURL), State: ProviderNotAsked}
		if answers[i].state != "" {
			r.State, r.Detail = answers[i].state, answers[i].detail
		} else if p.NeedsKey() && p.KeySource() == "" {
			r.State, r.Detail = ProviderNoKey, keyHint(p)
		}
		for _, ref := range p.Fallback {
			r.Fallback = append(r.Fallback, ref.String())
		}
		r.Models = a.modelsOf(name, catalogue, answers[i], used)
		reports[i] = r
	}
	return reports, nil
}

// modelsOf lists a provider's models: what it offers, what is configured or
// used, and, where it does not tell its models, what the catalogue knows.
func (a *App) modelsOf(name string, catalogue []domain.ModelInfo, answer probeAnswer, used uses) []ModelReport {
	p, _ := a.cfg.LookupProvider(name)
	refs := used.of(name)
	for id := range p.Models {
		refs = append(refs, domain.ModelRef{Provider: name, Model: id})
	}
	if answer.models == nil {
		for _, info := range catalogue {
			if info.Ref.Provider == name {
				refs = append(refs, info.Ref)
			}
		}
	}
	for _, id := range answer.models {
		refs = append(refs, domain.ModelRef{Provider: name, Model: id})
	}
	slices.SortFunc(refs, func(x, y domain.ModelRef) int { return strings.Compare(x.Model, y.Model) })
	models := []ModelReport{}
	for _, ref := range slices.Compact(refs) {
		info := a.p.Models.Describe(ref)
		m := ModelReport{
			ID: ref.String(), ContextWindow: info.ContextWindow, MaxOutputTokens: info.MaxOutput,
			InputPrice: info.InputPrice, OutputPrice: info.OutputPrice, CacheReadPrice: info.CacheReadPrice, CacheWritePrice: info.CacheWritePrice,
			Tools: info.Tools, Images: info.Images, Audio: info.Audio, Thoughts: info.Thoughts,
			Agents: used.agents[ref], FallbackOf: used.fallbacks[ref],
		}
		if info.Title != ref.Model {
			m.Title = info.Title
		}
		if answer.models != nil {
			offered := llm.Offers(answer.models, ref.Model)
			m.Offered = &offered
		}
		models = append(models, m)
	}
	return models
}

// probeAnswer is what a provider answered.
type probeAnswer struct {
	models []string // nil when it does not say
	state  string   // "" when it was not asked
	detail string
}

// probeAll asks providers at the same time, each for a bounded time, and
// returns when all have answered.
func (a *App) probeAll(ctx context.Context, names []string, limit time.Duration) []probeAnswer {
	answers := make([]probeAnswer, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() { answers[i] = a.probe(ctx, name, limit) })
	}
	wg.Wait()
	return answers
}

// errProbeLimit ends a question that took too long.
var errProbeLimit = errors.New("there was no answer in time")

// probe asks one provider.
func (a *App) probe(ctx context.Context, name string, limit time.Duration) probeAnswer {
	limited, cancel := context.WithTimeoutCause(ctx, limit, errProbeLimit)
	defer cancel()
	models, err := probe(limited, a.p.Models, name, "")
	if err == nil {
		return probeAnswer{models: models, state: ProviderReachable}
	}
	var coded *domain.Error
	if !errors.As(err, &coded) {
		coded = domain.WrapError(domain.Internal, err, err.Error())
	}
	answer := probeAnswer{state: ProviderUnreachable, detail: strings.TrimPrefix(coded.Msg, "provider \""+name+"\" ")}
	switch coded.Code {
	case domain.Unsupported:
		return probeAnswer{}
	case domain.AuthRequired:
		answer.state = ProviderKeyRefused
		if slices.Contains(coded.Details, domain.Detail{Key: "key", Value: "missing"}) {
			answer.state = ProviderNoKey
		}
	case domain.RateLimited, domain.QuotaExhausted, domain.ProviderRejected:
		answer.state = ProviderRefuses
	case domain.Cancelled:
		if errors.Is(context.Cause(limited), errProbeLimit) {
			p, _ := a.cfg.LookupProvider(name)
			answer.detail = "there was no answer within " + limit.String() + "; check " + cmp.Or(withoutPassword(p.BaseURL), "the network")
		}
	default:
	}
	return answer
}

// withoutPassword is an address without a name and password.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User = nil
	return u.String()
}
