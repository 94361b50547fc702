// Package anthropic speaks the Messages wire, which Anthropic defined and
// servers of DeepSeek, Moonshot, Z.ai, Ollama and others share. The reader
// takes what they leave out; the writer sends nothing that Anthropic refuses.
//
// A reply is complete when the stream has said message_stop after a stop
// reason that is a good end, and not before. Tool calls are passed on only by
// a complete reply, all of them whole or none.
//
// Models check the thoughts they are given back: the blocks of a reply are
// kept as they came and in their order (keep.go, prefix.go), and a request
// begins with the same bytes as the one before it, which is also what makes the
// provider's cache work (cache.go).
//
// Read next: request.go and messages.go (what is sent), reply.go (what becomes
// of the events), amend.go (what is asked again, and how).
package anthropic

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

// DefaultURL is where the provider answers unless configured otherwise.
const DefaultURL = "https://api.anthropic.com/v1"

const (
	officialHost = "api.anthropic.com"
	version      = "2023-06-01" // of the wire
)

// Opener opens models of servers that speak Messages. The provider's base_url
// is the address up to and including the version; "" is DefaultURL.
func Opener() llm.Opener {
	return llm.Opener{
		Open:     func(p llm.Provider, info domain.ModelInfo) (ports.Model, error) { return New(p, info) },
		Complete: complete,
		Probe:    probe,
		Warn:     warn,
	}
}

// Model is one model of one server. It is safe for concurrent use.
type Model struct {
	provider llm.Provider
	info     domain.ModelInfo
	kind     llm.Claude
	url      string
	official bool // Anthropic itself answers
	// dropped are optional things this server has refused; they are left out
	// from then on.
	dropped atomic.Uint32
	// most is the longest reply that the server allows, once it has said so.
	most atomic.Int64
}

var _ ports.Model = (*Model)(nil)

// New returns a model without asking its server anything. It fails with
// InvalidArgument when the provider's address cannot be one.
func New(p llm.Provider, info domain.ModelInfo) (*Model, error) {
	u, err := base(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	info.Audio = false // the wire has none
	return &Model{
		provider: p, info: info, kind: familyOf(info.Ref.Model),
		url: u.JoinPath("messages").String(), official: u.Hostname() == officialHost,
	}, nil
}

// base returns the address that the paths of the wire are put behind.
func base(p llm.ProviderConfig) (*url.URL, error) {
	u, err := p.Address(DefaultURL, DefaultURL, "/messages")
	if err != nil {
		return nil, err
	}
	if u.Path == "" && u.Hostname() == officialHost {
		u.Path = "/v1"
	}
	return u, nil
}

// warn tells of an address without the version of the wire. Other tools want
// it that way and add the version themselves.
func warn(p llm.ProviderConfig) []string {
	u, err := base(p)
	if err != nil {
		return nil
	}
	last := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	if len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return nil
	}
	return []string{"providers." + p.Name + ".base_url names no version: requests go to " + u.JoinPath("messages").Redacted() +
		", but most servers of this type want \"/v1\" at the end of base_url"}
}

// probe lists the models of a provider.
func probe(ctx context.Context, p llm.Provider) ([]string, error) {
	u, err := base(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	u = u.JoinPath("models")
	q := u.Query()
	q.Set("limit", "1000")
	u.RawQuery = q.Encode()
	return p.FetchNames(ctx, llm.Call{URL: u.String(), Headers: headers(""), Authorize: authorize(p)})
}

// authorize returns how the key is sent, nil where a configured header takes
// its place.
func authorize(p llm.Provider) func(http.Header, string) {
	for name := range p.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil
		}
	}
	return func(h http.Header, key string) { h.Set("X-Api-Key", key) }
}

func headers(beta string) map[string]string {
	h := map[string]string{"Anthropic-Version": version}
	if beta != "" {
		h["Anthropic-Beta"] = beta
	}
	return h
}

// Info describes the model.
func (m *Model) Info() domain.ModelInfo { return m.info }

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	var a amends
	return llm.Stream(ctx, m.provider.MaxRetries, func(ctx context.Context, emit llm.Emit) error {
		return m.attempt(ctx, req, &a, emit)
	})
}

// attempt sends the request once. A server that refuses a part of it that can
// be left out is asked again without it at once: that is no failure of the
// exchange.
func (m *Model) attempt(ctx context.Context, req domain.ModelRequest, a *amends, emit llm.Emit) error {
	for {
		sent := m.plan(req, *a)
		shown := false
		x, err := m.start(ctx, req, sent)
		if err == nil {
			shown, err = m.receive(x, sent, emit)
		}
		if err == nil || shown || !m.amend(err, sent, a) {
			return err
		}
	}
}

func (m *Model) start(ctx context.Context, req domain.ModelRequest, sent *plan) (*llm.Exchange, error) {
	body, err := m.render(req, sent)
	if err != nil {
		return nil, err
	}
	return m.provider.Start(ctx, llm.Call{
		URL: m.url, Body: body, Headers: headers(sent.beta), Authorize: authorize(m.provider), Public: m.public(req),
	})
}

// public are the parts of a request that an error may name.
func (m *Model) public(req domain.ModelRequest) []string {
	words := []string{
		m.info.Ref.Model, "cache_control", "ephemeral", "budget_tokens", "output_config", "max_tokens", "tool_use_id", "tool_result",
		"input_schema", "signature", "thinking", "redacted_thinking", "tool_choice", "summarized",
	}
	for _, t := range req.Tools {
		words = append(words, t.Name)
	}
	return words
}
