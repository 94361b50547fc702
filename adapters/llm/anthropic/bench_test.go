package anthropic

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

const benchChunks = 5000

// benchBody is a stream of 5,000 chunks of 20 bytes, as Anthropic writes it.
func benchBody() []byte {
	return []byte(data(msgStart, start(0, textBlock)) + strings.Repeat(data(text(0, "c1234 twenty bytes o")), benchChunks) +
		data(stopAt(0), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"output_tokens":10}}`, msgStop))
}

func drain(b *testing.B, m *Model) {
	b.Helper()
	chunks := 0
	for ev, err := range m.Stream(b.Context(), porttest.SampleRequest()) {
		if err != nil {
			b.Fatal(err)
		}
		if _, ok := ev.(domain.TextDelta); ok {
			chunks++
		}
	}
	if chunks != benchChunks {
		b.Fatalf("%d chunks", chunks)
	}
}

func perChunk(b *testing.B) {
	ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / benchChunks
	b.ReportMetric(ns, "ns/chunk")
	b.ReportMetric(1e9/ns, "chunks/s")
}

// BenchmarkReader is the cost of a chunk on our side: reading, decoding,
// passing on.
func BenchmarkReader(b *testing.B) {
	m := over(b, benchBody(), 0)
	b.ReportAllocs()
	for b.Loop() {
		drain(b, m)
	}
	perChunk(b)
}

// BenchmarkLoopback is the same from a server on this machine that flushes
// every chunk.
func BenchmarkLoopback(b *testing.B) {
	body := benchBody()
	m, _ := loopback(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		for rest := body; len(rest) > 0; {
			n := bytes.Index(rest, []byte("\n\n")) + 2
			_, _ = w.Write(rest[:n])
			_ = c.Flush()
			rest = rest[n:]
		}
	}))
	b.ReportAllocs()
	for b.Loop() {
		drain(b, m)
	}
	perChunk(b)
}

// BenchmarkFirstText is a whole request of one chunk to a server on this
// machine.
func BenchmarkFirstText(b *testing.B) {
	m, _ := loopback(b, answers("text/event-stream", okBody()))
	var first time.Duration
	n := 0
	for b.Loop() {
		began := time.Now()
		for ev := range m.Stream(b.Context(), porttest.SampleRequest()) {
			if _, ok := ev.(domain.TextDelta); ok {
				first += time.Since(began)
				n++
			}
		}
	}
	b.ReportMetric(float64(first.Microseconds())/float64(n), "us-to-first-text")
}

// BenchmarkRender writes the request of a session of a thousand turns, for a
// model that binds its thoughts to what stood before them.
func BenchmarkRender(b *testing.B) {
	m := over(b, nil, 0)
	req := porttest.SampleRequest()
	for range 1000 {
		req.Messages = append(req.Messages, user(strings.Repeat("question ", 20)), domain.ModelReply{Text: strings.Repeat("answer ", 60)})
	}
	b.ReportAllocs()
	for b.Loop() {
		body, err := m.render(req, m.plan(req, amends{}))
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}

// TestReader_Allocations: a chunk costs its text and the event that carries
// it, and nothing that grows with the reply.
func TestReader_Allocations(t *testing.T) {
	m := over(t, benchBody(), 0)
	allocs := testing.AllocsPerRun(3, func() {
		for _, err := range m.Stream(t.Context(), porttest.SampleRequest()) {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	if allocs > 2.1*benchChunks {
		t.Errorf("%.0f allocations for %d chunks", allocs, benchChunks)
	}
}
