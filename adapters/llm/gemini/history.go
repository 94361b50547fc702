package gemini

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

const (
	roleUser  = "user"
	roleModel = "model"
)

// skipSign is the value that the makers of the models document for a call of
// another origin, where a signature is demanded.
const skipSign = "skip_thought_signature_validator"

// history writes a conversation as contents whose roles alternate. A reply with
// calls is followed by one response for each of them, in their order: that is
// how calls without ids are told apart.
type history struct {
	m       *Model
	dropped option
	out     []content
	open    []openCall // the calls of the newest reply
}

// openCall is a call that waits for its response.
type openCall struct {
	call   domain.ModelCall
	id     string // as it was sent with the call; "" for none
	output *domain.ToolOutput
}

// contents renders the conversation.
func (m *Model) contents(req domain.ModelRequest, dropped option) []content {
	h := history{m: m, dropped: dropped, out: make([]content, 0, len(req.Messages)+1)}
	if req.System != "" && dropped&systemAsUser != 0 {
		h.add(roleUser, part{Text: &req.System})
	}
	for _, msg := range req.Messages {
		switch msg := msg.(type) {
		case domain.UserInput:
			h.answer()
			h.add(roleUser, m.said(msg.Blocks)...)
		case domain.ModelReply:
			h.answer()
			h.reply(msg)
		case domain.ToolOutput:
			h.output(msg)
		}
	}
	h.answer()
	if len(h.out) > 0 && h.out[0].Role == roleModel {
		h.out = slices.Insert(h.out, 0, content{Role: roleUser, Parts: []part{text("[The beginning of the conversation is left out.]")}})
	}
	h.sign()
	return h.out
}

func text(s string) part { return part{Text: &s} }

// add appends parts; those of one role that follow each other are one message.
func (h *history) add(role string, parts ...part) {
	if len(parts) == 0 {
		return
	}
	if last := len(h.out) - 1; last >= 0 && h.out[last].Role == role {
		h.out[last].Parts = append(h.out[last].Parts, parts...)
		return
	}
	h.out = append(h.out, content{Role: role, Parts: parts})
}

// reply adds a reply of before. With what was kept of it, its parts are those
// that came, in their order; else a text and the calls.
func (h *history) reply(r domain.ModelReply) {
	keep, own := h.m.kept(r.Opaque)
	parts := keep.Parts
	texts, thoughts := r.Text, r.Thought
	if !own || !fits(parts, textPart, texts) {
		parts = reshaped(parts, len(texts))
	}
	if !fits(parts, thoughtPart, thoughts) {
		thoughts = ""
	}
	var out []part
	next := 0
	for _, k := range parts {
		sign := k.Sign
		if h.dropped&(dropSigns|dropForeign) != 0 {
			sign = ""
		}
		switch k.Kind {
		case textPart:
			if s := take(&texts, k.Len); s != "" || sign != "" {
				out = append(out, part{Text: &s, Sign: sign})
			}
		case thoughtPart:
			if s := take(&thoughts, k.Len); sign != "" && s != "" {
				out = append(out, part{Text: &s, Thought: true, Sign: sign})
			}
		case callPart:
			if next < len(r.Calls) {
				out = append(out, h.call(r.Calls[next], own, sign))
				next++
			}
		}
	}
	for ; next < len(r.Calls); next++ {
		out = append(out, h.call(r.Calls[next], own, ""))
	}
	h.add(roleModel, out...)
}

// fits reports whether the parts of a kind make up a text.
func fits(parts []kept, of kind, s string) bool {
	n := 0
	for _, p := range parts {
		if p.Kind == of {
			n += p.Len
		}
	}
	return n == len(s)
}

// reshaped returns parts for a text of n bytes that is not the one they came
// with: all of it is the first part; signatures of texts go without one.
func reshaped(parts []kept, n int) []kept {
	out := []kept{{Kind: textPart, Len: n}}
	for _, p := range parts {
		if p.Kind == textPart {
			p.Len = 0
		}
		out = append(out, p)
	}
	return out
}

func take(s *string, n int) string {
	n = min(n, len(*s))
	head := (*s)[:n]
	*s = (*s)[n:]
	return head
}

// call renders a call. Ids are given back to the model that made them; others
// do without.
func (h *history) call(c domain.ModelCall, own bool, sign string) part {
	id := ""
	if own && h.dropped&dropIDs == 0 {
		id = c.ProviderID
	}
	h.open = append(h.open, openCall{call: c, id: id})
	return part{Call: &called{ID: id, Name: toolName(c.Name), Args: llm.Sent(c)}, Sign: sign}
}

// output keeps an output for the call it answers. One that answers none is
// said in words.
func (h *history) output(o domain.ToolOutput) {
	same := func(k openCall) bool { return k.output == nil && k.call.ID == o.Call.ID && k.call.Name == o.Call.Name }
	i := slices.IndexFunc(h.open, func(k openCall) bool { return same(k) && k.call.ProviderID == o.Call.ProviderID })
	if i < 0 {
		i = slices.IndexFunc(h.open, same)
	}
	if i >= 0 {
		h.open[i].output = &o
		return
	}
	h.answer()
	h.add(roleUser, text("[Output of "+o.Call.Name+"]\n"+o.Text))
	h.add(roleUser, h.m.said(o.Media)...)
}

// answer adds the responses of all open calls, and behind them the media that
// responses cannot hold.
func (h *history) answer() {
	var responses, behind []part
	for _, k := range h.open {
		r := response{ID: k.id, Name: toolName(k.call.Name)}
		if k.output == nil {
			r.Result.Error = "No result of this call was recorded; it may or may not have taken effect."
			responses = append(responses, part{Response: &r})
			continue
		}
		inside, after, marks := h.media(k.output.Media)
		words := k.output.Text
		for _, mark := range marks {
			words = strings.TrimPrefix(words+"\n\n"+mark, "\n\n")
		}
		switch {
		case words == "" && k.output.Failed:
			words = "(no output)"
			fallthrough
		case k.output.Failed:
			r.Result.Error = words
		case words == "":
			r.Result.Output = "(no output)"
		default:
			r.Result.Output = words
		}
		r.Parts = inside
		responses = append(responses, part{Response: &r})
		if len(after) > 0 {
			behind = append(append(behind, text("["+r.Name+" shows:]")), after...)
		}
	}
	h.open = nil
	h.add(roleUser, append(responses, behind...)...)
}

// media sorts what a tool shows into what its response can hold, what goes
// behind it, and the words for what the model can take neither way.
func (h *history) media(blocks []domain.Block) (inside, behind []part, marks []string) {
	for _, b := range blocks {
		p, ok := h.m.inline(b)
		switch {
		case !ok:
			if s := domain.PromptText([]domain.Block{b}); s != "" {
				marks = append(marks, s)
			}
		case h.m.family.seesOutputs() && h.dropped&mediaBehind == 0 && plainPicture(p.Inline.MIME):
			inside = append(inside, p)
		default:
			behind = append(behind, p)
		}
	}
	return inside, behind, marks
}

// plainPicture reports whether a response can hold a picture of that type.
func plainPicture(mime string) bool {
	return mime == "image/png" || mime == "image/jpeg" || mime == "image/webp"
}

// said renders what the user said: texts, and what the model can see or hear.
func (m *Model) said(blocks []domain.Block) []part {
	var out []part
	var words []domain.Block
	flush := func() {
		if s := domain.PromptText(words); s != "" {
			out = append(out, text(s))
		}
		words = nil
	}
	for _, b := range blocks {
		if p, ok := m.inline(b); ok {
			flush()
			out = append(out, p)
			continue
		}
		words = append(words, b)
	}
	flush()
	return out
}

// inline renders what the model can see or hear; false for all else.
func (m *Model) inline(b domain.Block) (part, bool) {
	switch b := b.(type) {
	case domain.Image:
		if m.info.Images {
			return part{Inline: &blob{MIME: strings.ToLower(b.MIME), Data: b.Data}}, true
		}
	case domain.Audio:
		if m.info.Audio {
			return part{Inline: &blob{MIME: audioType(b.MIME), Data: b.Data}}, true
		}
	case domain.Text, domain.Resource, domain.Link, domain.Attachment:
	}
	return part{}, false
}

// audioType is the wire's name of a type of sound.
func audioType(mime string) string {
	switch mime = strings.ToLower(mime); mime {
	case "audio/mpeg":
		return "audio/mp3"
	case "audio/x-wav", "audio/wave", "audio/vnd.wave":
		return "audio/wav"
	}
	return mime
}

// sign gives the calls that lack a signature the value for that, where the
// model demands one: in the first call of each reply of the turn at hand.
func (h *history) sign() {
	if h.dropped&dropSigns != 0 || (!h.m.family.signs() && h.dropped&signEverywhere == 0) {
		return
	}
	for i := len(h.out) - 1; i >= 0; i-- {
		c := h.out[i]
		if c.Role == roleUser {
			if h.dropped&signEverywhere == 0 && !slices.ContainsFunc(c.Parts, func(p part) bool { return p.Response != nil }) {
				return // here the turn began
			}
			continue
		}
		if first := slices.IndexFunc(c.Parts, func(p part) bool { return p.Call != nil }); first >= 0 && c.Parts[first].Sign == "" {
			c.Parts[first].Sign = skipSign
		}
	}
}
