package openai

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// dripping answers every request with the same bytes, one at a time.
type dripping string

func (d dripping) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(string(d))))}, nil
}

// FuzzStream: whatever a server sends is a reply or a failure, the same one
// when it comes a byte at a time, and only a reply that is complete requests
// calls.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		data(text("hé😀"), deltaOf(`{"reasoning_content":"hm"}`), calling(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`),
			calling(`{"index":0,"function":{"arguments":"1}"}}`), ended("tool_calls"), `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"cost":0.5}}`, done),
		data(text("a"), ended("length")), data(text("a"), `{"error":{"message":"boom"},"choices":[{"finish_reason":"error"}]}`),
		data(deltaOf(`{"refusal":"no"}`), ended("stop"), done), data(`{"choices":[{"index":0,"error":{"code":502,"message":"x"},"finish_reason":"error"}]}`),
		data(deltaOf(`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}`), deltaOf(`{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}`), ended("stop")),
		strings.ReplaceAll(data(text("a"), ended("stop")), "\n", "\r\n"), ": ping\n\n" + data(deltaOf(`{"content":"a\ud83d"}`), ended("stop")),
		`{"choices":[{"message":{"content":"a","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		`{"error":{"message":"x"}}`, "<html>", "event: error\ndata: {\"message\":\"x\"}\n\n",
	} {
		f.Add([]byte(s))
	}
	ask := func(t *testing.T, rt http.RoundTripper) (string, error) {
		p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{Transport: rt}), ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: "http://fake.invalid"}}
		m, err := newModel(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}}, openRouter)
		if err != nil {
			t.Fatal(err)
		}
		return got(t, m, porttest.SampleRequest())
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		line, err := ask(t, llmtest.Canned(body))
		slowly, slowErr := ask(t, dripping(body))
		if line != slowly || fmt.Sprint(err) != fmt.Sprint(slowErr) {
			t.Fatalf("at once %q, %v\na byte at a time %q, %v", line, err, slowly, slowErr)
		}
		if err != nil && (domain.CodeOf(err) == domain.Internal || strings.Contains(line, ".calls")) {
			t.Fatalf("%q ended with %v", line, err)
		}
	})
}
