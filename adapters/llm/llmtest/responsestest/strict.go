package responsestest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
)

// server is what a fake server remembers between requests.
type server struct {
	form Form

	mu     sync.Mutex
	played int
	signed []reply
}

// reply is what a request has to hold wherever it holds the reply.
type reply struct {
	args  string // of its first call, by which it is known
	items []string
}

func (s *server) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.played++
	return s.played
}

// request is all that the wire takes.
type request struct {
	Model        string            `json:"model"`
	Instructions string            `json:"instructions"`
	Input        []json.RawMessage `json:"input"`
	Tools        []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	} `json:"tools"`
	Stream    bool     `json:"stream"`
	Store     *bool    `json:"store"`
	Include   []string `json:"include"`
	Reasoning *struct {
		Effort  string `json:"effort"`
		Summary string `json:"summary"`
	} `json:"reasoning"`
	MaxOutput *int   `json:"max_output_tokens"`
	CacheKey  string `json:"prompt_cache_key"`
}

// inputItem is an item of a request, of any type.
type inputItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Phase   string          `json:"phase"`
	CallID  string          `json:"call_id"`
	Name    string          `json:"name"`
	Args    *string         `json:"arguments"`
	Output  json.RawMessage `json:"output"`
}

func strict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// check is what the server says about a request by itself.
func check(req *http.Request, body []byte) string {
	switch {
	case req.Method != http.MethodPost || req.URL.Path != "/v1/responses":
		return "no such address"
	case req.Header.Get("Authorization") != "Bearer "+llmtest.Canary:
		return "wrong key"
	case req.Header.Get("Content-Type") != "application/json":
		return "no JSON"
	}
	var in request
	if err := strict(body, &in); err != nil {
		return err.Error()
	}
	switch {
	case in.Model != model:
		return "no such model"
	case !in.Stream || in.Store == nil || *in.Store:
		return "stream and store are not what they should be"
	case len(in.Include) != 1 || in.Include[0] != "reasoning.encrypted_content":
		return "the encrypted form of reasoning is not asked for"
	case in.MaxOutput != nil && *in.MaxOutput < 16:
		return "max_output_tokens is below the minimum of 16"
	case len(in.Input) == 0:
		return "no input"
	}
	for _, t := range in.Tools {
		if t.Type != "function" || t.Name == "" || t.Strict == nil || *t.Strict || !json.Valid(t.Parameters) {
			return "a tool is not in order"
		}
	}
	for i, raw := range in.Input {
		if wrong := checkItem(raw); wrong != "" {
			return fmt.Sprintf("input[%d]: %s", i, wrong)
		}
	}
	return ""
}

func checkItem(raw json.RawMessage) string {
	var it inputItem
	if json.Unmarshal(raw, &it) == nil && it.Type == "reasoning" {
		return checkReasoning(raw)
	}
	if err := strict(raw, &it); err != nil {
		return err.Error()
	}
	switch it.Type {
	case "message":
		var text string
		if it.Role == "assistant" && json.Unmarshal(it.Content, &text) == nil && text != "" {
			return ""
		}
		if it.Role != "user" {
			return "a message of the role " + it.Role + " that is no text"
		}
		return checkParts(it.Content)
	case "function_call":
		if it.CallID == "" || len(it.CallID) > 64 || !llmtest.IsToolName(it.Name) || it.Args == nil || !json.Valid([]byte(*it.Args)) {
			return "a call is not in order"
		}
	case "function_call_output":
		var text string
		if json.Unmarshal(it.Output, &text) != nil {
			return checkParts(it.Output)
		}
	default:
		return "unknown item type " + it.Type
	}
	return ""
}

func checkReasoning(raw json.RawMessage) string {
	var it struct {
		Type      string            `json:"type"`
		ID        string            `json:"id"`
		Summary   []json.RawMessage `json:"summary"`
		Encrypted *string           `json:"encrypted_content"`
		Content   []json.RawMessage `json:"content"`
	}
	switch err := strict(raw, &it); {
	case err != nil:
		return err.Error()
	case it.ID == "" || it.Summary == nil:
		return "reasoning without an id or a summary"
	case it.Encrypted == nil && len(it.Content) == 0:
		return "Item with id " + it.ID + " not found. Items are not persisted when `store` is set to false"
	}
	return ""
}

func checkParts(raw json.RawMessage) string {
	var parts []struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Image  string `json:"image_url"`
		Detail string `json:"detail"`
	}
	if err := strict(raw, &parts); err != nil || len(parts) == 0 {
		return fmt.Sprintf("content that is no list of parts: %v", err)
	}
	for _, p := range parts {
		switch {
		case p.Type == "input_text" && p.Text != "":
		case p.Type == "input_image" && strings.HasPrefix(p.Image, "data:image/"):
		default:
			return "a part of the type " + p.Type + " is not in order"
		}
	}
	return ""
}

// sign notes what has to come back with a reply: its signed reasoning and the
// phases of its messages, in the order of all its items.
func (s *server) sign(items []map[string]any) {
	r := reply{}
	signed := false
	for _, it := range items {
		switch it["type"] {
		case "reasoning":
			if it["encrypted_content"] != nil {
				r.items, signed = append(r.items, js(it)), true
			}
		case "message":
			phase, _ := it["phase"].(string)
			r.items = append(r.items, "message "+phase)
		case "function_call":
			args, _ := it["arguments"].(string)
			if r.args == "" {
				r.args = args
			}
			r.items = append(r.items, "call "+args)
		}
	}
	if signed && r.args != "" {
		s.mu.Lock()
		s.signed = append(s.signed, r)
		s.mu.Unlock()
	}
}

// look finds calls and outputs that do not pair, and replies that did not come
// back as they were.
func (s *server) look(body []byte) []string {
	var in request
	if err := json.Unmarshal(body, &in); err != nil {
		return []string{err.Error()}
	}
	problems := pairs(in.Input)
	seen := described(in.Input)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.signed {
		if !strings.Contains(strings.Join(seen, "\n"), "call "+r.args) {
			continue
		}
		if !strings.Contains("\n"+strings.Join(seen, "\n")+"\n", "\n"+strings.Join(r.items, "\n")+"\n") {
			problems = append(problems, fmt.Sprintf("the reply with the call %s did not come back as it was:\n%s\nbut was\n%s",
				r.args, strings.Join(seen, "\n"), strings.Join(r.items, "\n")))
		}
	}
	return problems
}

// described renders the items of a request one a line, as sign does.
func described(input []json.RawMessage) []string {
	var out []string
	for _, raw := range input {
		var it inputItem
		if json.Unmarshal(raw, &it) != nil {
			continue
		}
		switch {
		case it.Type == "reasoning":
			var all map[string]any
			if json.Unmarshal(raw, &all) == nil {
				out = append(out, js(all))
			}
		case it.Type == "message" && it.Role == "assistant":
			out = append(out, "message "+it.Phase)
		case it.Type == "message":
			out = append(out, "user")
		case it.Type == "function_call" && it.Args != nil:
			out = append(out, "call "+*it.Args)
		case it.Type == "function_call_output":
			out = append(out, "output")
		}
	}
	return out
}

// pairs finds calls without an output, outputs without a call, ids that
// repeat, reasoning that nothing follows.
func pairs(input []json.RawMessage) []string {
	var problems []string
	waiting := map[string]bool{}
	known := map[string]bool{}
	last := ""
	for _, raw := range input {
		var it inputItem
		if json.Unmarshal(raw, &it) != nil {
			continue
		}
		if last == "reasoning" && it.Type != "reasoning" && it.Type != "function_call" && it.Role != "assistant" {
			problems = append(problems, "reasoning was provided without its required following item")
		}
		last = it.Type
		switch it.Type {
		case "function_call":
			if known[it.CallID] {
				problems = append(problems, "two calls have the id "+it.CallID)
			}
			known[it.CallID], waiting[it.CallID] = true, true
		case "function_call_output":
			if !waiting[it.CallID] {
				problems = append(problems, "No tool call found for function call output with call_id "+it.CallID)
			}
			delete(waiting, it.CallID)
		}
	}
	if last == "reasoning" {
		problems = append(problems, "reasoning was provided without its required following item")
	}
	for id := range waiting {
		problems = append(problems, "No tool output found for function call "+id)
	}
	return problems
}
