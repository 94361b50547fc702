package bedrock

import (
	"encoding/json"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// body is a request. Which model is asked stands in its address.
type body struct {
	Messages  []message      `json:"messages"`
	System    []content      `json:"system,omitempty"`
	Tools     *toolConfig    `json:"toolConfig,omitempty"`
	Inference *inference     `json:"inferenceConfig,omitempty"`
	More      map[string]any `json:"additionalModelRequestFields,omitempty"` // in the words of the model's maker
}

type inference struct {
	MaxTokens int `json:"maxTokens"`
}

// message is one of the user or the assistant. Their roles alternate, and the
// first is the user's.
type message struct {
	Role    string    `json:"role"`
	Content []content `json:"content"`
}

// content is one block; exactly one of its members is there.
type content struct {
	Text       string      `json:"text,omitempty"`
	Image      *media      `json:"image,omitempty"`
	Audio      *media      `json:"audio,omitempty"`
	Call       *toolUse    `json:"toolUse,omitempty"`
	Result     *toolResult `json:"toolResult,omitempty"`
	Thought    *thought    `json:"reasoningContent,omitempty"`
	CachePoint *cachePoint `json:"cachePoint,omitempty"`
}

type media struct {
	Format string `json:"format"`
	Source struct {
		Bytes []byte `json:"bytes"`
	} `json:"source"`
}

type toolUse struct {
	ID    string          `json:"toolUseId"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

type toolResult struct {
	ID      string    `json:"toolUseId"`
	Content []content `json:"content"`
	Status  string    `json:"status,omitempty"`
}

type thought struct {
	Text *struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
	} `json:"reasoningText,omitempty"`
	Redacted []byte `json:"redactedContent,omitempty"`
}

type toolConfig struct {
	Tools []tool `json:"tools"`
}

// tool is one tool or, behind them, the point up to which they are cached.
type tool struct {
	Spec       *toolSpec   `json:"toolSpec,omitempty"`
	CachePoint *cachePoint `json:"cachePoint,omitempty"`
}

type toolSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Input       struct {
		JSON json.RawMessage `json:"json"`
	} `json:"inputSchema"`
}

type cachePoint struct {
	Type string `json:"type"`
}

// render writes a request down.
func (m *Model) render(req domain.ModelRequest, dropped option) ([]byte, error) {
	w := m.conversation(req, dropped)
	b := body{Messages: w.out}
	if strings.TrimSpace(req.System) != "" {
		b.System = []content{{Text: req.System}}
	}
	if len(req.Tools) > 0 {
		b.Tools = &toolConfig{Tools: tools(req.Tools)}
	}
	if req.MaxOutputTokens > 0 && dropped&dropLimit == 0 {
		b.Inference = &inference{MaxTokens: req.MaxOutputTokens}
	}
	m.think(&b, req.Thoughts, w.unsigned, dropped)
	m.cache(&b, dropped)
	return llm.Encode(b)
}

func tools(specs []domain.ToolSpec) []tool {
	out := make([]tool, 0, len(specs)+1)
	for _, t := range specs {
		spec := &toolSpec{Name: t.Name, Description: t.Description}
		spec.Input.JSON = llm.Schema(t)
		out = append(out, tool{Spec: spec})
	}
	return out
}

// cache marks the parts of a request that the next one will share: tools,
// system prompt and the conversation so far. The point before the last message
// finds what the request before this one has stored. Nova takes no points among
// its tools, others none at all.
func (m *Model) cache(b *body, dropped option) {
	point := &cachePoint{Type: "default"}
	back := 1
	switch m.family {
	case claudeFamily:
		back = 2
		if b.Tools != nil && dropped&dropToolCache == 0 {
			b.Tools.Tools = append(b.Tools.Tools, tool{CachePoint: point})
		}
	case novaFamily:
	case otherFamily, gptFamily:
		return
	}
	if b.System != nil && dropped&dropSystemCache == 0 {
		b.System = append(b.System, content{CachePoint: point})
	}
	if dropped&dropMessageCache != 0 {
		return
	}
	for i := len(b.Messages) - 1; i >= 0 && back > 0; i-- {
		if b.Messages[i].Role == roleUser {
			b.Messages[i].Content = append(b.Messages[i].Content, content{CachePoint: point})
			back--
		}
	}
}
