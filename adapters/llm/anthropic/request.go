package anthropic

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// body is the request as it is sent.
type body struct {
	Model     string         `json:"model"`
	MaxTokens int64          `json:"max_tokens"`
	Stream    bool           `json:"stream"`
	Thinking  *thinkingField `json:"thinking,omitempty"`
	Output    *output        `json:"output_config,omitempty"`
	Choice    *choice        `json:"tool_choice,omitempty"`
	Tools     []tool         `json:"tools,omitempty"`
	System    []*block       `json:"system,omitempty"`
	Messages  []message      `json:"messages"`
}

type output struct {
	Effort string `json:"effort"`
}

type choice struct {
	Type string `json:"type"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cache          `json:"cache_control,omitempty"`
}

type message struct {
	Role    string   `json:"role"`
	Content []*block `json:"content"`
}

// block is one content block of any type.
type block struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"` // text

	Source *source `json:"source,omitempty"` // image

	ID    string          `json:"id,omitempty"` // tool_use
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`

	For     string `json:"tool_use_id,omitempty"` // tool_result
	Content any    `json:"content,omitempty"`     // a string or []*block
	Failed  bool   `json:"is_error,omitempty"`

	Thinking  *string `json:"thinking,omitempty"` // thinking
	Signature *string `json:"signature,omitempty"`
	Data      string  `json:"data,omitempty"` // redacted_thinking

	Cache *cache `json:"cache_control,omitempty"`
}

type source struct {
	Type  string `json:"type"`
	Media string `json:"media_type"`
	Data  []byte `json:"data"`
}

type cache struct {
	Type string `json:"type"`
}

// thought reports whether b is a thought given back.
func (b *block) thought() bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }

// render writes a request down.
func (m *Model) render(req domain.ModelRequest, p *plan) ([]byte, error) {
	b := body{
		Model: m.info.Ref.Model, MaxTokens: p.most, Stream: true, Thinking: p.think,
		Tools: tools(req), Messages: m.messages(req, p),
	}
	if p.effort != "" {
		b.Output = &output{Effort: p.effort}
	}
	if req.System != "" {
		b.System = []*block{{Type: "text", Text: req.System}}
	}
	if len(req.Tools) == 0 && len(b.Tools) > 0 {
		b.Choice = &choice{Type: "none"}
	}
	if p.dropped&dropCache == 0 {
		b.mark()
	}
	return llm.Encode(b)
}

// tools describes the tools of a request. One without any whose conversation
// holds calls describes those, because calls of unknown tools are refused.
func tools(req domain.ModelRequest) []tool {
	var out []tool
	for _, t := range req.Tools {
		out = append(out, tool{Name: t.Name, Description: t.Description, Schema: llm.Schema(t)})
	}
	if len(out) > 0 {
		return out
	}
	seen := make(map[string]bool)
	for _, msg := range req.Messages {
		r, ok := msg.(domain.ModelReply)
		if !ok {
			continue
		}
		for _, c := range r.Calls {
			if name := llm.ToolName(c.Name); !seen[name] {
				seen[name] = true
				out = append(out, tool{Name: name, Schema: llm.AnyObject()})
			}
		}
	}
	return out
}
