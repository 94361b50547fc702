package openai

import (
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// TestModel runs the suite of all models against a fake server, in every
// dialect that servers of this wire speak.
func TestModel(t *testing.T) {
	for name, d := range map[string]dialect{
		"plain":     {},
		"crlf":      {newline: "\r\n", comments: true, emptyIDs: true, extra: true},
		"cr":        {newline: "\r", tight: true, bom: true, lastBare: true},
		"no index":  {noIndex: true, noDone: true},
		"reasoning": {reasoning: "reasoning", pretty: true, comments: true},
	} {
		t.Run(name, func(t *testing.T) {
			porttest.Model(porttest.Bubble(t), porttest.ModelHarness{
				Retries: 2, FirstByte: llm.DefaultTimeout, Idle: llm.DefaultIdle,
				Serve: func(t porttest.TB, replies ...porttest.Reply) porttest.Served {
					server := &fakeServer{dialect: d, replies: replies}
					return porttest.Served{
						Model: open(t, serve(t, server)), Key: canary,
						Requests: func() int { return int(server.requests.Load()) },
						Running:  func() int { return int(server.running.Load()) },
					}
				},
			})
		})
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
			}}, map[string]llm.Opener{"openai-compatible": Opener()})
			if err != nil {
				t.Fatalf("%v", err)
			}
			t.Cleanup(ms.Close)
			return ms
		},
	})
}
