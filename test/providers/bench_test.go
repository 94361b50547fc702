package providers

import (
	"bytes"
	"net/http"
	"sync"
	"testing"

	"github.com/berth-dev/berth/core/ports/porttest"
)

// benchChunks is how many pieces of text a benchmark's answer has.
const benchChunks = 5000

// tape records the first answer of a handler and plays it from then on, so
// that a benchmark does not measure how a fake server writes.
type tape struct {
	http.Handler
	mu   sync.Mutex
	head http.Header
	body []byte
}

func (p *tape) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	head, body := p.head, p.body
	p.mu.Unlock()
	if body != nil && req.Method == http.MethodPost {
		for name, values := range head {
			w.Header()[name] = values
		}
		_, _ = w.Write(body)
		return
	}
	rec := &recorder{ResponseWriter: w}
	p.Handler.ServeHTTP(rec, req)
	if rec.body.Len() > 100*benchChunks/10 { // the answer, not a document about the model
		p.mu.Lock()
		p.head, p.body = w.Header().Clone(), rec.body.Bytes()
		p.mu.Unlock()
	}
}

type recorder struct {
	http.ResponseWriter
	body bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.body.Write(b)
	return r.ResponseWriter.Write(b)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// BenchmarkUpdates is how many updates a second reach a client from each
// provider: through the provider's wire over loopback, the whole program, its
// store and ACP.
func BenchmarkUpdates(b *testing.B) {
	parts := make([]porttest.ReplyPart, benchChunks)
	for i := range parts {
		parts[i] = porttest.SendText("a piece of 20 bytes ")
	}
	for _, d := range dialects() {
		b.Run(d.Name, func(b *testing.B) {
			r := newRig(b, d, []porttest.Reply{{Parts: parts}}, func(h http.Handler) http.Handler { return &tape{Handler: h} })
			r.turn("record")
			updates := 0
			b.ReportAllocs()
			for b.Loop() {
				r.mu.Lock()
				r.updates = r.updates[:0]
				r.mu.Unlock()
				if stop := r.turn("go"); stop != "end_turn" {
					b.Fatal(stop)
				}
				n, _ := r.count("agent_message_chunk")
				if updates += n; len(r.seen("agent_message_chunk")) != benchChunks*20 {
					b.Fatalf("the client got %d bytes", len(r.seen("agent_message_chunk")))
				}
			}
			b.ReportMetric(float64(updates)/b.Elapsed().Seconds(), "updates/s")
			b.ReportMetric(float64(updates)/float64(b.N), "updates/op")
		})
	}
}
