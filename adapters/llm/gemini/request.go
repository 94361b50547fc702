package gemini

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// body is the request as it is sent.
type body struct {
	System   *content  `json:"systemInstruction,omitempty"`
	Contents []content `json:"contents"`
	Tools    []tools   `json:"tools,omitempty"`
	Config   *config   `json:"generationConfig,omitempty"`
}

// content is a message. Role is "user" or "model"; the system prompt has none.
type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

// part is one piece of a message: a text, a medium, a call or a response.
type part struct {
	Text     *string   `json:"text,omitempty"`
	Thought  bool      `json:"thought,omitempty"`
	Inline   *blob     `json:"inlineData,omitempty"`
	Call     *called   `json:"functionCall,omitempty"`
	Response *response `json:"functionResponse,omitempty"`
	Sign     string    `json:"thoughtSignature,omitempty"`
}

type blob struct {
	MIME string `json:"mimeType"`
	Data []byte `json:"data"` // base64 on the wire
}

type called struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type response struct {
	ID     string `json:"id,omitempty"`
	Name   string `json:"name"`
	Result result `json:"response"`
	Parts  []part `json:"parts,omitempty"`
}

// result is what a function gave, one of the two.
type result struct {
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
}

type tools struct {
	Functions []function `json:"functionDeclarations"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type config struct {
	MaxOutput int             `json:"maxOutputTokens,omitempty"`
	Thinking  *thinkingConfig `json:"thinkingConfig,omitempty"`
}

type thinkingConfig struct {
	Include bool   `json:"includeThoughts,omitempty"`
	Budget  *int   `json:"thinkingBudget,omitempty"`
	Level   string `json:"thinkingLevel,omitempty"`
}

// render writes a request down.
func (m *Model) render(req domain.ModelRequest, dropped option) ([]byte, error) {
	b := body{Contents: m.contents(req, dropped), Config: m.config(req, dropped)}
	if req.System != "" && dropped&systemAsUser == 0 {
		b.System = &content{Parts: []part{{Text: &req.System}}}
	}
	if len(req.Tools) > 0 {
		b.Tools = []tools{{Functions: functions(req.Tools, dropped)}}
	}
	return llm.Encode(b)
}

func (m *Model) config(req domain.ModelRequest, dropped option) *config {
	c := config{MaxOutput: req.MaxOutputTokens}
	if t, ok := m.thinking(req, dropped); ok {
		c.Thinking = &thinkingConfig{Include: t.include, Level: t.level}
		if t.counted {
			c.Thinking.Budget = &t.budget
		}
		if *c.Thinking == (thinkingConfig{}) {
			c.Thinking = nil
		}
	}
	if c == (config{}) {
		return nil
	}
	return &c
}

func functions(specs []domain.ToolSpec, dropped option) []function {
	out := make([]function, 0, len(specs))
	for _, t := range specs {
		f := function{Name: t.Name, Description: t.Description}
		if dropped&plainSchema != 0 {
			f.Parameters = reduced(t.Schema)
		} else {
			f.Schema = llm.Schema(t)
		}
		out = append(out, f)
	}
	return out
}
