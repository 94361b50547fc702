package gemini_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/gemini"
	"github.com/berth-dev/berth/adapters/llm/llmtest/geminitest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestModel runs the suite of all models against a fake server, in every form
// that servers of this wire send.
func TestModel(t *testing.T) {
	for name, shape := range map[string]geminitest.Shape{
		"the API":       {},
		"every part":    {SignAll: true, Counting: true, LF: true},
		"2.5":           {Model: "gemini-2.5-pro", Extra: true},
		"2.5 signed":    {Model: "gemini-2.5-flash", SignAll: true, SplitEnd: true},
		"indented":      {Model: "gemini-3-pro-preview", Indented: true, SplitEnd: true},
		"list":          {List: true, SignAll: true},
		"indented list": {List: true, Indented: true, LF: true, Extra: true},
		"lines":         {Lines: true, LF: true},
	} {
		t.Run(name, func(t *testing.T) { porttest.Model(porttest.Bubble(t), shape.Dialect().Harness()) })
	}
}

// TestModels runs the suite of Models with providers of this type.
func TestModels(t *testing.T) {
	known := domain.ModelRef{Provider: "one", Model: "gemini-2.5-flash"}
	locked := domain.ModelRef{Provider: "locked", Model: "gemini-3-pro"}
	deaf := false
	porttest.Models(porttest.T(t), porttest.ModelsHarness{
		Known: known, Keyless: locked,
		Open: func(t porttest.TB) ports.Models {
			ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{
				{Name: "one", Type: "gemini", Models: map[string]llm.ModelFacts{known.Model: {Audio: &deaf}}},
				{Name: "locked", Type: "gemini", APIKey: func() (string, error) { return " ", nil }, Models: map[string]llm.ModelFacts{locked.Model: {}}},
			}}, map[string]llm.Opener{"gemini": gemini.Opener()})
			if err != nil {
				t.Fatalf("%v", err)
			}
			t.Cleanup(ms.Close)
			if info := ms.Describe(known); info.Audio || !info.Images || !info.Thoughts || info.ContextWindow == 0 {
				t.Errorf("it is described as %+v", info)
			}
			return ms
		},
	})
}

// TestSocket runs what needs a real socket.
func TestSocket(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	geminitest.Dialect().Socket(t)
}
