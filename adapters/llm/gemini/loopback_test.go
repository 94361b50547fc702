package gemini

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// loopback serves a handler on a real socket, through the real transport.
func loopback(t testing.TB, h http.Handler, change func(*llm.Provider)) *Model {
	t.Helper()
	server := httptest.NewServer(h)
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: server.URL + "/v1beta", APIKey: func() (string, error) { return "key-0123456789", nil },
	}}
	if change != nil {
		change(&p)
	}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "gemini-3-flash"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Client.Close()
		server.Close()
	})
	return m
}

// TestLoopback_Keys: the key is in its header and nowhere else, and a header
// that is configured takes its place, as Vertex AI wants it.
func TestLoopback_Keys(t *testing.T) {
	for name, c := range map[string]struct {
		key       func() (string, error)
		headers   map[string]string
		goog      string
		authorize string
	}{
		"a key":    {func() (string, error) { return "key-0123456789", nil }, nil, "key-0123456789", ""},
		"a bearer": {nil, map[string]string{"Authorization": "Bearer token-0123456789"}, "", "Bearer token-0123456789"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen *http.Request
			m := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				seen = req.Clone(context.WithoutCancel(req.Context()))
				_, _ = io.WriteString(w, data(ends("STOP", a)))
			}), func(p *llm.Provider) {
				p.APIKey, p.Headers = c.key, c.headers
				p.BaseURL = strings.TrimSuffix(p.BaseURL, "/v1beta") + "/v1/projects/p/locations/global/publishers/google"
			})
			if line, err := got(porttest.T(t), m, porttest.SampleRequest()); line != "a .stop" {
				t.Fatalf("%q, %v", line, err)
			}
			if seen.Header.Get("X-Goog-Api-Key") != c.goog || seen.Header.Get("Authorization") != c.authorize ||
				seen.URL.String() != "/v1/projects/p/locations/global/publishers/google/models/gemini-3-flash:streamGenerateContent?alt=sse" {
				t.Errorf("%s with %v", seen.URL, seen.Header)
			}
		})
	}
}

// TestProbe: the models that can be asked are listed, over all pages, and a
// wrong key is told.
func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		pages []string
		want  []string
		code  domain.Code
		asked int
	}{
		"pages": {[]string{
			`{"models":[{"name":"models/b","supportedGenerationMethods":["generateContent"]},{"name":"models/e","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"page-two"}`,
			`{"models":[{"name":"models/a"},{"name":"models/b"},{"name":""}]}`,
		}, []string{"a", "b"}, 0, 2},
		"Vertex AI":          {[]string{`{"publisherModels":[{"name":"publishers/google/models/gemini-3-pro"}]}`}, []string{"gemini-3-pro"}, 0, 1},
		"a page again":       {[]string{`{"models":[{"name":"models/a"}],"nextPageToken":"x"}`, `{"models":[],"nextPageToken":"x"}`}, []string{"a"}, 0, 2},
		"a wrong key":        {[]string{`!{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`}, nil, domain.AuthRequired, 1},
		"no list":            {[]string{`<html>`}, nil, domain.Unavailable, 1},
		"a refusal of the 2": {[]string{`{"models":[{"name":"models/a"}],"nextPageToken":"page-two"}`, `!{"error":{"code":400,"message":"bad token page-two"}}`}, nil, domain.ProviderRejected, 2},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			m := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Path != "/v1beta/models" || req.Header.Get("X-Goog-Api-Key") != "key-0123456789" || req.URL.Query().Has("key") ||
					(asked > 0) != req.URL.Query().Has("pageToken") {
					t.Errorf("%s with %v", req.URL, req.Header)
				}
				page, refused := strings.CutPrefix(c.pages[min(asked, len(c.pages)-1)], "!")
				asked++
				if refused {
					w.WriteHeader(http.StatusBadRequest)
				}
				_, _ = io.WriteString(w, page)
			}), nil)
			names, err := Opener().Probe(t.Context(), m.provider)
			if !slices.Equal(names, c.want) || (err != nil) != (c.want == nil) || err != nil && domain.CodeOf(err) != c.code || asked != c.asked {
				t.Errorf("%v, %v after %d requests", names, err, asked)
			}
		})
	}
	if _, err := Opener().Probe(t.Context(), llm.Provider{ProviderConfig: llm.ProviderConfig{Name: "p", BaseURL: "x"}}); !domain.HasCode(err, domain.InvalidArgument) {
		t.Errorf("%v", err)
	}
}

// benchBody is a stream of 5,000 chunks of 20 bytes, as the API writes it.
func benchBody() string {
	chunk := data(`{"candidates": [{"content": {"parts": [{"text": "c1234 twenty bytes ok"}],"role": "model"},"index": 0}],` +
		`"usageMetadata": {"promptTokenCount": 8,"candidatesTokenCount": 12,"totalTokenCount": 111,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 8}],"thoughtsTokenCount": 91},` +
		`"modelVersion": "gemini-3-flash","responseId": "mJ4saZ-1C5vWz7IP1q2x-Qo"}`)
	return strings.Repeat(chunk, llmtest.Chunks) + data(ends("STOP", `{"text":""}`))
}

// canned answers every request with the same bytes, without a network.
type canned struct {
	body string
	wrap func(io.Reader) io.Reader
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	body := io.Reader(strings.NewReader(c.body))
	if c.wrap != nil {
		body = c.wrap(body)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(body)}, nil
}

// over returns a model over a transport.
func over(t testing.TB, rt http.RoundTripper) *Model {
	t.Helper()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{Transport: rt}), ProviderConfig: llm.ProviderConfig{Name: "fake"}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "gemini-3-flash"}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// BenchmarkReader is the cost of a chunk on our side: reading, decoding,
// passing on.
func BenchmarkReader(b *testing.B) { llmtest.BenchChunks(b, over(b, canned{body: benchBody()})) }

// BenchmarkLoopback is the same from a server on this machine that flushes
// every chunk.
func BenchmarkLoopback(b *testing.B) {
	llmtest.BenchChunks(b, loopback(b, llmtest.Piecewise(benchBody(), llmtest.Behind("\r\n\r\n")), nil))
}
