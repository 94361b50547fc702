package responses_test

import (
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/responsestest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestModel runs the suite of all models against a fake server, in every form
// that servers of this wire have.
func TestModel(t *testing.T) {
	for name, form := range map[string]responsestest.Form{
		"plain":     {},
		"crlf":      {Newline: "\r\n", Comments: true, Extra: true},
		"cr":        {Newline: "\r", Unnamed: true, Done: true},
		"shifty":    {Shifty: true, NoItems: true},
		"no index":  {NoIndex: true, Spoken: true},
		"bare":      {Bare: true, NoItems: true},
		"no deltas": {NoDeltas: true, Unnamed: true},
	} {
		t.Run(name, func(t *testing.T) {
			porttest.Model(porttest.Bubble(t), responsestest.With(form).Harness())
		})
	}
}

// TestModels runs the suite of Models with providers of this type.
func TestModels(t *testing.T) {
	known := domain.ModelRef{Provider: "one", Model: "gpt-5-mini"}
	porttest.Models(porttest.T(t), porttest.ModelsHarness{
		Known: known, Keyless: domain.ModelRef{Provider: "locked", Model: "m"},
		Open: func(t porttest.TB) ports.Models {
			ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{
				{Name: "one", Type: "x", Models: map[string]llm.ModelFacts{known.Model: {}}},
				{Name: "locked", Type: "x", APIKey: func() (string, error) { return " ", nil }, Models: map[string]llm.ModelFacts{"m": {}}},
			}}, map[string]llm.Opener{"x": responsestest.Dialect().Opener})
			if err != nil {
				t.Fatalf("%v", err)
			}
			t.Cleanup(ms.Close)
			return ms
		},
	})
}

// TestProbe: the provider's models are listed, a wrong key is told.
func TestProbe(t *testing.T) {
	d := responsestest.Dialect()
	p := llm.Provider{Client: llmtest.Connect(porttest.T(t), d.New()), ProviderConfig: d.Provider("fake", llmtest.Host)}
	if names, err := d.Opener.Probe(t.Context(), p); err != nil || !slices.Equal(names, []string{d.Model}) {
		t.Errorf("%v, %v", names, err)
	}
	p.APIKey = func() (string, error) { return "another-key", nil }
	if _, err := d.Opener.Probe(t.Context(), p); !domain.HasCode(err, domain.AuthRequired) {
		t.Errorf("%v", err)
	}
	p.BaseURL = llmtest.Host + "/v2"
	if _, err := d.Opener.Probe(t.Context(), p); !domain.HasCode(err, domain.ProviderRejected) {
		t.Errorf("%v", err)
	}
}

// TestSocket runs what needs a real socket.
func TestSocket(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	responsestest.Dialect().Socket(t)
}
