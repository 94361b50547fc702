package llmtest

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// Chunks is how many pieces of text the stream of a benchmark has.
const Chunks = 5000

// Canned answers every request with the same bytes, without a network.
type Canned string

// RoundTrip answers.
func (c Canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(c)))}, nil
}

// Piecewise writes a body and flushes it behind every piece, which ends where
// the function says.
func Piecewise(body string, end func(rest string) int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		c := http.NewResponseController(w)
		for rest := body; rest != ""; {
			n := end(rest)
			_, _ = io.WriteString(w, rest[:n])
			_ = c.Flush()
			rest = rest[n:]
		}
	})
}

// Behind finds the end of a piece that ends with a separator.
func Behind(separator string) func(rest string) int {
	return func(rest string) int { return strings.Index(rest, separator) + len(separator) }
}

// drain reads a whole reply.
func drain(tb testing.TB, m ports.Model) {
	tb.Helper()
	chunks := 0
	for ev, err := range m.Stream(tb.Context(), porttest.SampleRequest()) {
		if err != nil {
			tb.Fatal(err)
		}
		if _, ok := ev.(domain.TextDelta); ok {
			chunks++
		}
	}
	if chunks != Chunks {
		tb.Fatalf("%d chunks, want %d", chunks, Chunks)
	}
}

// BenchChunks measures what a piece of text costs in a reply of Chunks of them.
func BenchChunks(b *testing.B, m ports.Model) {
	b.ReportAllocs()
	for b.Loop() {
		drain(b, m)
	}
	ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / Chunks
	b.ReportMetric(ns, "ns/chunk")
	b.ReportMetric(1e9/ns, "chunks/s")
}

// BenchFirstText measures how long a request takes to the first text.
func BenchFirstText(b *testing.B, m ports.Model) {
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

// Allocations checks how many a piece of text costs in a reply of Chunks of
// them: nothing may grow with the reply.
func Allocations(t *testing.T, m ports.Model, most float64) {
	t.Helper()
	if n := testing.AllocsPerRun(3, func() { drain(t, m) }); n > most*Chunks {
		t.Errorf("%.0f allocations for %d chunks", n, Chunks)
	}
}
