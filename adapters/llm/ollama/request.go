package ollama

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// body is the request as it is sent.
type body struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Tools    []tool    `json:"tools,omitempty"`
	Stream   bool      `json:"stream"`
	Think    any       `json:"think,omitempty"` // a bool or a level
	// Truncate and Shift are false: what does not fit the window is to be
	// refused, and a reply that fills it is to end there. Absent they are true.
	Truncate *bool    `json:"truncate,omitempty"`
	Shift    *bool    `json:"shift,omitempty"`
	Options  *options `json:"options,omitempty"`
}

type options struct {
	NumCtx     int64 `json:"num_ctx,omitempty"`
	NumPredict int   `json:"num_predict,omitempty"`
}

type tool struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// message is one of any role. Sounds travel as images: the server looks at
// what they begin with.
type message struct {
	Role     string   `json:"role"`
	Content  string   `json:"content"`
	Thinking string   `json:"thinking,omitempty"`
	Images   [][]byte `json:"images,omitempty"`
	Calls    []call   `json:"tool_calls,omitempty"`
	Tool     string   `json:"tool_name,omitempty"`
	CallID   string   `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string       `json:"id,omitempty"`
	Function callFunction `json:"function"`
}

type callFunction struct {
	Index int             `json:"index"`
	Name  string          `json:"name"`
	Args  json.RawMessage `json:"arguments"`
}

// render writes a request down.
func (m *Model) render(req domain.ModelRequest, f *facts, dropped option) ([]byte, error) {
	info := m.info
	f.apply(&info, m.provider.Models[info.Ref.Model])
	b := body{Model: info.Ref.Model, Stream: true, Options: &options{NumPredict: req.MaxOutputTokens}}
	h := history{info: info, ids: dropped&dropIDs == 0, names: llm.NewCallNames()}
	b.Messages = h.messages(req)
	for _, t := range req.Tools {
		b.Tools = append(b.Tools, tool{Type: "function", Function: toolFunction{Name: t.Name, Description: t.Description, Parameters: llm.Schema(t)}})
	}
	if info.Thoughts && dropped&dropThink == 0 {
		b.Think = think(req.Thoughts, f.levels && dropped&dropLevels == 0)
	}
	if dropped&dropCut == 0 {
		b.Truncate, b.Shift = new(bool), new(bool)
	}
	if !f.elsewhere {
		b.Options.NumCtx = f.window
	}
	if *b.Options == (options{}) {
		b.Options = nil
	}
	return llm.Encode(b)
}

// think is the wire's word for a level of thought, nil for none. A model that
// takes levels cannot be kept from thinking, so off is its least.
func think(level domain.ThoughtLevel, levels bool) any {
	if !levels {
		switch level {
		case "":
			return nil
		case domain.ThoughtsOff:
			return false
		}
		return true
	}
	switch level {
	case domain.ThoughtsOff, domain.ThoughtsMinimal, domain.ThoughtsLow:
		return "low"
	case domain.ThoughtsMedium:
		return "medium"
	case domain.ThoughtsHigh, domain.ThoughtsXHigh:
		return "high"
	}
	return nil
}
