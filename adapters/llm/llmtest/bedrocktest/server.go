// Package bedrocktest is a fake Amazon Bedrock that speaks the Converse wire,
// as strictly as the real one: it recomputes signatures, refuses what the wire
// does not know, and looks for signed thoughts in what comes back.
package bedrocktest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/bedrock"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/llmtest/bedrocktest/wire"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// The access key of servers whose requests are signed. It is no real one.
const (
	AccessKey    = "ASIACANARY0000000000"
	SecretKey    = "canarySecret/0123456789+abcdefghijklmnopq"
	SessionToken = "canarySession//0123456789=="
)

// Region is that of the fake server.
const Region = "eu-test-1"

// Form is how a fake server speaks and what it wants.
type Form struct {
	Model  string // "" is a Claude
	Signed bool   // requests are signed, in place of carrying the key
	Extra  bool   // fields, headers and events that nobody asked for
	Starts bool   // every block is announced, not only calls
	// Guarded refuses by a guardrail where others filter.
	Guarded bool
}

// Claude, Nova and Llama are models of the fake server.
const (
	Claude = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
	Nova   = "eu.amazon.nova-pro-v1:0"
	Llama  = "arn:aws:bedrock:eu-test-1:123456789012:inference-profile/eu.meta.llama4-scout-17b-instruct-v1:0"
)

// Dialect returns the provider type over a server of the usual form.
func Dialect() llmtest.Dialect { return Form{}.Dialect() }

// Dialect returns the provider type over a server of this form.
func (f Form) Dialect() llmtest.Dialect {
	if f.Model == "" {
		f.Model = Claude
	}
	return llmtest.Dialect{
		Name: "Amazon Bedrock", Type: "bedrock", Path: "/aws?region=" + Region, Model: f.Model,
		New: f.server, Opener: bedrock.Opener(), NoThoughtCount: true,
	}
}

// Key returns the key that a server of this form wants.
func (f Form) Key() string {
	if f.Signed {
		return bedrock.Credentials(AccessKey, SecretKey, SessionToken)
	}
	return llmtest.Canary
}

func (f Form) server() *llmtest.Server {
	s := &lookout{form: f}
	return &llmtest.Server{
		Check: f.check,
		Look:  s.look,
		Play:  s.play,
		Probe: f.probe,
	}
}

// check tells what is wrong with a request before its body is looked at.
func (f Form) check(req *http.Request, body []byte) string {
	path := "/aws/model/" + encoded(f.Model) + "/converse-stream"
	switch {
	case req.Method != http.MethodPost:
		return "method " + req.Method
	case req.URL.EscapedPath() != path || req.URL.RawQuery != "":
		return "address " + req.URL.String() + ", want " + path
	case req.Header.Get("Content-Type") != "application/json":
		return "Content-Type " + req.Header.Get("Content-Type")
	case !slices.Contains([]string{"", "*/*", "application/vnd.amazon.eventstream"}, req.Header.Get("Accept")):
		return "Accept " + req.Header.Get("Accept")
	}
	return f.authorized(req, body)
}

func (f Form) authorized(req *http.Request, body []byte) string {
	if f.Signed {
		return verify(req, body)
	}
	if req.Header.Get("Authorization") != "Bearer "+llmtest.Canary {
		return "the key"
	}
	return ""
}

// encoded escapes a model's name for a path, every byte that is not plain.
func encoded(s string) string {
	return strings.NewReplacer(":", "%3A", "/", "%2F").Replace(s)
}

// probe answers the lists of models.
func (f Form) probe(w http.ResponseWriter, req *http.Request) bool {
	if req.Method != http.MethodGet {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	if f.authorized(req, nil) != "" {
		w.Header().Set("X-Amzn-Errortype", "UnrecognizedClientException")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"message":"The security token included in the request is invalid."}`))
		return true
	}
	switch req.URL.Path {
	case "/aws/foundation-models":
		_, _ = w.Write([]byte(`{"modelSummaries":[{"modelId":"anthropic.claude-sonnet-4-5-20250929-v1:0","modelArn":"arn"}]}`))
	case "/aws/inference-profiles":
		_, _ = w.Write([]byte(`{"inferenceProfileSummaries":[{"inferenceProfileId":` + wire.JS(f.Model) + `,"status":"ACTIVE"}]}`))
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"message":null}`))
	}
	return true
}

// errorType is the class of Amazon's exceptions for a refusal, and the words
// by which the real service tells what the class alone does not.
func errorType(k porttest.RefusalKind) (class, words string) {
	switch k {
	case porttest.KeyRefused:
		return "UnrecognizedClientException", ""
	case porttest.Forbidden:
		return "AccessDeniedException", ""
	case porttest.BadRequest:
		return "ValidationException", ""
	case porttest.NoSuchModel:
		return "ResourceNotFoundException", ""
	case porttest.TooLong, porttest.TooManyTokens:
		return "ValidationException", "Input is too long for requested model. "
	case porttest.LimitedRate:
		return "ThrottlingException", ""
	case porttest.SpentQuota:
		return "ThrottlingException", "Too many tokens per day, please wait before trying again. "
	case porttest.ServerError, porttest.BadGateway:
		return "InternalServerException", ""
	}
	return "ServiceUnavailableException", ""
}
