package bedrock_test

import (
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/bedrock"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// provider is a provider of a form with the key it wants.
func provider(f bedrocktest.Form, d llmtest.Dialect) llm.ProviderConfig {
	cfg := d.Provider("fake", llmtest.Host)
	cfg.APIKey = func() (string, error) { return f.Key(), nil }
	cfg.MaxRetries = llmtest.Retries
	return cfg
}

// harness is the suite over a server of a form.
func harness(f bedrocktest.Form) porttest.ModelHarness {
	d := f.Dialect()
	h := d.Harness()
	h.Serve = func(t porttest.TB, replies ...porttest.Reply) porttest.Served {
		t.Helper()
		server := d.New().Replies(replies...)
		served := server.Served()
		served.Key = f.Key()
		served.Model = d.Open(t, llm.Provider{Client: llmtest.Connect(t, server), ProviderConfig: provider(f, d)})
		return served
	}
	return h
}

// TestModel runs the suite of all models against a fake server, in every form
// that servers of this wire have.
func TestModel(t *testing.T) {
	for name, f := range map[string]bedrocktest.Form{
		"an API key":    {},
		"an access key": {Signed: true},
		"extra":         {Extra: true, Starts: true, Guarded: true},
		"Nova":          {Model: bedrocktest.Nova, Starts: true},
		"Llama":         {Model: bedrocktest.Llama, Signed: true, Extra: true},
	} {
		t.Run(name, func(t *testing.T) { porttest.Model(porttest.Bubble(t), harness(f)) })
	}
}

// TestModels runs the suite of Models with providers of this type.
func TestModels(t *testing.T) {
	known := domain.ModelRef{Provider: "one", Model: "anthropic.claude-sonnet-4-20250514-v1:0"}
	locked := domain.ModelRef{Provider: "locked", Model: "m"}
	porttest.Models(porttest.T(t), porttest.ModelsHarness{
		Known: known, Keyless: locked,
		Open: func(t porttest.TB) ports.Models {
			ms, err := llm.New(llm.Config{Providers: []llm.ProviderConfig{
				{Name: "one", Type: "bedrock", BaseURL: bedrock.BaseURL("us-east-1"), Models: map[string]llm.ModelFacts{known.Model: {}}},
				{
					Name: "locked", Type: "bedrock", BaseURL: bedrock.BaseURL("us-east-1"),
					APIKey: func() (string, error) { return " ", nil }, Models: map[string]llm.ModelFacts{"m": {}},
				},
			}}, map[string]llm.Opener{"bedrock": bedrock.Opener()})
			if err != nil {
				t.Fatalf("%v", err)
			}
			t.Cleanup(ms.Close)
			return ms
		},
	})
}

// TestProbe: the models and profiles of a region are listed, and a wrong key
// is told from a good one.
func TestProbe(t *testing.T) {
	for _, f := range []bedrocktest.Form{{}, {Signed: true}} {
		d := f.Dialect()
		p := llm.Provider{Client: llmtest.Connect(porttest.T(t), d.New()), ProviderConfig: provider(f, d)}
		names, err := d.Opener.Probe(t.Context(), p)
		if err != nil || !slices.Equal(names, []string{"anthropic.claude-sonnet-4-5-20250929-v1:0", bedrocktest.Claude}) {
			t.Errorf("signed %v: %q, %v", f.Signed, names, err)
		}
		p.APIKey = func() (string, error) { return "another", nil }
		if _, err := d.Opener.Probe(t.Context(), p); domain.CodeOf(err) != domain.AuthRequired || !strings.Contains(err.Error(), "refused its API key") {
			t.Errorf("signed %v, a wrong key: %v", f.Signed, err)
		}
	}
}

// TestSocket runs what needs a real socket.
func TestSocket(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	bedrocktest.Dialect().Socket(t)
}
