package bootstrap

import (
	"context"
	"sync/atomic"

	"go.uber.org/fx"

	"github.com/berth-dev/berth/adapters/metrics"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// fan passes events on to several observers, to each in the order of events.
type fan []ports.Observer

var _ ports.Observer = fan(nil)

// Observe passes one event on.
func (f fan) Observe(ctx context.Context, ev domain.Event) {
	for _, o := range f {
		o.Observe(ctx, ev)
	}
}

// withMetrics makes the App count into m.
func withMetrics(m *metrics.Metrics) Option { return func(o *options) { o.metrics = m } }

// newObserver is what sees the events: the log, or what was given in its
// place, and what counts and traces if that is wanted.
func newObserver(lc fx.Lifecycle, cfg *Config, now *current, o *options) (ports.Observer, error) {
	first := o.observer
	if first == nil {
		log, err := newLog(lc, cfg, now, o)
		if err != nil {
			return nil, err
		}
		first = log
	}
	all := fan{first}
	if o.metrics != nil {
		all = append(all, o.metrics)
	}
	if cfg.Telemetry.Endpoint != "" {
		all = append(all, newTracer(lc, cfg, o, first))
	}
	if len(all) == 1 {
		return first, nil
	}
	return all, nil
}

// newTimedStore is the store, timed if it is counted.
func newTimedStore(lc fx.Lifecycle, cfg *Config, o *options, obs ports.Observer, clock ports.Clock) (ports.Store, error) {
	store, err := o.store, error(nil)
	if store == nil {
		store, err = newStore(lc, cfg, obs, clock)
	}
	if err != nil || o.metrics == nil {
		return store, err
	}
	return o.metrics.Store(store), nil
}

// board shows how a daemon stands, once there is one.
type board struct {
	app    atomic.Pointer[App]
	server atomic.Pointer[daemonServer]
}

// state is what a scrape looks up.
func (b *board) state() metrics.State {
	a := b.app.Load()
	if a == nil {
		return metrics.State{}
	}
	n := a.p.Sessions.Stats()
	state := metrics.State{
		Sessions: map[string]int{"busy": n.Busy, "idle": n.Idle, "detached": n.Detached, "set_aside": n.SetAside},
		Running:  n.Running, Queued: n.Queued, Asking: a.p.Asking.Asking(), Draining: a.draining.Load(),
	}
	if s := b.server.Load(); s != nil && s.certificates != nil {
		state.CertificateEnds = s.certificates.ends()
	}
	return state
}
