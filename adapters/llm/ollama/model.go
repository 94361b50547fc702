// Package ollama speaks Ollama's own chat API: one JSON object a line, calls
// whole and mostly without ids, and a context window that the request sets.
//
// The window is why this package exists beside the compatible wire. Ollama
// loads a model with a small one unless it is told, and by default cuts the
// start of a conversation that does not fit, instructions and tools included,
// without a word. So the window is always set (facts.go), the server is asked
// to refuse what does not fit and not to cut it, a server too old for that is
// not sent what may not fit (weight.go), and a reply whose prompt was cut all
// the same is a failure (reply.go).
//
// Read next: facts.go, request.go, reply.go.
package ollama

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// DefaultURL is where Ollama listens unless told otherwise.
const DefaultURL = "http://127.0.0.1:11434"

// Opener opens models of an Ollama. The provider's base_url is the address of
// the server, DefaultURL when it is "". One that ends in /v1 or /api is
// understood. A key is sent as a bearer token where there is one.
func Opener() llm.Opener {
	return llm.Opener{
		Open:     func(p llm.Provider, info domain.ModelInfo) (ports.Model, error) { return New(p, info) },
		Complete: complete,
		Probe:    probe,
	}
}

// Model is one model of one Ollama. It is safe for concurrent use.
type Model struct {
	provider llm.Provider
	info     domain.ModelInfo // before the server was asked
	base     string
	cloud    bool // the server is Ollama's own service

	// learned is what the server said of the model; nil until the first request.
	learned atomic.Pointer[facts]
	// dropped are optional fields this server has refused; they are left out
	// from then on.
	dropped atomic.Uint32
}

var _ ports.Model = (*Model)(nil)

// New returns a model without asking its server anything. It fails with
// InvalidArgument when the provider's address cannot be one.
func New(p llm.Provider, info domain.ModelInfo) (*Model, error) {
	base, err := address(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	if p.Models[info.Ref.Model].ContextWindow == 0 {
		info.ContextWindow = min(info.ContextWindow, DefaultWindow)
	}
	return &Model{provider: p, info: info, base: base, cloud: hosted(base)}, nil
}

// address returns the server's address without a path of an API.
func address(p llm.ProviderConfig) (string, error) {
	u, err := p.Address(DefaultURL, DefaultURL, "/chat/completions", "/chat", "/v1", "/api")
	if err != nil {
		return "", err
	}
	u.RawQuery = ""
	return u.String(), nil
}

// hosted reports whether an address is of Ollama's own service.
func hosted(base string) bool {
	u, err := url.Parse(base)
	return err == nil && (u.Hostname() == "ollama.com" || strings.HasSuffix(u.Hostname(), ".ollama.com"))
}

func authorize(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

// Info describes the model. What only the server knows, the window among it,
// is there once the first request was sent.
func (m *Model) Info() domain.ModelInfo {
	info := m.info
	if f := m.learned.Load(); f != nil {
		f.apply(&info, m.provider.Models[info.Ref.Model])
	}
	return info
}

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return llm.Stream(ctx, m.provider.MaxRetries, func(ctx context.Context, emit llm.Emit) error {
		return m.explain(m.attempt(ctx, req, emit))
	})
}

// attempt sends the request once. A server that refuses an optional field is
// asked again without it at once: that is no failure of the exchange.
func (m *Model) attempt(ctx context.Context, req domain.ModelRequest, emit llm.Emit) error {
	f, err := m.learn(ctx)
	if err != nil {
		return err
	}
	if f.known && !f.tools && len(req.Tools) > 0 {
		return m.toolless()
	}
	for {
		dropped := option(m.dropped.Load())
		if err := m.fits(req, f, dropped); err != nil {
			return err
		}
		x, err := m.start(ctx, req, f, dropped)
		if err == nil {
			return m.receive(x, f, emit)
		}
		drop := refusedOption(err, dropped)
		if drop == 0 {
			return err
		}
		m.dropped.Or(uint32(drop))
	}
}

func (m *Model) start(ctx context.Context, req domain.ModelRequest, f *facts, dropped option) (*llm.Exchange, error) {
	body, err := m.render(req, f, dropped)
	if err != nil {
		return nil, err
	}
	return m.provider.Start(ctx, llm.Call{
		URL: m.base + "/api/chat", Body: body, Authorize: authorize, Public: m.public(req),
		// Ollama sends nothing while the model writes a call, and a machine that
		// is slow to begin is slow to go on.
		Patience: m.provider.FirstByte(),
	})
}

// public are the parts of a request that an error may name.
func (m *Model) public(req domain.ModelRequest) []string {
	words := []string{m.info.Ref.Model, "tool_call_id", "num_predict"}
	for _, t := range req.Tools {
		words = append(words, t.Name)
	}
	return words
}

// receive reads one answer.
func (m *Model) receive(x *llm.Exchange, f *facts, emit llm.Emit) error {
	defer x.Close()
	r := &reply{model: m, facts: f, x: x, emit: emit}
	return r.read()
}

// probe asks for the list of models, which costs nothing.
func probe(ctx context.Context, p llm.Provider) ([]string, error) {
	base, err := address(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	var tags struct {
		Models []struct {
			Name  string `json:"name"`
			Model string `json:"model"`
		} `json:"models"`
	}
	if err := p.Fetch(ctx, llm.Call{URL: base + "/api/tags", Authorize: authorize}, &tags); err != nil {
		var coded *domain.Error
		if errors.As(err, &coded) {
			return nil, notRunning(coded, base)
		}
		return nil, err
	}
	names := make([]string, 0, len(tags.Models))
	for _, t := range tags.Models {
		if t.Name == "" {
			t.Name = t.Model
		}
		if t.Name != "" {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
