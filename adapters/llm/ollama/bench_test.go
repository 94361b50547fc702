package ollama

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

const benchChunks = 5000

// benchBody is a stream of 5,000 chunks of 20 bytes, as servers write it.
func benchBody() string {
	chunk := `{"model":"qwen3:8b","created_at":"2026-01-02T03:04:05.678901234Z","message":{"role":"assistant","content":"c1234 twenty bytes ok"},"done":false}` + "\n"
	return strings.Repeat(chunk, benchChunks) + done("stop", `,"total_duration":5043500667,"prompt_eval_count":10,"eval_count":10`)
}

func drain(b testing.TB, m *Model) {
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
	body := benchBody()
	m := canned(b, func() io.Reader { return strings.NewReader(body) })
	b.ReportAllocs()
	for b.Loop() {
		drain(b, m)
	}
	perChunk(b)
}

// BenchmarkLoopback is the same from a server on this machine that flushes
// every chunk.
func BenchmarkLoopback(b *testing.B) {
	body := []byte(benchBody())
	server := httptest.NewServer(&server{version: "0.30.1", chat: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		for rest := body; len(rest) > 0; {
			n := bytes.IndexByte(rest, '\n') + 1
			_, _ = w.Write(rest[:n])
			_ = c.Flush()
			rest = rest[n:]
		}
	})})
	defer server.Close()
	m := over(b, server)
	b.ReportAllocs()
	for b.Loop() {
		drain(b, m)
	}
	perChunk(b)
}

// TestReader_Allocations: a chunk costs a bounded number of allocations, which
// does not grow with the reply.
func TestReader_Allocations(t *testing.T) {
	body := benchBody()
	m := canned(t, func() io.Reader { return strings.NewReader(body) })
	if allocs := testing.AllocsPerRun(3, func() { drain(t, m) }); allocs > 12*benchChunks {
		t.Errorf("%.0f allocations for %d chunks", allocs, benchChunks)
	}
}
