// Package gemini speaks the native wire of Google's Gemini models:
// streamGenerateContent, as the Gemini API and Vertex AI offer it and as
// proxies repeat it.
//
// A reply is complete when a finish reason was seen that is a good end, and not
// before. Thought signatures go back with exactly the parts they came with, to
// the model they came from; a history of another model is sent without any,
// and where a model insists on one, with the value that its makers name for
// that.
//
// Read next: request.go and history.go (what is sent), keep.go (what goes
// back), read.go and reply.go (what becomes of an answer), options.go (what a
// server may refuse).
package gemini

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

// DefaultBaseURL is where the Gemini API answers.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// Opener opens Gemini models. The provider's base_url is the address up to and
// including the version, or, for Vertex AI, up to "publishers/google"; "" is
// DefaultBaseURL. The key is sent as x-goog-api-key; a server that wants
// something else gets it by configured headers.
func Opener() llm.Opener {
	return llm.Opener{
		Open:     func(p llm.Provider, info domain.ModelInfo) (ports.Model, error) { return New(p, info) },
		Complete: complete,
		Probe:    probe,
	}
}

// Model is one model of one server. It is safe for concurrent use.
type Model struct {
	provider llm.Provider
	info     domain.ModelInfo
	url      string
	family   family
	// dropped are optional things this server has refused for this model; they
	// are left out from then on.
	dropped atomic.Uint32
}

var _ ports.Model = (*Model)(nil)

// New returns a model without asking its server anything. It fails with
// InvalidArgument when the provider's address cannot be one.
func New(p llm.Provider, info domain.ModelInfo) (*Model, error) {
	base, err := endpoint(p.ProviderConfig)
	if err != nil {
		return nil, err
	}
	u := *base
	u.Path, u.RawPath = base.Path+modelPath(info.Ref.Model)+":streamGenerateContent", ""
	query := u.Query()
	query.Set("alt", "sse")
	u.RawQuery = query.Encode()
	return &Model{provider: p, info: info, url: u.String(), family: familyOf(info.Ref.Model)}, nil
}

// endpoint reads a base URL; its path has no slash at the end.
func endpoint(p llm.ProviderConfig) (*url.URL, error) {
	u, err := p.Address(DefaultBaseURL, DefaultBaseURL, "/models")
	if err != nil {
		return nil, err
	}
	if u.Host == "generativelanguage.googleapis.com" {
		// The address of its other wire, and the one without a version, are
		// what people have at hand.
		if u.Path = strings.TrimSuffix(u.Path, "/openai"); u.Path == "" {
			u.Path = "/v1beta"
		}
	}
	return u, nil
}

// modelPath is the path of a model below the base: its name may be given bare
// or as the API lists it.
func modelPath(model string) string {
	if strings.HasPrefix(model, "models/") || strings.HasPrefix(model, "tunedModels/") {
		return "/" + model
	}
	return "/models/" + model
}

// Info describes the model.
func (m *Model) Info() domain.ModelInfo { return m.info }

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return llm.Stream(ctx, m.provider.MaxRetries, func(ctx context.Context, emit llm.Emit) error {
		return m.attempt(ctx, req, emit)
	})
}

// attempt sends the request once. A server that refuses an optional thing is
// asked again without it at once: that is no failure of the exchange.
func (m *Model) attempt(ctx context.Context, req domain.ModelRequest, emit llm.Emit) error {
	forget := option(0)
	for {
		dropped := option(m.dropped.Load()) | forget
		x, err := m.start(ctx, req, dropped)
		if err == nil {
			return m.receive(x, emit)
		}
		drop := m.refusedOption(err, req, dropped)
		if drop == 0 {
			return err
		}
		// What is wrong with one history says nothing of the next.
		forget |= drop & dropForeign
		m.dropped.Or(uint32(drop &^ dropForeign))
	}
}

func (m *Model) start(ctx context.Context, req domain.ModelRequest, dropped option) (*llm.Exchange, error) {
	body, err := m.render(req, dropped)
	if err != nil {
		return nil, err
	}
	return m.provider.Start(ctx, llm.Call{URL: m.url, Body: body, Authorize: authorize, Public: m.public(req)})
}

func authorize(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) }

// public are the parts of a request that an error may name.
func (m *Model) public(req domain.ModelRequest) []string {
	words := []string{
		m.info.Ref.Model, "generationConfig", "thinkingConfig", "thinkingBudget", "thinkingLevel", "includeThoughts", "maxOutputTokens",
		"functionDeclarations", "parametersJsonSchema", "functionCall", "functionResponse", "thoughtSignature", "systemInstruction", "inlineData",
	}
	for _, t := range req.Tools {
		words = append(words, t.Name)
	}
	return words
}
