// Package metrics counts what happens inside and shows it in the text format
// of Prometheus. It is an observer like the log, an HTTP handler, and a
// wrapper of the store that times appends.
//
// The encoder is our own hundred lines: the official client library adds 2.7 MB
// to the program and half a millisecond to every start, that of an agent on
// stdio too, because it builds its registry when it is imported.
//
// The number of series is bounded. Names that a model or a client can make up,
// such as those of models and tools, count as "other" once a metric has as many
// series as it may.
//
// Read next: declare.go (every metric), observe.go (what counts as what),
// text.go (the format).
package metrics

import (
	"context"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Config is what a Metrics is built from.
type Config struct {
	Version string      // of the program
	Clock   ports.Clock // of the start and of reloads
	// State returns how things stand now. It is asked for each scrape, and must
	// not wait for anything but a mutex; nil leaves its metrics out.
	State func() State
}

// State is what is looked up and not counted.
type State struct {
	// Sessions by what they are: "busy", "idle", "detached", "set_aside".
	Sessions map[string]int
	Running  int // turns at work
	Queued   int // prompts that wait behind them
	Asking   int // permission requests without an answer
	Draining bool
	// CertificateEnds is when the gateway's certificate stops to be good; zero
	// when there is none.
	CertificateEnds time.Time
}

// Metrics is an observer that counts. It is safe for concurrent use, and
// nothing waits for a scrape longer than for the copying of a few numbers.
type Metrics struct {
	cfg Config
	declared

	mu   sync.Mutex // guards the series of every metric
	vecs []*vec
}

var _ ports.Observer = (*Metrics)(nil)

// New returns metrics that have counted nothing.
func New(c Config) *Metrics {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	m := &Metrics{cfg: c}
	m.declare()
	m.at(m.buildInfo, c.Version, goVersion()).value = 1
	m.at(m.startTime).value = unix(c.Clock())
	return m
}

// Families returns every metric, in the order of a scrape.
func (m *Metrics) Families() []Family {
	all := make([]Family, len(m.vecs))
	for i, v := range m.vecs {
		all[i] = v.Family
	}
	return all
}

// Observe counts one event.
func (m *Metrics) Observe(_ context.Context, ev domain.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count(ev)
}

// Reloaded counts a reload of the configuration; err is why there was none.
func (m *Metrics) Reloaded(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.at(m.reloads, "refused").add(1)
		return
	}
	m.at(m.reloads, "applied").add(1)
	m.at(m.reloadedAt).value = unix(m.cfg.Clock())
}

// Spans counts spans of traces: "exported", or "dropped" because the collector
// took them too slowly or not at all.
func (m *Metrics) Spans(outcome string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at(m.spans, outcome).add(float64(n))
}

// unix is a time as Prometheus writes it.
func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
