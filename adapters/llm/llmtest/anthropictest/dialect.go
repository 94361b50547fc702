// Package anthropictest is a fake provider that speaks Messages as strictly as
// Anthropic does: it refuses what the real one refuses, and wants thoughts back
// as it signed them.
package anthropictest

import (
	"net/http"
	"slices"
	"sync"

	"github.com/berth-dev/berth/adapters/llm/anthropic"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
)

// Model is the one model of the fake provider. By its name it thinks unless
// told not to, and binds its thoughts to what stood before them.
const Model = "claude-sonnet-5-5"

// Style is how a server writes its answers. The zero value writes them as
// Anthropic does.
type Style struct {
	Newline string // "" is LF
	// Pings sends pings and comments between events.
	Pings bool
	// Extra sends events, blocks, deltas and fields that nobody knows, and white
	// space where JSON allows it.
	Extra bool
	// Loose leaves out what compatible servers do: names and the beginning of
	// the message, ends of blocks, counts in the beginning; indexes have gaps.
	Loose bool
	// Redacted sends thoughts as blocks that cannot be read, besides the others.
	Redacted bool
	// Name replaces Model.
	Name string
}

// Dialect returns the dialect of Anthropic.
func Dialect() llmtest.Dialect { return Style{}.Dialect() }

// Dialect returns the dialect in a style.
func (s Style) Dialect() llmtest.Dialect {
	if s.Name == "" {
		s.Name = Model
	}
	return llmtest.Dialect{
		Name: "Anthropic", Type: "anthropic", Path: "/v1", Model: s.Name, Opener: anthropic.Opener(), New: s.server,
	}
}

func (s Style) server() *llmtest.Server {
	f := &fake{style: s}
	return &llmtest.Server{Check: f.check, Look: f.look, Play: f.play, Probe: f.probe}
}

// fake is one server.
type fake struct {
	style Style

	mu     sync.Mutex
	signed []reply // those whose thoughts are wanted back
}

// authorized reports whether a request has the headers of the wire; if not it
// says which. The key may come as a bearer's, but not both ways.
func authorized(req *http.Request) string {
	key, bearer := req.Header.Get("X-Api-Key"), req.Header.Get("Authorization")
	switch {
	case key != "" && bearer != "":
		return "an Authorization header beside x-api-key"
	case key != llmtest.Canary && bearer != "Bearer "+llmtest.Canary:
		return "x-api-key header is wrong"
	case !slices.Contains([]string{"2023-06-01", "2026-10-21"}, req.Header.Get("Anthropic-Version")):
		return "anthropic-version: header is required"
	}
	return ""
}

// probe answers the list of models.
func (f *fake) probe(w http.ResponseWriter, req *http.Request) bool {
	if req.Method != http.MethodGet || req.URL.Path != "/v1/models" {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	if wrong := authorized(req); wrong != "" {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(errorObject("authentication_error", "invalid "+wrong)))
		return true
	}
	_, _ = w.Write([]byte(`{"data":[{"type":"model","id":` + js(f.style.Name) +
		`,"display_name":"Fake","created_at":"2026-01-01T00:00:00Z"}],"has_more":false,"first_id":"a","last_id":"b"}`))
	return true
}
