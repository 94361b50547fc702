package openai_test

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/chattest"
	"github.com/berth-dev/berth/adapters/llm/openai"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestModel runs the suite of all models against a fake server, in every
// dialect that servers of this wire speak.
func TestModel(t *testing.T) {
	for name, d := range map[string]llmtest.Dialect{
		"plain":         chattest.Dialect(),
		"crlf":          chattest.With(chattest.Form{Newline: "\r\n", Comments: true, EmptyIDs: true, Extra: true}),
		"cr":            chattest.With(chattest.Form{Newline: "\r", Tight: true, BOM: true, LastBare: true}),
		"no index":      chattest.With(chattest.Form{NoIndex: true, NoDone: true}),
		"reasoning":     chattest.With(chattest.Form{Reasoning: "reasoning", Pretty: true, Comments: true}),
		"openrouter":    chattest.OpenRouter(),
		"azure":         chattest.Azure(),
		"azure classic": chattest.AzureClassic(),
	} {
		t.Run(name, func(t *testing.T) { porttest.Model(porttest.Bubble(t), d.Harness()) })
	}
}

// TestModels runs the suite of Models with providers of this type.
func TestModels(t *testing.T) {
	known := domain.ModelRef{Provider: "one", Model: "gpt-4o-mini"}
	locked := domain.ModelRef{Provider: "locked", Model: "m"}
	porttest.Models(porttest.T(t), porttest.ModelsHarness{
		Known: known, Keyless: locked,
		Open: func(t porttest.TB) ports.Models {
			ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{
				{Name: "one", Type: "openai-compatible", BaseURL: "http://127.0.0.1:1/v1", Models: map[string]llm.ModelFacts{known.Model: {}}},
				{Name: "locked", Type: "openai-compatible", BaseURL: "http://127.0.0.1:1/v1", APIKey: func() (string, error) { return " ", nil }, Models: map[string]llm.ModelFacts{"m": {}}},
			}}, map[string]llm.Opener{"openai-compatible": openai.Opener()})
			if err != nil {
				t.Fatalf("%v", err)
			}
			t.Cleanup(ms.Close)
			return ms
		},
	})
}

// TestProbe: the provider's models are listed where it tells them, and a wrong
// key is told.
func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		dialect llmtest.Dialect
		want    []string
	}{
		"plain":         {chattest.Dialect(), []string{"fake-1"}},
		"openrouter":    {chattest.OpenRouter(), []string{"anthropic/fake-1"}},
		"azure":         {chattest.Azure(), nil},
		"azure classic": {chattest.AzureClassic(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := llm.Provider{Client: llmtest.Connect(porttest.T(t), c.dialect.New()), ProviderConfig: c.dialect.Provider("fake", llmtest.Host)}
			if names, err := c.dialect.Opener.Probe(t.Context(), p); err != nil || !slices.Equal(names, c.want) {
				t.Errorf("%v, %v", names, err)
			}
			p.APIKey = func() (string, error) { return "another-key", nil }
			if _, err := c.dialect.Opener.Probe(t.Context(), p); !domain.HasCode(err, domain.AuthRequired) {
				t.Errorf("with another key: %v", err)
			}
			p.BaseURL = "nowhere"
			if _, err := c.dialect.Opener.Probe(t.Context(), p); !domain.HasCode(err, domain.InvalidArgument) {
				t.Errorf("without an address: %v", err)
			}
		})
	}
}

// TestSocket runs what needs a real socket.
func TestSocket(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	chattest.Dialect().Socket(t)
}
