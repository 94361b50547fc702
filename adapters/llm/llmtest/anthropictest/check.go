package anthropictest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// request is what the wire takes; fields that are not here are refused.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream"`
	Thinking  *thinking `json:"thinking"`
	Output    *struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
	Choice *struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	Tools    []tool    `json:"tools"`
	System   []block   `json:"system"`
	Messages []message `json:"messages"`
}

type thinking struct {
	Type    string `json:"type"`
	Budget  *int   `json:"budget_tokens"`
	Display string `json:"display"`
}

type tool struct {
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cache          `json:"cache_control"`
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text"`
	Source    *source         `json:"source"`
	ID        *string         `json:"id"`
	Name      *string         `json:"name"`
	Input     json.RawMessage `json:"input"`
	Caller    json.RawMessage `json:"caller"`
	For       *string         `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	Failed    *bool           `json:"is_error"`
	Thinking  *string         `json:"thinking"`
	Signature *string         `json:"signature"`
	Data      *string         `json:"data"`
	Cache     *cache          `json:"cache_control"`
}

type source struct {
	Type  string `json:"type"`
	Media string `json:"media_type"`
	Data  []byte `json:"data"`
}

type cache struct {
	Type string `json:"type"`
}

func decode(body []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// check returns what is wrong with a request, "" when nothing is.
func (f *fake) check(req *http.Request, body []byte) string {
	if req.Method != http.MethodPost || req.URL.Path != "/v1/messages" || req.Header.Get("Content-Type") != "application/json" {
		return "not a request for a message"
	}
	if wrong := authorized(req); wrong != "" {
		return wrong
	}
	var r request
	if err := decode(body, &r); err != nil {
		return err.Error()
	}
	switch {
	case r.Model != f.style.Name:
		return "model: " + r.Model
	case !r.Stream:
		return "stream: must be true"
	case r.MaxTokens < 1:
		return "max_tokens: must be at least 1"
	}
	if wrong := r.thinks(f.style.Name); wrong != "" {
		return wrong
	}
	if wrong := r.offers(); wrong != "" {
		return wrong
	}
	for _, b := range r.System {
		if wrong := b.wrong("system"); wrong != "" {
			return "system: " + wrong
		}
	}
	if n := r.marks(); n > 4 {
		return fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n)
	}
	return r.talks()
}

// thinks checks how the model is told to think.
func (r request) thinks(model string) string {
	if r.Output != nil && !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, r.Output.Effort) {
		return "output_config.effort: " + r.Output.Effort
	}
	t := r.Thinking
	adaptive := strings.HasPrefix(model, "claude-") && !strings.Contains(model, "-4-")
	switch {
	case t == nil:
	case t.Type == "enabled" && adaptive, t.Type == "adaptive" && !adaptive:
		return fmt.Sprintf("thinking.type: %q is not supported by this model", t.Type)
	case t.Type == "enabled" && (t.Budget == nil || *t.Budget < 1024 || *t.Budget >= r.MaxTokens):
		return "thinking.budget_tokens: must be at least 1024 and less than max_tokens"
	case t.Type != "enabled" && t.Budget != nil:
		return "thinking.budget_tokens: Extra inputs are not permitted"
	case t.Display != "" && (t.Type == "disabled" || t.Display != "summarized" && t.Display != "omitted"):
		return "thinking.display: " + t.Display
	case !slices.Contains([]string{"enabled", "adaptive", "disabled"}, t.Type):
		return "thinking.type: " + t.Type
	}
	if !adaptive && r.Output != nil {
		return "output_config.effort: not supported by this model"
	}
	return ""
}

// offers checks the tools.
func (r request) offers() string {
	seen := make(map[string]bool)
	for i, t := range r.Tools {
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case !isName(t.Name, 128) || seen[t.Name]:
			return fmt.Sprintf("tools.%d.name: %q", i, t.Name)
		case json.Unmarshal(t.Schema, &schema) != nil || schema.Type != "object":
			return fmt.Sprintf("tools.%d.input_schema: must be an object", i)
		case t.Description != nil && *t.Description == "":
			return fmt.Sprintf("tools.%d.description: must not be empty", i)
		}
		seen[t.Name] = true
	}
	if r.Choice != nil && (len(r.Tools) == 0 || !slices.Contains([]string{"auto", "none"}, r.Choice.Type)) {
		return "tool_choice: " + r.Choice.Type
	}
	return ""
}

// marks counts the cache marks.
func (r request) marks() int {
	n := 0
	for _, t := range r.Tools {
		if t.Cache != nil {
			n++
		}
	}
	for _, b := range r.blocks() {
		if b.Cache != nil {
			n++
		}
	}
	return n
}

func (r request) blocks() []block {
	all := slices.Clone(r.System)
	for _, m := range r.Messages {
		all = append(all, m.Content...)
	}
	return all
}

// isName reports whether s is what tools and their calls may be named.
func isName(s string, most int) bool {
	return s != "" && len(s) <= most && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

// talks checks the messages: roles alternate and end with the user's, calls
// and results pair.
func (r request) talks() string {
	if len(r.Messages) == 0 {
		return "messages: at least one message is required"
	}
	used, open := make(map[string]bool), []string(nil)
	for i, m := range r.Messages {
		at := fmt.Sprintf("messages.%d", i)
		switch {
		case m.Role != []string{"user", "assistant"}[i%2]:
			return at + ": roles must alternate between \"user\" and \"assistant\""
		case len(m.Content) == 0:
			return at + ": all messages must have non-empty content"
		}
		results, others := []string(nil), false
		for j, b := range m.Content {
			if wrong := b.wrong(m.Role); wrong != "" {
				return fmt.Sprintf("%s.content.%d: %s", at, j, wrong)
			}
			switch b.Type {
			case "tool_result":
				if others {
					return at + ": tool_result blocks must come first"
				}
				results = append(results, *b.For)
			case "tool_use":
				if used[*b.ID] {
					return at + ": `tool_use` ids must be unique"
				}
				used[*b.ID] = true
			default:
				others = true
			}
		}
		slices.Sort(open)
		if slices.Sort(results); !slices.Equal(open, results) {
			return fmt.Sprintf("%s: `tool_use` ids %q were found without `tool_result` blocks immediately after, which are for %q", at, open, results)
		}
		open = nil
		for _, b := range m.Content {
			if b.Type == "tool_use" {
				open = append(open, *b.ID)
			}
		}
		if last := m.Content[len(m.Content)-1].Type; strings.HasSuffix(last, "thinking") {
			return at + ": the final block in an assistant message cannot be `thinking`"
		}
	}
	if r.Messages[len(r.Messages)-1].Role != "user" {
		return "This model does not support assistant message prefill. The conversation must end with a user message."
	}
	if len(used) > 0 && len(r.Tools) == 0 {
		return "Requests which include `tool_use` or `tool_result` blocks must define tools"
	}
	return ""
}

// wrong returns what is wrong with a block by itself.
func (b block) wrong(role string) string {
	if b.Cache != nil && b.Cache.Type != "ephemeral" {
		return "cache_control.type: " + b.Cache.Type
	}
	want := map[string]string{
		"text": "text cache_control", "image": "source cache_control", "tool_use": "id name input caller cache_control",
		"tool_result": "tool_use_id content is_error cache_control", "thinking": "thinking signature", "redacted_thinking": "data",
	}[b.Type]
	for name, there := range map[string]bool{
		"text": b.Text != nil, "source": b.Source != nil, "id": b.ID != nil, "name": b.Name != nil, "input": b.Input != nil, "caller": b.Caller != nil,
		"tool_use_id": b.For != nil, "content": b.Content != nil, "is_error": b.Failed != nil, "thinking": b.Thinking != nil,
		"signature": b.Signature != nil, "data": b.Data != nil, "cache_control": b.Cache != nil,
	} {
		listed := slices.Contains(strings.Fields(want), name)
		optional := slices.Contains([]string{"cache_control", "caller", "content", "is_error"}, name)
		if there && !listed || !there && listed && !optional {
			return b.Type + "." + name + ": extra or missing"
		}
	}
	switch b.Type {
	case "text":
		if strings.TrimSpace(*b.Text) == "" {
			return "text content blocks must contain non-whitespace text"
		}
		return ""
	case "image":
		if role == "user" && b.Source.Type == "base64" && len(b.Source.Data) > 0 &&
			slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, b.Source.Media) {
			return ""
		}
	case "tool_use":
		var input map[string]any
		if role == "assistant" && isName(*b.ID, 1000) && isName(*b.Name, 200) && json.Unmarshal(b.Input, &input) == nil && input != nil {
			return ""
		}
	case "tool_result":
		if role == "user" {
			return b.result()
		}
	case "thinking", "redacted_thinking":
		if role == "assistant" {
			return ""
		}
	}
	return fmt.Sprintf("a %s block of the %s is not valid", b.Type, role)
}

// result returns what is wrong with the content of a tool's result.
func (b block) result() string {
	var text string
	if b.Content == nil || json.Unmarshal(b.Content, &text) == nil {
		return ""
	}
	var parts []block
	if err := decode(b.Content, &parts); err != nil {
		return err.Error()
	}
	for _, p := range parts {
		if wrong := p.wrong("user"); wrong != "" || p.Type != "text" && p.Type != "image" || p.Cache != nil {
			return "tool_result.content: a " + p.Type + " block is not valid " + wrong
		}
		if b.Failed != nil && *b.Failed && p.Type != "text" {
			return "tool_result: all content must be type \"text\" if \"is_error\" is true"
		}
	}
	return ""
}
