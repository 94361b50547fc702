// Package chattest is a fake server of chat completions, as strict as OpenAI,
// OpenRouter and Azure are, and in the forms that other servers have.
package chattest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/openai"
)

// Form is how a server writes its events.
type Form struct {
	Newline   string // "" is LF
	Tight     bool   // no space after the colon
	BOM       bool
	Comments  bool
	NoIndex   bool
	NoDone    bool
	LastBare  bool   // the end mark without a blank line
	EmptyIDs  bool   // later fragments repeat id and name as ""
	Reasoning string // the field of thoughts; "" is reasoning_content
	Extra     bool   // fields that nobody asked for
	Pretty    bool   // events over several data lines
}

// brand is what tells a server from others besides the form of its events.
type brand struct {
	model  string
	path   string // of chat completions
	query  string
	models string // path of the list of models
	key    func(http.Header) string
	fields string // further fields of a request
	router bool
	azure  bool
}

func bearer(h http.Header) string {
	key, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return key
}

func apiKey(h http.Header) string { return h.Get("Api-Key") }

// Dialect is what all compatible servers understand.
func Dialect() llmtest.Dialect { return With(Form{}) }

// With is the same in another form.
func With(f Form) llmtest.Dialect {
	b := brand{
		model: "fake-1", path: "/v1/chat/completions", models: "/v1/models", key: bearer,
		fields: "stream_options max_tokens max_completion_tokens reasoning_effort prompt_cache_key",
	}
	return b.dialect("Chat completions", "openai-compatible", "/v1", f, openai.Opener())
}

// OpenRouter is the dialect of OpenRouter, with a model of Anthropic's.
func OpenRouter() llmtest.Dialect {
	b := brand{
		model: "anthropic/fake-1", path: "/api/v1/chat/completions", models: "/api/v1/models", key: bearer, router: true,
		fields: "usage max_tokens reasoning",
	}
	return b.dialect("OpenRouter", "openrouter", "/api/v1", Form{Comments: true, Reasoning: "reasoning"}, openai.OpenRouter())
}

// Azure is the dialect of Azure's v1 API.
func Azure() llmtest.Dialect {
	b := brand{
		model: "fake-deployment", path: "/openai/v1/chat/completions", models: "/openai/v1/models", key: apiKey, azure: true,
		fields: "stream_options max_completion_tokens reasoning_effort",
	}
	return b.dialect("Azure OpenAI", "azure", "/openai/v1", Form{Extra: true}, openai.Azure())
}

// AzureClassic is the dialect of Azure's API with dated versions.
func AzureClassic() llmtest.Dialect {
	b := brand{
		model: "fake-1", path: "/openai/deployments/fake/chat/completions", query: "api-version=2024-10-21", models: "/openai/models",
		key: apiKey, azure: true, fields: "stream_options max_tokens max_completion_tokens reasoning_effort",
	}
	return b.dialect("Azure OpenAI, dated", "azure", "/openai/deployments/fake?api-version=2024-10-21", Form{Extra: true}, openai.Azure())
}

func (b brand) dialect(name, kind, path string, f Form, opener llm.Opener) llmtest.Dialect {
	return llmtest.Dialect{
		Name: name, Type: kind, Path: path, Model: b.model, Opener: opener,
		New: func() *llmtest.Server {
			s := &server{brand: b, form: f}
			return &llmtest.Server{Check: b.check, Look: s.look, Play: s.play, Probe: b.probe}
		},
	}
}

// server is what a fake server remembers between requests.
type server struct {
	brand brand
	form  Form

	mu     sync.Mutex
	played int
	signed []signed
}

// signed is what a request has to hold wherever it holds a reply.
type signed struct {
	args   string // of its first call, by which it is known
	fields map[string]string
}

func (s *server) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.played++
	return s.played
}

// probe answers the list of models, and what OpenRouter says of a key.
func (b brand) probe(w http.ResponseWriter, req *http.Request) bool {
	if req.Method != http.MethodGet {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	list := req.URL.Path == b.models
	aboutKey := b.router && req.URL.Path == strings.TrimSuffix(b.models, "/models")+"/key"
	switch {
	case !list && !aboutKey, req.URL.RawQuery != b.query:
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"error":{"message":"no such address","code":404}}`)
	case b.key(req.Header) != llmtest.Canary && (aboutKey || !b.router): // OpenRouter lists its models to anybody
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`)
	case aboutKey:
		_, _ = fmt.Fprint(w, `{"data":{"label":"test","usage":0,"limit":null,"is_free_tier":false}}`)
	default:
		_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","created":1700000000,"owned_by":"test"}]}`, b.model)
	}
	return true
}

func js(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}
