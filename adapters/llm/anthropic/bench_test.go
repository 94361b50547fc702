package anthropic

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// benchBody is a stream of 5,000 chunks of 20 bytes, as Anthropic writes it.
func benchBody() string {
	return data(msgStart, start(0, textBlock)) + strings.Repeat(data(text(0, "c1234 twenty bytes o")), llmtest.Chunks) +
		data(stopAt(0), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"output_tokens":10}}`, msgStop)
}

// BenchmarkReader is the cost of a chunk on our side: reading, decoding,
// passing on.
func BenchmarkReader(b *testing.B) { llmtest.BenchChunks(b, over(b, []byte(benchBody()), 0)) }

// BenchmarkLoopback is the same from a server on this machine that flushes
// every chunk.
func BenchmarkLoopback(b *testing.B) {
	m, _ := loopback(b, llmtest.Piecewise(benchBody(), llmtest.Behind("\n\n")))
	llmtest.BenchChunks(b, m)
}

// BenchmarkFirstText is a whole request of one chunk to a server on this
// machine.
func BenchmarkFirstText(b *testing.B) {
	m, _ := loopback(b, answers("text/event-stream", okBody()))
	llmtest.BenchFirstText(b, m)
}

// TestReader_Allocations: a chunk costs its text and the event that carries
// it, and nothing that grows with the reply.
func TestReader_Allocations(t *testing.T) {
	llmtest.Allocations(t, over(t, []byte(benchBody()), 0), 2.1)
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
