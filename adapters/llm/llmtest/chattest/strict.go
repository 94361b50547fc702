package chattest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
)

// message is a message of a request, of any role.
type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Calls     []call          `json:"tool_calls"`
	CallID    string          `json:"tool_call_id"`
	Reasoning *string         `json:"reasoning"`
	Thought   *string         `json:"reasoning_content"`
	Details   json.RawMessage `json:"reasoning_details"`
	Extra     json.RawMessage `json:"extra_content"`
}

type call struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
		Args string `json:"arguments"`
	} `json:"function"`
	Extra json.RawMessage `json:"extra_content"`
}

func strict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// check is what the server says about a request by itself.
func (b brand) check(req *http.Request, body []byte) string {
	switch {
	case req.Method != http.MethodPost || req.URL.Path != b.path || req.URL.RawQuery != b.query:
		return "no such address"
	case b.key(req.Header) != llmtest.Canary:
		return "wrong key"
	case b.azure && req.Header.Get("Authorization") != "":
		return "a key in a header it does not belong in"
	case req.Header.Get("Content-Type") != "application/json":
		return "no JSON"
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return err.Error()
	}
	for name := range fields {
		if !slices.Contains(strings.Fields("model messages tools stream "+b.fields), name) {
			return "Unrecognized request argument supplied: " + name
		}
	}
	var in struct {
		Model    string            `json:"model"`
		Messages []json.RawMessage `json:"messages"`
		Stream   bool              `json:"stream"`
		Tools    []struct {
			Type     string `json:"type"`
			Function struct {
				Name       string         `json:"name"`
				Parameters map[string]any `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	switch err := json.Unmarshal(body, &in); {
	case err != nil:
		return err.Error()
	case in.Model != b.model:
		return "no such model"
	case !in.Stream:
		return "no stream is asked for"
	}
	for _, t := range in.Tools {
		if t.Type != "function" || t.Function.Name == "" || t.Function.Parameters["type"] != "object" {
			return "a tool is not in order"
		}
	}
	return b.checkMessages(in.Messages)
}

func (b brand) checkMessages(raw []json.RawMessage) string {
	if len(raw) == 0 {
		return "no messages"
	}
	for i, data := range raw {
		var m message
		if err := strict(data, &m); err != nil {
			return fmt.Sprintf("messages[%d]: %v", i, err)
		}
		wrong := ""
		switch m.Role {
		case "system":
			if wrong = b.checkContent(m.Content, "text"); i > 0 {
				wrong = "a system message that is not the first"
			}
		case "user":
			wrong = b.checkContent(m.Content, "text", "image_url", "input_audio")
		case "assistant":
			if string(m.Content) != "null" || len(m.Calls) == 0 {
				wrong = b.checkContent(m.Content, "text")
			}
			for _, c := range m.Calls {
				if c.ID == "" || len(c.ID) > 40 || c.Type != "function" || !llmtest.IsToolName(c.Function.Name) || !json.Valid([]byte(c.Function.Args)) {
					wrong = "a call is not in order"
				}
			}
		case "tool":
			if wrong = b.checkContent(m.Content, "text"); !b.router && m.Content[0] == '[' {
				wrong = "the output of a tool is no text"
			}
		default:
			wrong = "unknown role"
		}
		if wrong != "" {
			return fmt.Sprintf("messages[%d]: %s", i, wrong)
		}
	}
	return ""
}

func (b brand) checkContent(raw json.RawMessage, kinds ...string) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return "content is empty"
		}
		return ""
	}
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image *struct {
			URL string `json:"url"`
		} `json:"image_url"`
		Audio *struct {
			Data   string `json:"data"`
			Format string `json:"format"`
		} `json:"input_audio"`
		Cache *struct {
			Type string `json:"type"`
		} `json:"cache_control"`
	}
	if err := strict(raw, &parts); err != nil || len(parts) == 0 {
		return fmt.Sprintf("content that is no list of parts: %v", err)
	}
	for _, p := range parts {
		switch {
		case !slices.Contains(kinds, p.Type):
			return "a part of the type " + p.Type + " does not belong here"
		case p.Cache != nil && (!b.router || p.Cache.Type != "ephemeral" || p.Type != "text"):
			return "a cache mark does not belong here"
		case p.Type == "text" && p.Text == "", p.Type == "image_url" && (p.Image == nil || !strings.HasPrefix(p.Image.URL, "data:image/")),
			p.Type == "input_audio" && (p.Audio == nil || p.Audio.Format == ""):
			return "a part of the type " + p.Type + " is not in order"
		}
	}
	return ""
}

// look finds calls and outputs that do not pair, messages of one role in a
// row, cache marks that are missing, and replies that did not come back as
// they were.
func (s *server) look(body []byte) []string {
	var in struct {
		Messages []message `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return []string{err.Error()}
	}
	problems := pairs(in.Messages)
	if marks := strings.Count(string(body), `"cache_control"`); s.brand.router && (marks == 0 || marks > 4) {
		problems = append(problems, fmt.Sprintf("%d cache marks, which should be 1 to 4", marks))
	}
	if n := len(in.Messages); s.brand.router && n > 0 && !strings.Contains(string(in.Messages[n-1].Content), `"cache_control"`) {
		problems = append(problems, "the end of the conversation is not marked, so the next request finds nothing in a cache")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range in.Messages {
		for _, want := range s.signed {
			if len(m.Calls) > 0 && m.Calls[0].Function.Args == want.args {
				problems = append(problems, want.compare(m)...)
			}
		}
	}
	return problems
}

// compare finds what a message lacks of the reply it stands for.
func (w signed) compare(m message) []string {
	got := map[string]string{"reasoning_details": plain(m.Details), "extra_content": plain(m.Extra), "call": plain(m.Calls[0].Extra)}
	if m.Reasoning != nil {
		got["reasoning"] = *m.Reasoning
	}
	if m.Thought != nil {
		got["reasoning_content"] = *m.Thought
	}
	var problems []string
	for field, want := range w.fields {
		if got[field] != want {
			problems = append(problems, fmt.Sprintf("%s of the reply with the call %s came back as %q, not as %q", field, w.args, got[field], want))
		}
	}
	return problems
}

// plain renders a value in one way, whatever the order of its fields.
func plain(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil || v == nil {
		return ""
	}
	return js(v)
}

// pairs finds calls without an output directly behind them, outputs without a
// call, ids that repeat and two messages of one role in a row.
func pairs(messages []message) []string {
	var problems []string
	waiting := map[string]bool{}
	last := ""
	for _, m := range messages {
		if m.Role != "tool" {
			for id := range waiting {
				problems = append(problems, "the call "+id+" is not followed by its output")
			}
			clear(waiting)
			if m.Role == last {
				problems = append(problems, "two messages of the role "+m.Role+" in a row")
			}
		}
		last = m.Role
		for _, c := range m.Calls {
			if waiting[c.ID] {
				problems = append(problems, "two calls have the id "+c.ID)
			}
			waiting[c.ID] = true
		}
		if m.Role == "tool" {
			if !waiting[m.CallID] {
				problems = append(problems, "the output "+m.CallID+" answers no call before it")
			}
			delete(waiting, m.CallID)
		}
	}
	for id := range waiting {
		problems = append(problems, "the call "+id+" has no output")
	}
	return problems
}
