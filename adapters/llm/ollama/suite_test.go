package ollama_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest/ollamatest"
	"github.com/berth-dev/berth/adapters/llm/ollama"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestModel runs the suite of all models against a fake server, in the ways
// that servers of this wire differ.
func TestModel(t *testing.T) {
	for name, v := range map[string]ollamatest.Variant{
		"plain":   {},
		"crlf":    {CRLF: true, Extra: true, Strings: true},
		"bare":    {Blank: true, LastBare: true, Late: true},
		"old":     {Version: "0.5.7"},
		"no show": {Silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			porttest.Model(porttest.Bubble(t), v.Dialect().Harness())
		})
	}
}

// TestModels runs the suite of Models with providers of this type.
func TestModels(t *testing.T) {
	known := domain.ModelRef{Provider: "one", Model: "qwen3:8b"}
	locked := domain.ModelRef{Provider: "locked", Model: "m"}
	porttest.Models(porttest.T(t), porttest.ModelsHarness{
		Known: known, Keyless: locked,
		Open: func(t porttest.TB) ports.Models {
			ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{
				{Name: "one", Type: "ollama", Models: map[string]llm.ModelFacts{known.Model: {}}},
				{Name: "locked", Type: "ollama", APIKey: func() (string, error) { return " ", nil }, Models: map[string]llm.ModelFacts{"m": {}}},
			}}, map[string]llm.Opener{"ollama": ollama.Opener()})
			if err != nil {
				t.Fatalf("%v", err)
			}
			t.Cleanup(ms.Close)
			return ms
		},
	})
}

// TestSocket runs what needs a real socket.
func TestSocket(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ollamatest.Dialect().Socket(t)
}
