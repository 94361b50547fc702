package ollama

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// able is what a server says of a model that can do everything.
const able = `{"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960},"capabilities":["completion","tools","vision","audio","thinking"]}`

// server is an Ollama in the test's hands: answers by path, and what was sent.
type server struct {
	show    string // the answer about the model; "" is able
	version string // "" is a recent one
	chat    http.Handler

	mu   sync.Mutex
	sent map[string][]string // bodies by path
}

func (s *server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	s.mu.Lock()
	if s.sent == nil {
		s.sent = make(map[string][]string)
	}
	s.sent[req.URL.Path] = append(s.sent[req.URL.Path], string(body))
	s.mu.Unlock()
	switch req.URL.Path {
	case "/api/show":
		said, status := s.show, http.StatusOK
		if said == "" {
			said = able
		}
		if _, err := fmt.Sscanf(said, "%d ", &status); err == nil {
			_, said, _ = strings.Cut(said, " ")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, said)
	case "/api/version":
		if s.version == "none" {
			http.NotFound(w, req)
			return
		}
		_, _ = fmt.Fprintf(w, `{"version":%q}`, s.version)
	case "/api/chat":
		s.chat.ServeHTTP(w, req)
	default:
		http.NotFound(w, req)
	}
}

// chats returns the requests for replies, decoded.
func (s *server) chats(t *testing.T) []map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []map[string]any
	for _, body := range s.sent["/api/chat"] {
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out
}

func (s *server) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent[path])
}

// model connects a model to the server.
func (s *server) model(t testing.TB, change func(*llm.Provider, *domain.ModelInfo)) *Model {
	t.Helper()
	if s.version == "" {
		s.version = "0.30.1"
	}
	p := llm.Provider{Client: llmtest.Connect(porttest.T(t.(*testing.T)), s), ProviderConfig: llm.ProviderConfig{Name: "fake", Type: "ollama", BaseURL: llmtest.Host}}
	info := domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Tools: true}
	if change != nil {
		change(&p, &info)
	}
	m, err := New(p, info)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// answer answers with a status and fixed bytes.
func answer(status int, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

// inTurn answers each request with the next handler, and then with the last.
func inTurn(list ...http.Handler) http.Handler {
	n := 0
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h := list[min(n, len(list)-1)]
		n++
		h.ServeHTTP(w, req)
	})
}

func says(message string) string {
	return `{"model":"fake-1","created_at":"2026-01-02T03:04:05Z","message":` + message + `,"done":false}` + "\n"
}

func text(s string) string { return says(`{"role":"assistant","content":` + quoted(s) + `}`) }

func calls(list string) string {
	return says(`{"role":"assistant","content":"","tool_calls":[` + list + `]}`)
}

func done(reason, more string) string {
	return `{"model":"fake-1","message":{"role":"assistant","content":""},"done":true,"done_reason":` + quoted(reason) + more + "}\n"
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// got renders a reply in one line: text, <thought>, +id:call(args), #usage,
// .finish or !code.
func got(t testing.TB, m *Model, req domain.ModelRequest) (string, error) {
	t.Helper()
	var b strings.Builder
	var failure error
	thinking := false
	for ev, err := range m.Stream(t.Context(), req) {
		thought, isThought := ev.(domain.ThoughtDelta)
		if isThought != thinking {
			b.WriteString(map[bool]string{true: "<", false: ">"}[isThought])
			thinking = isThought
		}
		switch ev := ev.(type) {
		case domain.TextDelta:
			b.WriteString(ev.Text)
		case domain.ThoughtDelta:
			b.WriteString(thought.Text)
		case domain.CallRequested:
			fmt.Fprintf(&b, " +%s:%s%s", ev.Call.ProviderID, ev.Call.Name, ev.Call.Args)
		case domain.UsageReported:
			fmt.Fprintf(&b, " #%d/%d", ev.Usage.Input, ev.Usage.Output)
		case domain.Finish:
			fmt.Fprintf(&b, " .%s", ev.Reason)
		}
		if err != nil {
			fmt.Fprintf(&b, " !%s", domain.CodeOf(err))
			failure = err
		}
	}
	return strings.TrimSpace(b.String()), failure
}
