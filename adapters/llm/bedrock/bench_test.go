package bedrock

import (
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest/wire"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

const benchChunks = 5000

// benchBody is a stream of 5,000 chunks of 20 bytes, as Bedrock writes it.
func benchBody() string {
	chunk := wire.Event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"c1234 twenty bytes ok"},"p":"abcdefghijklmnopqrstuvwxyzABCDEFG"}`)
	return start() + strings.Repeat(chunk, benchChunks) + stop(0) + end("end_turn") + counts(`"inputTokens":10,"outputTokens":10,"totalTokens":20`)
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

// BenchmarkReader is the cost of a chunk on our side: reading, checking,
// decoding, passing on.
func BenchmarkReader(b *testing.B) {
	m := over(b, canned{body: benchBody()}, claude)
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
	m, _ := loopback(b, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		c := http.NewResponseController(w)
		for rest := body; len(rest) > 0; {
			n := binary.BigEndian.Uint32([]byte(rest[:4]))
			_, _ = io.WriteString(w, rest[:n])
			_ = c.Flush()
			rest = rest[n:]
		}
	}), nil)
	b.ReportAllocs()
	for b.Loop() {
		drain(b, m)
	}
	perChunk(b)
}

// TestReader_Allocations: a chunk costs a handful of allocations, and nothing
// that grows with the reply.
func TestReader_Allocations(t *testing.T) {
	m := over(t, canned{body: benchBody()}, claude)
	allocs := testing.AllocsPerRun(3, func() {
		if _, _, err := told(t.Context(), m, porttest.SampleRequest()); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 10*benchChunks {
		t.Errorf("%.0f allocations for %d chunks", allocs, benchChunks)
	}
}
