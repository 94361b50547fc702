package responses

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// option is a set of optional things a server may refuse. Its lowest bits are
// the refused efforts.
type option uint32

// The options.
const (
	efforts     option = 1<<llm.EffortBits - 1
	dropInclude option = 1 << (llm.EffortBits + iota) // the encrypted form of reasoning
	dropSummary                                       // words about the reasoning
	dropKept                                          // reasoning given back
	dropLimit                                         // max_output_tokens
	dropCache                                         // prompt_cache_key
	dropStore                                         // store, where nothing is stored anyway
)

// refusedOption returns what to leave out after a refusal, 0 when the refusal
// is about something else. Once is set for what is wrong with this request
// alone.
func refusedOption(err error, level domain.ThoughtLevel, dropped option) (drop option, once bool) {
	f, ok := err.(*llm.Failure) //nolint:errorlint // Start returns its failures bare
	if !ok || (f.Status != http.StatusBadRequest && f.Status != http.StatusNotFound && f.Status != http.StatusUnprocessableEntity) {
		return 0, false
	}
	words := strings.ToLower(f.Param + " " + f.Words)
	named := func(subs ...string) bool { return llm.Says(words, subs...) }
	refused := named("unsupported", "not supported", "does not support", "unknown", "unrecognized", "not permitted", "not allowed",
		"unexpected", "extra", "must be verified", "invalid value", "not a valid", "input should be")
	switch {
	case named("could not be verified", "could not be decrypted", "invalid_encrypted_content", "items are not persisted", "required following item"):
		drop, once = dropKept, true
	case !refused || f.Status == http.StatusNotFound:
	case named("reasoning.summary", "reasoning summar", "'summary'"):
		drop = dropSummary
	case named("reasoning.encrypted_content", "encrypted content", "include"):
		drop = dropInclude
	case named("effort", "'reasoning'", "reasoning "):
		sent := llm.Effort(level, llm.Efforts(dropped&efforts))
		if sent == "" {
			drop = dropSummary // it knows nothing of reasoning
			break
		}
		drop = option(llm.RefuseEffort(0, sent, words))
	case named("max_output_tokens"):
		drop = dropLimit
	case named("prompt_cache_key"):
		drop = dropCache
	case named("store"):
		drop = dropStore
	}
	return drop &^ dropped, once
}

// body is the request as it is sent.
type body struct {
	Model        string     `json:"model"`
	Instructions string     `json:"instructions,omitempty"`
	Input        []any      `json:"input"`
	Tools        []tool     `json:"tools,omitempty"`
	Stream       bool       `json:"stream"`
	Store        *bool      `json:"store,omitempty"`
	Include      []string   `json:"include,omitempty"`
	Reasoning    *reasoning `json:"reasoning,omitempty"`
	MaxOutput    int        `json:"max_output_tokens,omitempty"`
	CacheKey     string     `json:"prompt_cache_key,omitempty"`
}

type reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// tool is a function. Strict is said, because the wire takes its absence for
// true and then refuses schemas with optional fields.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// message is what the user or the model said. Content is a list of parts, or a
// text for the model.
type message struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content any    `json:"content"`
	Phase   string `json:"phase,omitempty"`
}

type part struct {
	Type   string `json:"type"`
	Text   string `json:"text,omitempty"`
	Image  string `json:"image_url,omitempty"`
	Detail string `json:"detail,omitempty"`
}

type functionCall struct {
	Type string `json:"type"`
	ID   string `json:"call_id"`
	Name string `json:"name"`
	Args string `json:"arguments"`
}

// functionOutput answers a call. Output is a text or a list of parts.
type functionOutput struct {
	Type   string `json:"type"`
	ID     string `json:"call_id"`
	Output any    `json:"output"`
}

// leastOutput is the smallest limit on a reply that the wire takes.
const leastOutput = 16

// render writes a request down.
func (m *Model) render(req domain.ModelRequest, dropped option) ([]byte, error) {
	b := body{Model: m.info.Ref.Model, Instructions: req.System, Stream: true, Input: m.input(req, dropped)}
	for _, t := range req.Tools {
		b.Tools = append(b.Tools, tool{Type: "function", Name: t.Name, Description: t.Description, Parameters: llm.Schema(t)})
	}
	if dropped&dropStore == 0 {
		b.Store = new(bool)
	}
	if dropped&dropInclude == 0 {
		b.Include = []string{"reasoning.encrypted_content"}
	}
	if dropped&dropCache == 0 {
		b.CacheKey = string(req.Session)
	}
	if req.MaxOutputTokens > 0 && dropped&dropLimit == 0 {
		b.MaxOutput = max(req.MaxOutputTokens, leastOutput)
	}
	if m.info.Thoughts {
		r := reasoning{Effort: llm.Effort(req.Thoughts, llm.Efforts(dropped&efforts))}
		if dropped&dropSummary == 0 {
			r.Summary = "auto"
		}
		if r != (reasoning{}) {
			b.Reasoning = &r
		}
	}
	return llm.Encode(b)
}

// input renders the conversation as items. What the user said in a row is one
// message, because chat templates behind other servers refuse two.
func (m *Model) input(req domain.ModelRequest, dropped option) []any {
	out := make([]any, 0, len(req.Messages))
	names := llm.NewCallNames()
	var user []domain.Block
	flush := func() {
		if len(user) > 0 {
			out = append(out, message{Type: "message", Role: "user", Content: m.parts(user)})
			user = nil
		}
	}
	for _, msg := range req.Messages {
		switch msg := msg.(type) {
		case domain.UserInput:
			user = append(user, msg.Blocks...)
		case domain.ModelReply:
			items := m.said(msg, names, dropped)
			if len(items) == 0 {
				continue // only thoughts
			}
			flush()
			out = append(out, items...)
		case domain.ToolOutput:
			flush()
			out = append(out, functionOutput{Type: "function_call_output", ID: names.Of(msg.Call), Output: m.output(msg)})
		}
	}
	flush()
	return out
}

// output is the result of a call: its text, or parts when there is something
// the model can see.
func (m *Model) output(o domain.ToolOutput) any {
	text := o.Text
	if text == "" {
		text = "(no output)"
	}
	if len(o.Media) == 0 {
		return text
	}
	return m.parts(append([]domain.Block{domain.Text{Text: text}}, o.Media...))
}

// parts renders blocks: what the model cannot see or hear is named in text.
func (m *Model) parts(blocks []domain.Block) []part {
	var out []part
	var text []domain.Block
	flush := func() {
		if s := domain.PromptText(text); s != "" {
			out = append(out, part{Type: "input_text", Text: s})
		}
		text = nil
	}
	for _, b := range blocks {
		if image, ok := b.(domain.Image); ok && m.info.Images {
			flush()
			out = append(out, part{Type: "input_image", Image: llm.DataURL(image.MIME, image.Data), Detail: "auto"})
			continue
		}
		text = append(text, b)
	}
	flush()
	if out == nil {
		out = []part{{Type: "input_text", Text: " "}} // an empty list is refused
	}
	return out
}
