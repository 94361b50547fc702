package responses

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// benchBody is a stream of 5,000 chunks of 20 bytes, as OpenAI writes it.
func benchBody() string {
	var b strings.Builder
	for i := range llmtest.Chunks {
		fmt.Fprintf(&b, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,"+
			"\"item_id\":\"msg_68af4030baa48193b0b43b4c2a176a1a\",\"output_index\":0,\"content_index\":0,\"delta\":\"c1234 twenty bytes ok\","+
			"\"logprobs\":[],\"obfuscation\":\"Vdu8Ig\"}\n\n", i)
	}
	return b.String() + data(completed())
}

// canned answers every request with the same bytes, without a network.
type canned struct {
	body string
	slow bool // a byte at a time
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	var r io.Reader = strings.NewReader(c.body)
	if c.slow {
		r = iotest.OneByteReader(r)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(r)}, nil
}

func cannedModel(t testing.TB, c canned) *Model {
	t.Helper()
	p := llm.Provider{
		Client:         llm.NewClient(llm.HTTPConfig{Transport: c}),
		ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: "http://fake.invalid"},
	}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// BenchmarkReader is the cost of a chunk on our side: reading, decoding,
// passing on.
func BenchmarkReader(b *testing.B) { llmtest.BenchChunks(b, cannedModel(b, canned{body: benchBody()})) }

// BenchmarkLoopback is the same from a server on this machine that flushes
// every chunk.
func BenchmarkLoopback(b *testing.B) {
	server := httptest.NewServer(llmtest.Piecewise(benchBody(), llmtest.Behind("\n\n")))
	defer server.Close()
	client := llm.NewClient(llm.HTTPConfig{})
	defer client.Close()
	m, err := New(llm.Provider{Client: client, ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: server.URL}}, domain.ModelInfo{})
	if err != nil {
		b.Fatal(err)
	}
	llmtest.BenchChunks(b, m)
}

// BenchmarkRender writes the request of a session of a thousand turns.
func BenchmarkRender(b *testing.B) {
	m := cannedModel(b, canned{})
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
