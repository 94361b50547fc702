// Package traces turns turns into spans for OpenTelemetry: one for a turn, one
// for each request to a model, each tool call and each question to the person.
// It is an observer like the log, and it makes its spans from what the events
// say, so nothing of the core knows of it.
//
// Names and attributes are those of the semantic conventions for generative AI
// (spans.go); batches go to a collector as OTLP in JSON over HTTP (export.go).
// Both are our own few hundred lines: the official SDK with its exporter adds
// 10 MB to the program and a millisecond and a half to every start.
//
// Nothing is sent of what people, models and tools say, unless that was asked
// for. Nothing is started before the first span.
package traces

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Config is what a Tracer is built from.
type Config struct {
	// Endpoint is the collector's address, with or without /v1/traces.
	Endpoint string
	// Client returns what requests are sent with; it is asked when there is
	// something to send.
	Client func() (*http.Client, error)
	// Header returns a header to send, such as one with a key; nil and "" send
	// none.
	Header    func() (name, value string, err error)
	UserAgent string // of the requests
	// Service, Version and Instance say who traces.
	Service, Version, Instance string
	// Content adds what was said: prompts, answers, arguments and results.
	Content bool
	// Sample is the share of turns that are traced, from 0 to 1. A client's own
	// decision comes before it.
	Sample float64
	// Provider returns what the conventions call a configured provider.
	Provider func(name string) string
	Clock    ports.Clock
	Random   io.Reader // of ids
	// Sent is told what became of spans: "exported" or "dropped". nil is none.
	Sent func(outcome string, n int)
	// Trouble is told why spans were dropped, the first time of a row. nil is
	// none.
	Trouble func(error)
}

// Tracer is an observer that makes spans. It is safe for concurrent use and
// never waits for the collector.
type Tracer struct {
	cfg Config
	exporter

	mu    sync.Mutex
	turns map[domain.TurnID]*trace
}

var _ ports.Observer = (*Tracer)(nil)

// trace is one turn that runs.
type trace struct {
	id      [16]byte
	parent  [8]byte // zero: none
	state   string  // tracestate of the client
	span    [8]byte
	sampled bool
	start   time.Time
	prompt  []domain.Block
	calls   map[domain.CallID][8]byte // spans of calls that are not over
}

// New returns a tracer that has sent nothing.
func New(c Config) *Tracer {
	t := &Tracer{cfg: c, turns: map[domain.TurnID]*trace{}}
	t.exporter.init(&t.cfg)
	return t
}

// Observe makes spans of one event.
func (t *Tracer) Observe(_ context.Context, ev domain.Event) {
	switch ev := ev.(type) {
	case domain.TurnBegan:
		t.began(ev)
	case domain.StepDone:
		t.add(ev.Turn, func(tr *trace) span { return t.step(tr, ev) })
	case domain.CallDone:
		t.add(ev.Turn, func(tr *trace) span { return t.call(tr, ev) })
	case domain.PermissionDone:
		if ev.Asked {
			t.add(ev.Turn, func(tr *trace) span { return t.permission(tr, ev) })
		}
	case domain.TurnDone:
		t.add(ev.Turn, func(tr *trace) span {
			delete(t.turns, ev.Turn)
			return t.turn(tr, ev)
		})
	default: // the rest belongs to no turn
	}
}

func (t *Tracer) began(ev domain.TurnBegan) {
	tr := &trace{start: t.cfg.Clock(), calls: map[domain.CallID][8]byte{}}
	if t.cfg.Content {
		tr.prompt = ev.Prompt
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id, parent, sampled, ok := parseParent(ev.Trace.Parent); ok {
		tr.id, tr.parent, tr.sampled, tr.state = id, parent, sampled, cleanState(ev.Trace.State)
	} else {
		t.random(tr.id[:])
		tr.sampled = t.chosen(tr.id)
	}
	t.random(tr.span[:])
	t.turns[ev.Turn] = tr
}

// random fills an id. It is never all zero, which would be none.
func (t *Tracer) random(id []byte) {
	if _, err := io.ReadFull(t.cfg.Random, id); err != nil {
		binary.BigEndian.PutUint64(id, uint64(t.cfg.Clock().UnixNano()))
	}
	id[len(id)-1] |= 1
}

// chosen decides by the id, as others that see the trace may.
func (t *Tracer) chosen(id [16]byte) bool {
	const bits = 56
	return float64(binary.BigEndian.Uint64(id[8:])&(1<<bits-1)) < t.cfg.Sample*(1<<bits)
}

// add makes a span of a turn, if it is traced.
func (t *Tracer) add(turn domain.TurnID, make func(*trace) span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.turns[turn]
	if tr == nil {
		return // what outlived its turn
	}
	if s := make(tr); tr.sampled {
		t.enqueue(s)
	}
}

// callSpan is the span of a call: the same for its question and for itself.
func (t *Tracer) callSpan(tr *trace, id domain.CallID) [8]byte {
	s, ok := tr.calls[id]
	if !ok {
		t.random(s[:])
		tr.calls[id] = s
	}
	return s
}
