package bootstrap

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"go.uber.org/fx"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/traces"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// flushLimit is how long the end waits for a collector to take what is left.
const flushLimit = 1500 * time.Millisecond

// newTracer makes spans of events. The collector is reached by the same rules
// as providers: the system's proxy and authorities, and no redirect is
// followed.
func newTracer(lc fx.Lifecycle, cfg *Config, o *options, log ports.Observer) *traces.Tracer {
	client := llm.NewClient(llm.HTTPConfig{Proxy: http.ProxyFromEnvironment})
	c := traces.Config{
		Endpoint: cfg.Telemetry.Endpoint, Client: client.HTTP, Header: cfg.Telemetry.HeaderParts,
		UserAgent: userAgent(), Service: cfg.Telemetry.Service, Version: Version().Version, Instance: o.ids(), Content: cfg.Telemetry.Content, Sample: cfg.Telemetry.Sample,
		Provider: func(name string) string { return providerWord(cfg, name) }, Clock: o.clock, Random: rand.Reader,
		Trouble: func(err error) {
			log.Observe(context.Background(), domain.Trouble{Where: "traces are dropped", Err: err})
		},
	}
	if o.metrics != nil {
		c.Sent = o.metrics.Spans
	}
	if !strings.HasPrefix(cfg.Telemetry.Header.Ref(), "keyring:") { // which is asked when there is something to send
		if _, _, err := c.Header(); err != nil {
			log.Observe(context.Background(), domain.Trouble{Where: "nothing can be traced", Err: err})
		}
	}
	t := traces.New(c)
	lc.Append(fx.StopHook(func(ctx context.Context) error {
		defer client.Close()
		ctx, cancel := context.WithTimeout(ctx, flushLimit)
		defer cancel()
		_ = t.Close(ctx) // what is left is dropped, which is counted
		return nil
	}))
	return t
}

// providerWord is what the conventions of OpenTelemetry call a provider.
func providerWord(cfg *Config, name string) string {
	p, ok := cfg.LookupProvider(name)
	if !ok {
		return name
	}
	switch p.Type {
	case "openai-responses":
		return "openai"
	case "gemini":
		return "gcp.gemini"
	case "bedrock":
		return "aws.bedrock"
	case "azure":
		return "azure.ai.openai"
	case "openai-compatible":
		return name
	}
	return p.Type
}
