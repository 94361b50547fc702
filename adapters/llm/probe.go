package llm

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
)

// Probe asks a provider, at no cost, whether it answers and takes the key, and
// returns the names of the models it offers, nil when it does not say. A key
// that is not "" is tried in the place of the provider's own. Errors are coded
// as those of a stream; InvalidArgument when no such provider is configured,
// Unsupported when its type cannot be asked.
func (m *Models) Probe(ctx context.Context, name, key string) ([]string, error) {
	p, ok := m.providers[name]
	if !ok {
		return nil, domain.Errorf(domain.InvalidArgument, "provider %q is not configured; %s", name, m.known())
	}
	probe := m.openers[p.Type].Probe
	if probe == nil {
		return nil, domain.Errorf(domain.Unsupported, "provider %q cannot be asked without cost", name)
	}
	if key != "" {
		p.APIKey = func() (string, error) { return key, nil }
	}
	if err := p.checkKey(); err != nil {
		return nil, err
	}
	return probe(ctx, m.reach(p))
}
