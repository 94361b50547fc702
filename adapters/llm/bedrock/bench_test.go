package bedrock

import (
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest/wire"
	"github.com/berth-dev/berth/core/domain"
)

// benchBody is a stream of 5,000 chunks of 20 bytes, as Bedrock writes it.
func benchBody() string {
	chunk := wire.Event("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"c1234 twenty bytes ok"},"p":"abcdefghijklmnopqrstuvwxyzABCDEFG"}`)
	return start() + strings.Repeat(chunk, llmtest.Chunks) + stop(0) + end("end_turn") + counts(`"inputTokens":10,"outputTokens":10,"totalTokens":20`)
}

// loopback serves a handler on a real socket, through the real transport,
// with signed requests.
func loopback(t testing.TB, h http.Handler) *Model {
	t.Helper()
	server := httptest.NewServer(h)
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: server.URL + "?region=us-east-1",
		APIKey: func() (string, error) { return Credentials("AKIAIOSFODNN7EXAMPLE", "secret", ""), nil },
	}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: claude}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Client.Close()
		server.Close()
	})
	return m
}

// BenchmarkReader is the cost of a chunk on our side: reading, checking,
// decoding, passing on.
func BenchmarkReader(b *testing.B) {
	llmtest.BenchChunks(b, over(b, canned{body: benchBody()}, claude))
}

// BenchmarkLoopback is the same from a server on this machine that flushes
// every chunk.
func BenchmarkLoopback(b *testing.B) {
	frame := func(rest string) int { return int(binary.BigEndian.Uint32([]byte(rest[:4]))) }
	llmtest.BenchChunks(b, loopback(b, llmtest.Piecewise(benchBody(), frame)))
}

// TestReader_Allocations: a chunk costs a handful of allocations, and nothing
// that grows with the reply.
func TestReader_Allocations(t *testing.T) {
	llmtest.Allocations(t, over(t, canned{body: benchBody()}, claude), 10)
}
