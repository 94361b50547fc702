package bootstrap

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// current is the configuration as of now. What a reload may change is read
// through it; everything else is read once, from the configuration of the
// start.
type current struct {
	now atomic.Pointer[Config]
	log liveLog // set once, before anything reloads

	mu     sync.Mutex
	had    []secrets       // of every configuration there was, the newest last
	values []string        // the secrets of all of them, in the order they became known
	seen   map[string]bool // the same
	hidden []string        // variables that hold a secret in any of them
}

// secrets are those of one configuration.
type secrets struct {
	of    *Config
	asked int // how many values it had the last time
}

func newCurrent(cfg *Config) *current {
	c := &current{seen: map[string]bool{}}
	c.set(cfg)
	return c
}

// config returns the configuration. It is not changed.
func (c *current) config() *Config { return c.now.Load() }

// set makes cfg the configuration. The secrets of those before stay secrets.
func (c *current) set(cfg *Config) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.had = append(c.had, secrets{of: cfg})
	c.hidden = nil
	c.now.Store(cfg)
}

// secretValues returns the secrets of every configuration there was. The list
// only grows, at its end.
func (c *current) secretValues() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.had {
		s := &c.had[i]
		all := s.of.SecretValues()
		if len(all) == s.asked {
			continue
		}
		s.asked = len(all)
		for _, v := range all {
			if !c.seen[v] {
				c.seen[v] = true
				c.values = append(c.values, v)
			}
		}
	}
	return c.values[:len(c.values):len(c.values)]
}

// secretVariables returns the variables that held a secret in any
// configuration there was.
func (c *current) secretVariables() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hidden == nil {
		for _, s := range c.had {
			c.hidden = append(c.hidden, s.of.SecretVariables()...)
		}
		slices.Sort(c.hidden)
		c.hidden = slices.Compact(c.hidden)
	}
	return c.hidden
}

// liveAgents are the agents of the configuration as of now.
type liveAgents struct{ now atomic.Pointer[agents] }

var _ ports.Agents = (*liveAgents)(nil)

// Agent returns one agent.
func (l *liveAgents) Agent(alias string) (domain.Agent, bool) { return l.now.Load().Agent(alias) }

// All returns every agent.
func (l *liveAgents) All() []domain.Agent { return l.now.Load().All() }

// Default returns acp.default_agent.
func (l *liveAgents) Default() string { return l.now.Load().Default() }

// liveModels are the models of the configuration as of now. A model that was
// opened before a reload goes on as it was.
type liveModels struct{ now atomic.Pointer[llm.Models] }

var (
	_ ports.Models = (*liveModels)(nil)
	_ prober       = (*liveModels)(nil)
)

// Open returns the model of that name.
func (l *liveModels) Open(ctx context.Context, ref domain.ModelRef) (ports.Model, error) {
	return l.now.Load().Open(ctx, ref)
}

// Describe returns what is known of a model.
func (l *liveModels) Describe(ref domain.ModelRef) domain.ModelInfo {
	return l.now.Load().Describe(ref)
}

// Catalog lists what is known without a network call.
func (l *liveModels) Catalog(ctx context.Context) ([]domain.ModelInfo, error) {
	return l.now.Load().Catalog(ctx)
}

// Probe asks a provider whether it answers; see llm.Models.
func (l *liveModels) Probe(ctx context.Context, name, key string) ([]string, error) {
	return l.now.Load().Probe(ctx, name, key)
}

// Close closes idle connections.
func (l *liveModels) Close() { l.now.Load().Close() }
