package ollama

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
)

// benchBody is a stream of 5,000 chunks of 20 bytes, as servers write it.
func benchBody() string {
	chunk := `{"model":"qwen3:8b","created_at":"2026-01-02T03:04:05.678901234Z","message":{"role":"assistant","content":"c1234 twenty bytes ok"},"done":false}` + "\n"
	return strings.Repeat(chunk, llmtest.Chunks) + done("stop", `,"total_duration":5043500667,"prompt_eval_count":10,"eval_count":10`)
}

func cannedBench(t testing.TB) *Model {
	body := benchBody()
	return canned(t, func() io.Reader { return strings.NewReader(body) })
}

// BenchmarkReader is the cost of a chunk on our side: reading, decoding,
// passing on.
func BenchmarkReader(b *testing.B) { llmtest.BenchChunks(b, cannedBench(b)) }

// BenchmarkLoopback is the same from a server on this machine that flushes
// every chunk.
func BenchmarkLoopback(b *testing.B) {
	server := httptest.NewServer(&server{version: "0.30.1", chat: llmtest.Piecewise(benchBody(), llmtest.Behind("\n"))})
	defer server.Close()
	llmtest.BenchChunks(b, over(b, server))
}

// TestReader_Allocations: a chunk costs a bounded number of allocations, which
// does not grow with the reply.
func TestReader_Allocations(t *testing.T) { llmtest.Allocations(t, cannedBench(t), 12) }
