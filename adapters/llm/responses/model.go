// Package responses speaks OpenAI's Responses wire. A conversation is a list
// of items (messages, calls, outputs, reasoning), and a reply is a stream of
// typed events about the items it adds to that list.
//
// Nothing is stored at the provider: every request holds the whole
// conversation, and the reasoning of earlier replies goes back encrypted, in
// its place between the texts and calls it led to.
//
// A reply is complete when the closing event of the response has come, and not
// before. What the closing event of an item says must agree with the pieces
// that came before it; calls are passed on all together or not at all.
//
// Read next: request.go (what is sent), reply.go (what becomes of the events),
// items.go (which event belongs to which item), keep.go (what goes back).
package responses

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// DefaultURL is where OpenAI answers.
const DefaultURL = "https://api.openai.com/v1"

// Opener opens models of OpenAI, or of another server that speaks the wire.
// The provider's base_url is the address up to and including the version; ""
// is DefaultURL.
func Opener() llm.Opener {
	return llm.Opener{
		Open:     func(p llm.Provider, info domain.ModelInfo) (ports.Model, error) { return New(p, info) },
		Complete: complete,
		Probe:    probe,
	}
}

// complete says that no model hears: the items of the wire are made of texts,
// images and files.
func complete(info domain.ModelInfo) domain.ModelInfo {
	info.Audio = false
	return info
}

// Model is one model of one server. It is safe for concurrent use.
type Model struct {
	provider llm.Provider
	info     domain.ModelInfo
	url      string
	// dropped are optional fields this server has refused; they are left out
	// from then on.
	dropped atomic.Uint32
}

var _ ports.Model = (*Model)(nil)

// New returns a model without asking its server anything. It fails with
// InvalidArgument when the provider's address cannot be one.
func New(p llm.Provider, info domain.ModelInfo) (*Model, error) {
	address, err := endpoint(p.ProviderConfig, "/responses")
	if err != nil {
		return nil, err
	}
	return &Model{provider: p, info: complete(info), url: address}, nil
}

// endpoint puts a path behind the base URL.
func endpoint(p llm.ProviderConfig, path string) (string, error) {
	u, err := p.Address(DefaultURL, DefaultURL, "/responses")
	if err != nil {
		return "", err
	}
	u.Path += path
	return u.String(), nil
}

// authorize puts the key into the header that the host wants it in.
func authorize(address string) func(http.Header, string) {
	return func(h http.Header, key string) {
		if u, err := url.Parse(address); err == nil && strings.HasSuffix(u.Hostname(), ".azure.com") {
			h.Set("Api-Key", key)
			return
		}
		h.Set("Authorization", "Bearer "+key)
	}
}

// probe lists the models, which costs nothing.
func probe(ctx context.Context, p llm.Provider) ([]string, error) {
	address, err := endpoint(p.ProviderConfig, "/models")
	if err != nil {
		return nil, err
	}
	return p.FetchNames(ctx, llm.Call{URL: address, Authorize: authorize(address)})
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
	here := option(0) // left out of this request alone
	for {
		dropped := option(m.dropped.Load()) | here
		x, err := m.start(ctx, req, dropped)
		if err == nil {
			return m.receive(x, emit)
		}
		drop, once := refusedOption(err, req.Thoughts, dropped)
		switch {
		case drop == 0:
			return err
		case once:
			here |= drop
		default:
			m.dropped.Or(uint32(drop))
		}
	}
}

func (m *Model) start(ctx context.Context, req domain.ModelRequest, dropped option) (*llm.Exchange, error) {
	body, err := m.render(req, dropped)
	if err != nil {
		return nil, err
	}
	return m.provider.Start(ctx, llm.Call{URL: m.url, Body: body, Authorize: authorize(m.url), Public: m.public(req)})
}

// public are the parts of a request that an error may name.
func (m *Model) public(req domain.ModelRequest) []string {
	words := []string{
		m.info.Ref.Model, "reasoning.encrypted_content", "max_output_tokens", "prompt_cache_key", "instructions",
		"function_call_output", "encrypted_content", "input_image", "input_audio", "input_text",
	}
	for _, t := range req.Tools {
		words = append(words, t.Name)
	}
	return words
}

// receive reads one answer, a stream or a single object.
func (m *Model) receive(x *llm.Exchange, emit llm.Emit) error {
	defer x.Close()
	r := &reply{model: m, x: x, emit: emit}
	err := r.read()
	if err != nil {
		r.costs()
	}
	return err
}

func (r *reply) read() error {
	events := llm.NewEvents(r.x, r.alive)
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
		return r.end()
	}
	for {
		ev, err := events.Next()
		if err != nil {
			return r.x.Cut(err)
		}
		done, err := r.event(ev)
		if err != nil {
			return err
		}
		if done {
			r.x.Drain()
			return r.end()
		}
	}
}
