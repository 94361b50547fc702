// Package openai speaks the chat completions wire, which OpenAI defined and
// many servers share: OpenRouter, Ollama, llama.cpp, vLLM, DeepSeek, Gemini's
// compatible endpoint and others. They share it loosely, so the reader takes
// every form seen in the field and the writer sends only what all understand.
//
// A reply is complete when a finish reason was seen, and not before: whatever
// else ends a stream is a failure. Tool calls are passed on only by a complete
// reply, all of them whole or none.
//
// OpenAI's own address, OpenRouter and Azure have more than the others
// understand; variant.go holds all of that.
//
// Read next: request.go (what is sent), reply.go (what becomes of the events),
// scan.go (why a text event costs a microsecond), calls.go (which fragment
// belongs to which call).
package openai

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Opener opens models of servers that speak chat completions. The provider's
// base_url is the address up to and including the version, such as
// "http://127.0.0.1:11434/v1"; it must be set.
func Opener() llm.Opener {
	return llm.Opener{
		Open:  func(p llm.Provider, info domain.ModelInfo) (ports.Model, error) { return New(p, info) },
		Probe: probe,
		Warn:  warn,
	}
}

// warn tells of a window that is set and that this wire cannot set: Ollama
// takes it on its own API alone, and cuts what does not fit without a word.
func warn(p llm.ProviderConfig) []string {
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.Port() != ollamaPort {
		return nil
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(p.Models)) {
		if n := p.Models[name].ContextWindow; n > 0 {
			out = append(out, fmt.Sprintf("providers.%s.models.%q.context_window is %d, but Ollama's compatible address ignores it: "+
				"start Ollama with OLLAMA_CONTEXT_LENGTH=%d, or it may silently cut longer conversations", p.Name, name, n, n))
		}
	}
	return out
}

const ollamaPort = "11434"

// Model is one model of one server. It is safe for concurrent use.
type Model struct {
	provider llm.Provider
	info     domain.ModelInfo
	variant  variant
	url      string
	// dropped are optional fields this server has refused; they are left out
	// from then on.
	dropped atomic.Uint32
}

var _ ports.Model = (*Model)(nil)

// New returns a model without asking its server anything. It fails with
// InvalidArgument when the provider's address cannot be one.
func New(p llm.Provider, info domain.ModelInfo) (*Model, error) {
	v := compatible
	if strings.HasPrefix(p.BaseURL, "https://api.openai.com/") {
		v = official
	}
	return newModel(p, info, v)
}

func newModel(p llm.Provider, info domain.ModelInfo, v variant) (*Model, error) {
	u, err := v.base(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	m := &Model{provider: p, info: info, variant: v, url: below(u, completionsPath)}
	if v == official || v == azure && !classic(u) {
		m.dropped.Store(uint32(swapLimit)) // the newer models refuse the old name
	}
	return m, nil
}

const completionsPath = "/chat/completions"

// below returns the address of a path below a base URL.
func below(base *url.URL, path string) string {
	u := *base
	u.Path += path
	return u.String()
}

// Info describes the model.
func (m *Model) Info() domain.ModelInfo { return m.info }

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return llm.Stream(ctx, m.provider.MaxRetries, func(ctx context.Context, emit llm.Emit) error {
		return m.attempt(ctx, req, emit)
	})
}

// attempt sends the request once. A server that refuses an optional field is
// asked again without it at once: that is no failure of the exchange.
func (m *Model) attempt(ctx context.Context, req domain.ModelRequest, emit llm.Emit) error {
	for {
		dropped := option(m.dropped.Load())
		x, err := m.start(ctx, req, dropped)
		if err == nil {
			return m.receive(x, emit)
		}
		drop := refusedOption(err, req.Thoughts, dropped)
		if drop == 0 {
			return err
		}
		m.dropped.Or(uint32(drop))
	}
}

func (m *Model) start(ctx context.Context, req domain.ModelRequest, dropped option) (*llm.Exchange, error) {
	body, err := m.render(req, dropped)
	if err != nil {
		return nil, err
	}
	return m.provider.Start(ctx, llm.Call{
		URL:       m.url,
		Body:      body,
		Authorize: m.variant.authorize,
		Headers:   m.variant.headers(),
		Public:    m.public(req),
	})
}

// public are the parts of a request that an error may name.
func (m *Model) public(req domain.ModelRequest) []string {
	words := []string{m.info.Ref.Model, "stream_options", "include_usage", "max_completion_tokens", "tool_call_id", "reasoning_content", "reasoning_effort", "prompt_cache_key"}
	for _, t := range req.Tools {
		words = append(words, t.Name)
	}
	return words
}

// afterFinish is how long to wait for the usage and the end mark once a reply
// is complete. Some servers send neither and keep the connection open.
const afterFinish = 3 * time.Second

// receive reads one answer, a stream or a single object.
func (m *Model) receive(x *llm.Exchange, emit llm.Emit) error {
	defer x.Close()
	r := newReply(m, x, emit)
	err := r.read()
	if err != nil {
		r.costs()
	}
	return err
}

func (r *reply) read() error {
	events := llm.NewEvents(r.x, func() {
		if r.finish == "" || r.early {
			r.x.Alive()
		}
	})
	first, err := events.First()
	if err != nil {
		return r.x.Cut(err)
	}
	switch first {
	case '<':
		return r.x.NotAnAPI("a web page")
	case '{', '[':
		body, err := events.Rest()
		if err != nil {
			return r.x.Cut(err)
		}
		if err := r.whole(body); err != nil {
			return err
		}
		return r.end(nil)
	}
	for {
		ev, err := events.Next()
		if err != nil {
			return r.end(err)
		}
		done, err := r.event(ev)
		if err != nil {
			return err
		}
		if done {
			if r.finish != "" {
				r.x.Drain()
			}
			return r.end(nil)
		}
	}
}
