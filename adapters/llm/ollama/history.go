package ollama

import (
	"encoding/json"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// keepsake is the content of domain.Opaque: which model thought. Templates
// show a model its own thoughts of a turn with tools again; those of another
// model are none of its business.
type keepsake struct {
	Model string `json:"model"`
}

// own reports whether a reply's thoughts are this very model's.
func own(o *domain.Opaque, ref domain.ModelRef) bool {
	var k keepsake
	return o != nil && o.Provider == ref.Provider && json.Unmarshal(o.Data, &k) == nil && k.Model == ref.Model
}

// history renders a conversation.
type history struct {
	info  domain.ModelInfo
	ids   bool // calls have ids
	names *llm.CallNames

	out   []message
	user  []domain.Block // said and not yet written
	shown []domain.Block // media of tools; they follow the last of their results
}

// messages renders the conversation. Messages of one role that follow each
// other become one, because some templates expect them to alternate.
func (h *history) messages(req domain.ModelRequest) []message {
	h.out = make([]message, 0, len(req.Messages)+1)
	if req.System != "" {
		h.out = append(h.out, message{Role: "system", Content: req.System})
	}
	thought := llm.ToolTurns(req.Messages)
	for i, msg := range req.Messages {
		switch msg := msg.(type) {
		case domain.UserInput:
			h.user = append(h.user, msg.Blocks...)
		case domain.ModelReply:
			if msg.Text == "" && len(msg.Calls) == 0 {
				continue // only thoughts; templates expect something said
			}
			h.flush()
			h.reply(msg, thought[i])
		case domain.ToolOutput:
			h.output(msg)
		}
	}
	h.flush()
	return h.out
}

// flush writes what the user said, and before it what tools have shown.
func (h *history) flush() {
	if blocks := append(h.shown, h.user...); len(blocks) > 0 {
		content, images := h.content(blocks)
		h.out = append(h.out, message{Role: "user", Content: content, Images: images})
	}
	h.shown, h.user = nil, nil
}

func (h *history) reply(r domain.ModelReply, thought bool) {
	next := message{Role: "assistant", Content: r.Text}
	if thought && own(r.Opaque, h.info.Ref) {
		next.Thinking = r.Thought
	}
	for i, c := range r.Calls {
		sent := call{Function: callFunction{Index: i, Name: c.Name, Args: llm.Sent(c)}}
		if id := h.names.Add(c); h.ids {
			sent.ID = id
		}
		next.Calls = append(next.Calls, sent)
	}
	if n := len(h.out); n > 0 && h.out[n-1].Role == "assistant" && len(h.out[n-1].Calls) == 0 {
		before := h.out[n-1].Content
		if next.Content != "" {
			next.Content = "\n\n" + next.Content
		}
		next.Content = before + next.Content
		h.out[n-1] = next
		return
	}
	h.out = append(h.out, next)
}

func (h *history) output(o domain.ToolOutput) {
	if len(h.user) > 0 {
		h.flush()
	}
	sent := message{Role: "tool", Content: o.Text, Tool: o.Call.Name}
	if sent.Content == "" {
		sent.Content = "(no output)"
	}
	if h.ids {
		sent.CallID = h.names.Of(o.Call)
	}
	h.out = append(h.out, sent)
	if len(o.Media) > 0 {
		h.shown = append(append(h.shown, domain.Text{Text: "[Shown by " + o.Call.Name + ":]"}), o.Media...)
	}
}

// content renders what the user said: a text, and what of the rest the model
// can see or hear.
func (h *history) content(blocks []domain.Block) (string, [][]byte) {
	var text []domain.Block
	var images [][]byte
	for _, b := range blocks {
		switch b := b.(type) {
		case domain.Image:
			if h.info.Images {
				images = append(images, b.Data)
				continue
			}
		case domain.Audio:
			if h.info.Audio && wave(b) {
				images = append(images, b.Data)
				continue
			}
		}
		text = append(text, b)
	}
	return domain.PromptText(text), images
}

// wave reports whether a sound is of the one form Ollama knows.
func wave(b domain.Audio) bool {
	return len(b.Data) > 12 && string(b.Data[:4]) == "RIFF" && string(b.Data[8:12]) == "WAVE" ||
		strings.HasSuffix(strings.ToLower(b.MIME), "wav")
}
