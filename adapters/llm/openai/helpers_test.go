package openai

import (
	"encoding/json"
	"flag"
	"net/http"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// canary is the key of the tests.
const canary = llmtest.Canary

// update rewrites golden files.
var update = flag.Bool("update", false, "rewrite golden files")

// serve runs a handler on a network in memory until the case ends, and
// returns a provider that reaches it.
func serve(t porttest.TB, h http.Handler) llm.Provider {
	t.Helper()
	return llm.Provider{Client: llmtest.Connect(t, h), ProviderConfig: llm.ProviderConfig{
		Name: "fake", Type: "openai-chat", BaseURL: llmtest.Host + "/v1", MaxRetries: 2,
		APIKey: func() (string, error) { return canary, nil },
	}}
}

func open(t porttest.TB, p llm.Provider) *Model {
	t.Helper()
	m, err := New(p, domain.ModelInfo{
		Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Title: "fake", Tools: true, Images: true,
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

func js(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
