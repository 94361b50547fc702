package bootstrap

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// diagnoseProviders asks the providers of all models that agents use, and
// those of their fallbacks: do they answer, do they take the key, do they have
// the model.
func (a *App) diagnoseProviders(ctx context.Context) []Finding {
	byProvider := map[string]*usedProvider{}
	var names []string
	note := func(ref domain.ModelRef, serious bool) {
		p, ok := a.cfg.LookupProvider(ref.Provider)
		if !ok || p.BaseURL == "" {
			return // the agent's own finding says so, or it is built in
		}
		u := byProvider[ref.Provider]
		if u == nil {
			u = &usedProvider{}
			byProvider[ref.Provider] = u
			names = append(names, ref.Provider)
		}
		u.serious = u.serious || serious
		if !slices.Contains(u.models, ref.Model) {
			u.models = append(u.models, ref.Model)
		}
	}
	agents := a.uses(true).agents
	for ref := range agents {
		note(ref, true)
	}
	for ref := range agents {
		for _, f := range a.cfg.Providers[ref.Provider].Fallback {
			note(f, false)
		}
	}
	slices.Sort(names)
	var found []Finding
	for i, answer := range a.probeAll(ctx, names, probeLimit) {
		u := byProvider[names[i]]
		slices.Sort(u.models)
		if f, ok := a.providerFinding(ctx, names[i], *u, answer); ok {
			found = append(found, f)
		}
	}
	return found
}

// usedProvider is what is wanted of a provider.
type usedProvider struct {
	models  []string
	serious bool // an agent's own model, not only a fallback
}

// providerFinding puts an answer into words. It reports false for a key that
// is missing where the agent's finding has said it: only the server itself says
// so where the type may do without a key.
func (a *App) providerFinding(ctx context.Context, name string, u usedProvider, answer probeAnswer) (f Finding, ok bool) {
	p, _ := a.cfg.LookupProvider(name)
	f = Finding{Name: "provider " + name, State: FindingFail}
	if !u.serious {
		f.State = FindingWarn
	}
	detail, mend, _ := strings.Cut(answer.detail, "; ")
	switch answer.state {
	case ProviderReachable:
		return a.offersFinding(f, p.Type, name, u, answer.models), true
	case "":
		f.State, f.Detail = FindingOK, "it cannot be asked without cost"
	case ProviderNoKey:
		if u.serious {
			_, err := a.p.Models.Open(ctx, domain.ModelRef{Provider: name, Model: u.models[0]})
			f.Detail, f.Mend = detail, cmp.Or(mend, keyHint(p))
			return f, err == nil
		}
		f.Detail, f.Mend = "it is a fallback, has no API key and is passed over", keyHint(p)
	case ProviderKeyRefused:
		f.Detail, f.Mend = detail, cmp.Or(mend, keyHint(p))
	case ProviderRefuses:
		f.State, f.Detail, f.Mend = FindingWarn, detail, cmp.Or(mend, "a prompt may still work: berth client -p hello")
	default:
		f.Detail, f.Mend = detail, cmp.Or(mend, "check providers."+name+".base_url and the network")
	}
	return f, true
}

// offersFinding is about a provider that answers.
func (a *App) offersFinding(f Finding, kind, name string, u usedProvider, offered []string) Finding {
	p, _ := a.cfg.LookupProvider(name)
	answers := withoutPassword(p.BaseURL) + " answers"
	if p.KeySource() != "" {
		answers += " and takes the key"
	}
	if offered == nil {
		f.State, f.Detail = FindingOK, answers+"; it does not say which models it has"
		return f
	}
	missing := slices.DeleteFunc(slices.Clone(u.models), func(m string) bool { return llm.Offers(offered, m) })
	if len(missing) == 0 {
		f.State, f.Detail = FindingOK, answers+"; it has "+strings.Join(u.models, ", ")
		return f
	}
	f.Detail = answers + ", but does not list " + strings.Join(missing, ", ")
	f.Mend = "choose another: berth models list " + name
	if kind == "ollama" {
		f.Mend = "run: ollama pull " + missing[0] + " (or " + f.Mend + ")"
	} else {
		f.State = FindingWarn // some take names that they do not list
	}
	return f
}
