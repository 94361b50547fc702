// Package bedrock speaks the Converse wire of Amazon Bedrock: one form of
// request for the models of many makers, and answers in binary frames.
//
// A reply is complete when its "messageStop" has come, and not before;
// whatever else ends a stream is a failure. Counts come behind it and are
// waited for only briefly.
//
// The key is either an API key of Bedrock's, which travels with the request,
// or an access key, which signs it (key.go, sigv4.go). Amazon's SDK is not
// used: keys, signature and frames are under five hundred lines, and all else is
// JSON over HTTP, with the limits and errors of every other provider.
//
// Read next: request.go (what is sent), frames.go (the wire), reply.go (what
// becomes of the events), thoughts.go (how each maker's models are told to
// think).
package bedrock

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Opener opens models of Amazon Bedrock. The provider's base_url is the
// address of its runtime in a region, see BaseURL; it must be set. A model is
// named as Bedrock does: by its id, by that of an inference profile, or by an
// ARN. The key is an API key of Bedrock's or what Credentials returns.
func Opener() llm.Opener {
	return llm.Opener{
		Open:     func(p llm.Provider, info domain.ModelInfo) (ports.Model, error) { return New(p, info) },
		Complete: complete,
		Probe:    probe,
	}
}

// Model is one model in one region. It is safe for concurrent use.
type Model struct {
	provider llm.Provider
	info     domain.ModelInfo
	endpoint endpoint
	url      string
	family   family
	// dropped are optional things this model has refused; they are left out
	// from then on.
	dropped atomic.Uint32
}

var _ ports.Model = (*Model)(nil)

// New returns a model without asking anybody. It fails with InvalidArgument
// when the provider's address cannot be one.
func New(p llm.Provider, info domain.ModelInfo) (*Model, error) {
	e, err := parseEndpoint(p.Name, p.BaseURL)
	if err != nil {
		return nil, err
	}
	known := p.Models[info.Ref.Model]
	full := complete(info)
	if known.Thoughts != nil {
		full.Thoughts = *known.Thoughts
	}
	if known.Images != nil {
		full.Images = *known.Images
	}
	return &Model{
		provider: p, info: full, endpoint: e, family: familyOf(info.Ref.Model),
		url: e.runtime("/model/" + escape(info.Ref.Model) + "/converse-stream"),
	}, nil
}

// Info describes the model.
func (m *Model) Info() domain.ModelInfo { return m.info }

// Stream asks the model.
func (m *Model) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return llm.Stream(ctx, m.provider.MaxRetries, func(ctx context.Context, emit llm.Emit) error {
		return m.attempt(ctx, req, emit)
	})
}

// attempt sends the request once. A model that refuses an optional thing is
// asked again without it at once: that is no failure of the exchange.
func (m *Model) attempt(ctx context.Context, req domain.ModelRequest, emit llm.Emit) error {
	var once option // what this conversation alone must do without
	for {
		dropped := option(m.dropped.Load()) | once
		shown, err := m.ask(ctx, req, dropped, emit)
		if err == nil {
			return nil
		}
		var drop option
		if !shown {
			drop = m.refusedOption(err, dropped)
		}
		if drop == 0 {
			return advise(err)
		}
		once |= drop
		m.dropped.Or(uint32(drop &^ ofRequest))
	}
}

// ask sends one request and reads its answer. It reports whether something of
// it was passed on.
func (m *Model) ask(ctx context.Context, req domain.ModelRequest, dropped option, emit llm.Emit) (shown bool, err error) {
	body, err := m.render(req, dropped)
	if err != nil {
		return false, err
	}
	call := m.endpoint.call(m.url)
	call.Body, call.Accept, call.Public = body, eventStream, m.public(req)
	x, err := m.provider.Start(ctx, call)
	if err != nil {
		return false, err
	}
	defer x.Close()
	r := newReply(m, x, emit)
	if err = r.read(); err != nil {
		r.costs()
	}
	return r.shown, err
}

// eventStream is the type of an answer.
const eventStream = "application/vnd.amazon.eventstream"

// public are the parts of a request that an error may name.
func (m *Model) public(req domain.ModelRequest) []string {
	words := []string{m.info.Ref.Model, "additionalModelRequestFields", "inferenceConfig", "reasoningContent", "reasoningConfig", "budget_tokens", "output_config"}
	for _, t := range req.Tools {
		words = append(words, t.Name)
	}
	return words
}

// BaseURL returns the address of Bedrock's runtime in a region, such as
// "us-east-1"; "" for no region.
func BaseURL(region string) string {
	switch {
	case region == "":
		return ""
	case strings.HasPrefix(region, "cn-"):
		return "https://bedrock-runtime." + region + ".amazonaws.com.cn"
	}
	return "https://bedrock-runtime." + region + ".amazonaws.com"
}

// endpoint is where a provider answers.
type endpoint struct {
	provider string
	base     url.URL // without a query
	region   string  // "" when the address does not name it
}

// parseEndpoint reads a provider's base_url. The region is that of the host,
// else that of the query: "https://gateway.example/aws?region=eu-west-1".
func parseEndpoint(name, base string) (endpoint, error) {
	u, ok := llm.HTTPAddress(base)
	if !ok {
		return endpoint{}, domain.Errorf(domain.InvalidArgument,
			"providers.%s.base_url must be the address of a region, such as \"%s\"; AWS_REGION sets it", name, BaseURL("us-east-1"))
	}
	e := endpoint{provider: name, base: *u}
	labels := strings.Split(u.Hostname(), ".")
	for i, label := range labels[:len(labels)-1] {
		switch label {
		case "bedrock-runtime", "bedrock-runtime-fips", "bedrock", "bedrock-fips":
			e.region = labels[i+1]
		}
	}
	if region := u.Query().Get("region"); region != "" {
		e.region = region
	}
	e.base.RawQuery, e.base.Fragment, e.base.RawPath = "", "", ""
	e.base.Path = strings.TrimRight(u.Path, "/")
	return e, nil
}

// runtime returns the address of an encoded path behind the base.
func (e endpoint) runtime(path string) string { return e.base.String() + path }

// call returns a call that carries the provider's key, or is signed with it.
func (e endpoint) call(address string) llm.Call {
	return llm.Call{URL: address, Sign: e.authorize, Secrets: secrets}
}

func (e endpoint) authorize(req *http.Request, body []byte, key string, now time.Time) error {
	c, signs, err := parseKey(key)
	switch {
	case err != nil:
		return domain.Errorf(domain.AuthRequired, "provider %q: %s", e.provider, err.Error()).
			With("provider", e.provider).With("key", "missing")
	case !signs:
		req.Header.Set("Authorization", "Bearer "+key)
		return nil
	case e.region == "":
		return domain.Errorf(domain.InvalidArgument,
			"providers.%s.base_url names no region, which an access key needs to sign with; put \"?region=us-east-1\" or the like behind it", e.provider)
	}
	c.sign(req, body, e.region, signingName, now)
	return nil
}
