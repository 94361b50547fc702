package ollamatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
)

// request is all that a request may hold.
type request struct {
	Model    string             `json:"model"`
	Messages []message          `json:"messages"`
	Tools    []tool             `json:"tools"`
	Stream   *bool              `json:"stream"`
	Think    any                `json:"think"`
	Truncate *bool              `json:"truncate"`
	Shift    *bool              `json:"shift"`
	Format   json.RawMessage    `json:"format"`
	Keep     json.RawMessage    `json:"keep_alive"`
	Options  map[string]float64 `json:"options"`
}

type message struct {
	Role     string   `json:"role"`
	Content  *string  `json:"content"`
	Thinking string   `json:"thinking"`
	Images   [][]byte `json:"images"`
	Calls    []struct {
		ID       string `json:"id"`
		Function struct {
			Index int             `json:"index"`
			Name  string          `json:"name"`
			Args  json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	Tool   string `json:"tool_name"`
	CallID string `json:"tool_call_id"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string     `json:"name"`
		Description string     `json:"description"`
		Parameters  parameters `json:"parameters"`
	} `json:"function"`
}

// parameters is a schema as the server reads it: what it does not know of one
// it ignores, but each property must be an object.
type parameters struct {
	Type       string
	Required   []string
	Properties map[string]map[string]any
}

// UnmarshalJSON reads a schema and passes over what it does not know.
func (p *parameters) UnmarshalJSON(data []byte) error {
	var known struct {
		Type       string                    `json:"type"`
		Required   []string                  `json:"required"`
		Properties map[string]map[string]any `json:"properties"`
	}
	err := json.Unmarshal(data, &known)
	*p = parameters(known)
	return err
}

func parse(body []byte) (request, error) {
	var r request
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(&r)
	return r, err
}

// check returns what is wrong with a request.
func check(req *http.Request, body []byte) string {
	r, err := parse(body)
	switch {
	case req.Method != http.MethodPost || req.URL.Path != "/api/chat":
		return "there is no such address"
	case req.Header.Get("Authorization") != "Bearer "+llmtest.Canary:
		return "the key is wrong"
	case req.Header.Get("Content-Type") != "application/json":
		return "the content is not said to be JSON"
	case err != nil:
		return err.Error()
	case r.Model != Model:
		return "model " + r.Model
	case r.Stream == nil || !*r.Stream:
		return "no stream is asked for"
	case r.Options["num_ctx"] <= 0 || r.Options["num_ctx"] > ContextLength:
		return fmt.Sprintf("the window is set to %v", r.Options["num_ctx"])
	case r.Truncate == nil || *r.Truncate || r.Shift == nil || *r.Shift:
		return "it may be cut"
	case len(r.Messages) == 0:
		return "there are no messages"
	}
	for name := range r.Options {
		if name != "num_ctx" && name != "num_predict" {
			return "option " + name
		}
	}
	switch level := r.Think.(type) {
	case nil, bool:
	case string:
		return fmt.Sprintf("think value %q is not supported for this model", level)
	default:
		return fmt.Sprintf("think is %v", level)
	}
	for i, m := range r.Messages {
		if wrong := m.check(i); wrong != "" {
			return fmt.Sprintf("message %d: %s", i+1, wrong)
		}
	}
	for _, t := range r.Tools {
		if t.Type != "function" || t.Function.Name == "" || t.Function.Parameters.Type != "object" {
			return "tool " + t.Function.Name
		}
	}
	return ""
}

func (m message) check(i int) string {
	switch {
	case !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role):
		return "role " + m.Role
	case m.Role == "system" && i > 0:
		return "the instructions are not first"
	case m.Content == nil:
		return "no content"
	case *m.Content == "" && len(m.Calls) == 0 && len(m.Images) == 0:
		return "nothing said"
	case m.Role != "assistant" && (len(m.Calls) > 0 || m.Thinking != ""):
		return "calls or thoughts of " + m.Role
	case m.Role != "tool" && (m.Tool != "" || m.CallID != ""):
		return "a call's result from " + m.Role
	case m.Role != "user" && len(m.Images) > 0:
		return "images of " + m.Role
	}
	for _, c := range m.Calls {
		if c.Function.Name == "" || len(c.Function.Args) == 0 || c.Function.Args[0] != '{' {
			return "a call without a name or arguments that are an object"
		}
	}
	return ""
}

// look returns what is not as it should be in a request that a server takes
// all the same: Ollama puts up with much, and the model then reads nonsense.
func (f *fake) look(body []byte) []string {
	r, err := parse(body)
	if err != nil {
		return []string{err.Error()}
	}
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	open := make(map[string]string) // id of a call without a result: name
	seen := make(map[string]bool)
	last := ""
	for _, m := range r.Messages {
		if m.Role == last && m.Role != "tool" {
			say("two messages of %s in a row", m.Role)
		}
		if last = m.Role; m.Role != "tool" && len(open) > 0 {
			say("%d calls have no result", len(open))
			clear(open)
		}
		if m.Role == "tool" {
			if open[m.CallID] != m.Tool || m.Tool == "" {
				say("a result of %s for the call %q", m.Tool, m.CallID)
			}
			delete(open, m.CallID)
		}
		for i, c := range m.Calls {
			if c.ID == "" || seen[c.ID] || c.Function.Index != i {
				say("call %d has the id %q and the index %d", i, c.ID, c.Function.Index)
			}
			open[c.ID], seen[c.ID] = c.Function.Name, true
		}
		if want, ok := f.thought(m); ok && m.Thinking != want {
			say("the thought %q came back as %q", want, m.Thinking)
		} else if !ok && m.Thinking != "" && !f.thinks(m.Thinking) {
			say("the thought %q is not the model's own", m.Thinking)
		}
	}
	if len(open) > 0 {
		say("%d calls have no result", len(open))
	}
	return wrong
}

// thought returns what was thought before a message.
func (f *fake) thought(m message) (string, bool) {
	if len(m.Calls) == 0 {
		return "", false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.thoughts[strings.TrimSpace(string(m.Calls[0].Function.Args))]
	return s, ok
}

// thinks reports whether a thought is one of the model's own.
func (f *fake) thinks(thought string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.own[thought]
}
