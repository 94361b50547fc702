package llmtest

import (
	"cmp"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// Retries is how many attempts the models of Serve add to a failed one.
const Retries = 2

// Info is what the models of Serve say of themselves: they see and hear.
func (d Dialect) Info() domain.ModelInfo {
	return domain.ModelInfo{
		Ref: domain.ModelRef{Provider: "fake", Model: d.Model}, Title: "fake", Tools: true, Images: true, Audio: true, Thoughts: true,
		ContextWindow: 200_000, MaxOutput: 32_000,
	}
}

// Serve connects a model of the dialect to a fake server with replies.
func (d Dialect) Serve(t porttest.TB, replies ...porttest.Reply) porttest.Served {
	t.Helper()
	server := d.New().Replies(replies...)
	served := server.Served()
	served.Model = d.Open(t, llm.Provider{Client: Connect(t, server), ProviderConfig: d.config()})
	return served
}

func (d Dialect) config() llm.ProviderConfig {
	cfg := d.Provider("fake", Host)
	cfg.MaxRetries = Retries
	return cfg
}

// Open opens the dialect's model over a provider.
func (d Dialect) Open(t porttest.TB, p llm.Provider) ports.Model {
	t.Helper()
	m, err := d.Opener.Open(p, d.Info())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return m
}

// Harness is the model suite over the dialect.
func (d Dialect) Harness() porttest.ModelHarness {
	return porttest.ModelHarness{
		Serve: d.Serve, Retries: Retries, FirstByte: llm.DefaultTimeout, Idle: cmp.Or(d.Idle, llm.DefaultIdle),
		NoThoughtCount: d.NoThoughtCount, NoCacheCount: d.NoCacheCount,
	}
}
