package anthropic

import (
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// Texts that stand where the wire wants a message and the conversation has
// none.
const (
	goOn     = "Continue."
	left     = "(The beginning of the conversation was left out.)"
	noOutput = "(no output)"
)

// conversation puts the messages of a request together: roles alternate, the
// user begins and ends, every call has its result in the message behind it,
// before all else in there.
type conversation struct {
	m       *Model
	p       *plan
	names   *llm.CallNames
	out     []message
	prefix  *prefix    // of all in out; nil when the model does not bind to it
	waiting []*waiting // calls of the newest reply, in order
	results []*block
	rest    []*block // what the user says besides
}

// waiting is a call that wants its result.
type waiting struct {
	call     domain.ModelCall
	wire     string
	answered bool
}

func (m *Model) messages(req domain.ModelRequest, p *plan) []message {
	c := &conversation{m: m, p: p, names: llm.NewPlainCallNames()}
	if m.kind.Binds {
		c.prefix = newPrefix(req)
	}
	for _, msg := range req.Messages {
		switch msg := msg.(type) {
		case domain.UserInput:
			c.rest = append(c.rest, m.content(msg.Blocks, p)...)
		case domain.ModelReply:
			c.reply(msg)
		case domain.ToolOutput:
			c.output(msg)
		}
	}
	c.turn()
	if n := len(c.out); n == 0 || c.out[n-1].Role != "user" {
		// Newer models refuse to continue a reply.
		c.add("user", &block{Type: "text", Text: goOn})
	}
	if c.prefix != nil {
		p.prefix = c.prefix.String()
	}
	return c.out
}

// add appends a message, or to the last one when it is of the same role.
func (c *conversation) add(role string, content ...*block) {
	if n := len(c.out); n > 0 && c.out[n-1].Role == role {
		c.out[n-1].Content = append(c.out[n-1].Content, content...)
	} else {
		c.out = append(c.out, message{Role: role, Content: content})
	}
	if c.prefix != nil {
		c.prefix.message(role, content)
	}
}

// turn ends what the user says: a reply follows, or nothing.
func (c *conversation) turn() {
	for _, w := range c.waiting {
		if !w.answered {
			c.results = append(c.results, &block{Type: "tool_result", For: w.wire, Content: domain.NotRunText, Failed: true})
		}
	}
	if content := append(c.results, c.rest...); len(content) > 0 {
		c.add("user", content...)
	}
	c.waiting, c.results, c.rest = nil, nil, nil
}

// reply adds what the model said. A reply without content is left out: no
// message may be empty.
func (c *conversation) reply(r domain.ModelReply) {
	if strings.TrimSpace(r.Text) == "" && len(r.Calls) == 0 {
		return
	}
	c.turn()
	keep := c.m.kept(r.Opaque)
	layout := layoutOf(r, keep.Blocks)
	if c.p.bare || c.prefix != nil && keep.Prefix != "" && keep.Prefix != c.prefix.String() {
		layout = layout.without()
	}
	var content []*block
	text := r.Text
	for _, k := range layout {
		switch {
		case k.Call > 0:
			content = append(content, c.call(r.Calls[k.Call-1]))
		case k.Thought != nil:
			content, c.p.thoughts = append(content, k.Thought.block()), true
		default:
			if said := text[:k.Text]; strings.TrimSpace(said) != "" {
				content = append(content, &block{Type: "text", Text: said})
			}
			text = text[k.Text:]
		}
	}
	for content[len(content)-1].thought() {
		content = content[:len(content)-1] // a message must not end in thought
	}
	if len(c.out) == 0 {
		c.add("user", &block{Type: "text", Text: left})
	}
	c.add("assistant", content...)
}

func (c *conversation) call(call domain.ModelCall) *block {
	w := &waiting{call: call, wire: c.names.Add(call)}
	c.waiting = append(c.waiting, w)
	return &block{Type: "tool_use", ID: w.wire, Name: llm.ToolName(call.Name), Input: llm.Sent(call)}
}

// output adds the result of a call. One whose call is not there, and what a
// result cannot hold, is said by the user.
func (c *conversation) output(o domain.ToolOutput) {
	text := o.Text
	if strings.TrimSpace(text) == "" {
		text = noOutput
	}
	media := c.m.content(o.Media, c.p)
	w := c.find(o.Call)
	if w == nil {
		c.rest = append(c.rest, &block{Type: "text", Text: "[Result of an earlier call of " + o.Call.Name + "]\n" + text})
		c.rest = append(c.rest, media...)
		return
	}
	w.answered = true
	result := &block{Type: "tool_result", For: w.wire, Content: text, Failed: o.Failed}
	c.results = append(c.results, result)
	switch {
	case len(media) == 0:
	case o.Failed: // of a failure, only text is taken
		c.rest = append(c.rest, media...)
	case strings.TrimSpace(o.Text) == "":
		result.Content = media
	default:
		result.Content = append([]*block{{Type: "text", Text: text}}, media...)
	}
}

// find returns the call that an output answers, nil when there is none.
func (c *conversation) find(call domain.ModelCall) *waiting {
	for _, w := range c.waiting {
		same := w.call.ID == call.ID
		if call.ID == "" {
			same = w.call.ProviderID == call.ProviderID && w.call.Name == call.Name
		}
		if same && !w.answered {
			return w
		}
	}
	return nil
}

// content renders what the user said: texts, and the pictures that the model
// can see.
func (m *Model) content(blocks []domain.Block, p *plan) []*block {
	var out []*block
	var text []domain.Block
	flush := func() {
		if s := domain.PromptText(text); strings.TrimSpace(s) != "" {
			out = append(out, &block{Type: "text", Text: s})
		}
		text = nil
	}
	for _, b := range blocks {
		if img, ok := b.(domain.Image); ok && m.info.Images && !p.blind {
			if mime := imageType(img); mime != "" {
				flush()
				p.pictures = true
				out = append(out, &block{Type: "image", Source: &source{Type: "base64", Media: mime, Data: img.Data}})
				continue
			}
		}
		text = append(text, b)
	}
	flush()
	return out
}

// imageType returns the wire's name of a picture's type, "" for one it does
// not take.
func imageType(img domain.Image) string {
	if len(img.Data) == 0 {
		return ""
	}
	switch mime := strings.ToLower(img.MIME); mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return mime
	case "image/jpg":
		return "image/jpeg"
	}
	return ""
}
