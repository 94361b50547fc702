package bedrock

import (
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// The roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

// What stands where the wire wants words and there are none.
const (
	noOutput  = "(no output)"
	noMessage = "(empty message)"
	earlier   = "(what came before was left out)"
)

// conversation is the rendering of a request's messages.
type conversation struct {
	model *Model
	out   []message
	ids   *llm.CallNames
	// plain writes calls and their outputs as text, for a request without
	// tools: the wire refuses calls in one that has none.
	plain bool
	// bare gives no thoughts back.
	bare bool
	late []content // media that go behind the tool results at hand
	// unsigned tells that the turn under way has a call without signed
	// thoughts before it.
	unsigned bool
}

// conversation renders the messages. Those of one role that follow each other
// become one, as the wire wants it.
func (m *Model) conversation(req domain.ModelRequest, dropped option) *conversation {
	w := &conversation{
		model: m, ids: llm.NewPlainCallNames(), plain: len(req.Tools) == 0, bare: dropped&dropSigned != 0,
		out: make([]message, 0, len(req.Messages)),
	}
	for _, msg := range req.Messages {
		switch msg := msg.(type) {
		case domain.UserInput:
			w.flush()
			w.unsigned = false
			blocks := m.content(msg.Blocks)
			if len(blocks) == 0 {
				blocks = []content{{Text: noMessage}}
			}
			w.add(roleUser, blocks...)
		case domain.ModelReply:
			w.flush()
			w.reply(msg)
		case domain.ToolOutput:
			w.output(msg)
		}
	}
	w.flush()
	return w
}

// add puts blocks behind what was written.
func (w *conversation) add(role string, blocks ...content) {
	if len(blocks) == 0 {
		return
	}
	if n := len(w.out); n > 0 && w.out[n-1].Role == role {
		w.out[n-1].Content = append(w.out[n-1].Content, blocks...)
		return
	}
	if len(w.out) == 0 && role != roleUser {
		w.out = append(w.out, message{Role: roleUser, Content: []content{{Text: earlier}}})
	}
	w.out = append(w.out, message{Role: role, Content: blocks})
}

// flush writes what was held back until all results of a reply are there.
func (w *conversation) flush() {
	w.add(roleUser, w.late...)
	w.late = nil
}

// reply renders a reply of before: in the order in which it came where that
// was kept, else text and then calls.
func (w *conversation) reply(r domain.ModelReply) {
	var parts []part
	if !w.bare && !w.plain {
		parts = w.model.kept(r)
	}
	if parts == nil {
		w.unsigned = w.unsigned || len(r.Calls) > 0
		n := len(r.Text)
		parts = []part{{Text: &n}}
		for range r.Calls {
			parts = append(parts, part{Call: true})
		}
	}
	blocks, said := w.parts(r, parts)
	if said { // no model wants a message of thoughts alone
		w.add(roleAssistant, blocks...)
	}
}

// parts renders the parts of a reply, and reports whether one of them is more
// than a thought.
func (w *conversation) parts(r domain.ModelReply, parts []part) (out []content, said bool) {
	text, thoughts, calls := r.Text, r.Thought, r.Calls
	for _, p := range parts {
		switch {
		case p.Text != nil:
			if s := text[:*p.Text]; strings.TrimSpace(s) != "" {
				out, said = append(out, content{Text: s}), true
			}
			text = text[*p.Text:]
		case p.Thought != nil:
			s := thoughts[:p.Thought.Size]
			thoughts = thoughts[p.Thought.Size:]
			if p.Thought.Signature != "" {
				out = append(out, signedThought(s, p.Thought.Signature))
			}
		case p.Secret != nil:
			out = append(out, content{Thought: &thought{Redacted: p.Secret}})
		case p.Call:
			out, said = append(out, w.call(calls[0])), true
			calls = calls[1:]
		}
	}
	return out, said
}

func signedThought(text, signature string) content {
	t := &thought{Text: &struct {
		Text      string `json:"text"`
		Signature string `json:"signature"`
	}{text, signature}}
	return content{Thought: t}
}

func (w *conversation) call(c domain.ModelCall) content {
	args := llm.Sent(c)
	if w.plain {
		return content{Text: "[call of " + c.Name + " with " + string(args) + "]"}
	}
	return content{Call: &toolUse{ID: w.ids.Add(c), Name: llm.ToolName(c.Name), Input: args}}
}

// output renders the output of a call.
func (w *conversation) output(o domain.ToolOutput) {
	text := o.Text
	if strings.TrimSpace(text) == "" {
		text = noOutput
	}
	if w.plain {
		w.add(roleUser, content{Text: "[output of " + o.Call.Name + "]\n" + text})
		w.late = append(w.late, w.model.content(o.Media)...)
		return
	}
	result := &toolResult{ID: w.ids.Of(o.Call), Content: []content{{Text: text}}}
	rich := w.model.family == claudeFamily || w.model.family == novaFamily
	if rich && o.Failed {
		result.Status = "error"
	}
	for _, c := range w.model.content(o.Media) {
		if rich && c.Audio == nil {
			result.Content = append(result.Content, c)
		} else {
			w.late = append(w.late, c)
		}
	}
	w.add(roleUser, content{Result: result})
}

// content renders what was said or shown. What the model cannot see or hear
// becomes words.
func (m *Model) content(blocks []domain.Block) []content {
	var out []content
	var text []domain.Block
	flush := func() {
		if s := domain.PromptText(text); strings.TrimSpace(s) != "" {
			out = append(out, content{Text: s})
		}
		text = nil
	}
	for _, b := range blocks {
		switch b := b.(type) {
		case domain.Image:
			if format := imageFormat(b.MIME); m.info.Images && format != "" && len(b.Data) > 0 {
				flush()
				out = append(out, content{Image: newMedia(format, b.Data)})
				continue
			}
		case domain.Audio:
			if format := audioFormat(b.MIME); m.info.Audio && format != "" && len(b.Data) > 0 {
				flush()
				out = append(out, content{Audio: newMedia(format, b.Data)})
				continue
			}
		}
		text = append(text, b)
	}
	flush()
	return out
}

func newMedia(format string, data []byte) *media {
	m := &media{Format: format}
	m.Source.Bytes = data
	return m
}

// imageFormat is the wire's name of an image type, "" for one it does not
// take.
func imageFormat(mime string) string {
	switch format := strings.TrimPrefix(strings.ToLower(mime), "image/"); format {
	case "png", "jpeg", "gif", "webp":
		return format
	case "jpg":
		return "jpeg"
	}
	return ""
}

// audioFormat is the wire's name of an audio type, "" for one it does not
// take.
func audioFormat(mime string) string {
	switch format := strings.TrimPrefix(strings.ToLower(mime), "audio/"); format {
	case "mp3", "wav", "flac", "ogg", "opus", "aac", "m4a", "webm", "mp4":
		return format
	case "mpeg":
		return "mp3"
	case "x-wav", "wave", "vnd.wave":
		return "wav"
	}
	return ""
}
