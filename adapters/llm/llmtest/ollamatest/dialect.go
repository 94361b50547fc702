// Package ollamatest is a fake Ollama: a server that speaks the native chat
// API strictly, and knows one model.
package ollamatest

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/ollama"
)

// Model is the one model that a fake server has.
const Model = "fake-1"

// ContextLength is what its model was trained for, in tokens.
const ContextLength = 131072

// Variant is how a fake server differs from a plain one.
type Variant struct {
	CRLF     bool   // lines end with CR and LF
	Blank    bool   // blank lines between lines
	Extra    bool   // fields that nobody asked for
	LastBare bool   // the last line has no end
	Strings  bool   // arguments are texts that hold the object
	Late     bool   // calls come with the last line
	Version  string // "" is a recent one
	Silent   bool   // it answers no question about itself or the model
	// Show is the answer to a question about the model; "" is one of a model
	// that can do everything.
	Show string
}

// Dialect is a plain Ollama.
func Dialect() llmtest.Dialect { return Variant{}.Dialect() }

// Dialect is an Ollama of the variant.
func (v Variant) Dialect() llmtest.Dialect {
	return llmtest.Dialect{
		Name: "Ollama", Type: "ollama", Model: Model, Opener: ollama.Opener(),
		Idle: llm.DefaultTimeout, NoThoughtCount: true, NoCacheCount: true,
		New: func() *llmtest.Server {
			f := &fake{v: v, thoughts: make(map[string]string), own: make(map[string]bool)}
			return &llmtest.Server{Check: check, Look: f.look, Play: f.play, Probe: f.probe}
		},
	}
}

// fake is one server.
type fake struct {
	v Variant

	mu sync.Mutex
	// thoughts are what it wants back, by the arguments of the first call they
	// came with.
	thoughts map[string]string
	own      map[string]bool // all that it ever thought
}

// probe answers what is asked besides chat.
func (f *fake) probe(w http.ResponseWriter, req *http.Request) bool {
	at := req.Method + " " + req.URL.Path
	switch at {
	case "GET /api/tags", "GET /api/version", "POST /api/show":
	default:
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case req.Header.Get("Authorization") != "Bearer "+llmtest.Canary:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"unauthorized"}`))
	case at == "GET /api/tags":
		_, _ = w.Write([]byte(`{"models":[{"name":"` + Model + `","model":"` + Model + `","size":1,"details":{"family":"fake"}},{"name":"embed:latest","model":"embed:latest"}]}`))
	case f.v.Silent:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("404 page not found"))
	case at == "GET /api/version":
		version := f.v.Version
		if version == "" {
			version = "0.30.1"
		}
		_, _ = w.Write([]byte(`{"version":"` + version + `"}`))
	default:
		f.show(w, req)
	}
	return true
}

func (f *fake) show(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Model string `json:"model"`
	}
	if json.NewDecoder(req.Body).Decode(&in) != nil || in.Model != Model {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":"model '` + in.Model + `' not found"}`))
		return
	}
	said := f.v.Show
	if said == "" {
		said = `{"parameters":"temperature                    0.6\nstop                           \"<|im_end|>\"",` +
			`"details":{"family":"fake","parameter_size":"8B"},` +
			`"model_info":{"general.architecture":"fake","fake.context_length":131072,"fake.vision.context_length":77,"tokenizer.ggml.tokens":null},` +
			`"capabilities":["completion","tools","vision","audio","thinking"]}`
	}
	_, _ = w.Write([]byte(said))
}
