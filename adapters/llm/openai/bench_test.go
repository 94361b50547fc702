package openai

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// benchBody is a stream of 5,000 chunks of 20 bytes, as servers write it.
func benchBody() string {
	chunk := `data: {"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"fake-1","choices":[{"index":0,"delta":{"content":"c1234 twenty bytes ok"},"finish_reason":null}]}` + "\n\n"
	return strings.Repeat(chunk, llmtest.Chunks) + data(ended("stop"), `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":10}}`, done)
}

// cannedModel is a model whose every reply is benchBody.
func cannedModel(t testing.TB) *Model {
	t.Helper()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{Transport: llmtest.Canned(benchBody())}), ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: "http://fake.invalid"}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// BenchmarkReader is the cost of a chunk on our side: reading, decoding,
// passing on.
func BenchmarkReader(b *testing.B) { llmtest.BenchChunks(b, cannedModel(b)) }

// TestReader_Allocations: a chunk costs its text and the event that carries
// it, and nothing that grows with the reply.
func TestReader_Allocations(t *testing.T) { llmtest.Allocations(t, cannedModel(t), 2.1) }

// BenchmarkLoopback is the same from a server on this machine that flushes
// every chunk.
func BenchmarkLoopback(b *testing.B) {
	m, _ := loopback(b, llmtest.Piecewise(benchBody(), llmtest.Behind("\n\n")), nil)
	llmtest.BenchChunks(b, m)
}

// BenchmarkFirstText is a whole request of one chunk to a server on this
// machine, and how much of it is not the exchange itself.
func BenchmarkFirstText(b *testing.B) {
	h := answer("text/event-stream", data(text("a"), ended("stop"), done))
	b.Run("model", func(b *testing.B) {
		m, _ := loopback(b, h, nil)
		llmtest.BenchFirstText(b, m)
	})
	b.Run("bare", func(b *testing.B) {
		m, server := loopback(b, h, nil)
		body, err := m.render(porttest.SampleRequest(), 0)
		if err != nil {
			b.Fatal(err)
		}
		client := server.Client()
		for b.Loop() {
			resp, err := client.Post(server.URL, "application/json", bytes.NewReader(body)) //nolint:noctx // the baseline is as bare as can be
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

// BenchmarkScan is the decoding of one text chunk, by hand and in full.
func BenchmarkScan(b *testing.B) {
	chunk := []byte(`{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1700000000,"model":"fake-1","choices":[{"index":0,"delta":{"content":"c1234 twenty bytes ok"},"finish_reason":null}]}`)
	b.Run("fast", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := scan(chunk); !ok {
				b.Fatal("not taken")
			}
		}
	})
	b.Run("full", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decode(chunk); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRender writes the request of a session of a thousand turns.
func BenchmarkRender(b *testing.B) {
	m, err := New(llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: "http://fake.invalid"}}, domain.ModelInfo{})
	if err != nil {
		b.Fatal(err)
	}
	req := porttest.SampleRequest()
	for range 1000 {
		req.Messages = append(req.Messages, user(strings.Repeat("question ", 20)), domain.ModelReply{Text: strings.Repeat("answer ", 60)})
	}
	b.ReportAllocs()
	for b.Loop() {
		body, err := m.render(req, 0)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
	}
}
