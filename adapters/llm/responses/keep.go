package responses

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// keepsake is what goes back with a reply: its reasoning, and the order of
// its items, because a server refuses reasoning that is not followed by what
// it led to. It is the content of domain.Opaque, and goes back only to the
// provider and the model it came from: nobody else can read it.
type keepsake struct {
	Model string `json:"model"`
	Items []kept `json:"items"`
}

// kept is one item of a reply: reasoning as the server wrote it, a message, or
// a call. What is in the reply already is not stored twice.
type kept struct {
	Reasoning json.RawMessage `json:"reasoning,omitempty"`
	Text      int             `json:"text,omitempty"` // length of a message, in bytes of the reply's text
	Phase     string          `json:"phase,omitempty"`
	Call      bool            `json:"call,omitempty"` // the next one
}

// between stands between two messages of one reply.
const between = "\n\n"

// opaque returns what is to be kept with a reply, nil when its text and calls
// say it all.
func (r *reply) opaque() *domain.Opaque {
	k := keepsake{Model: r.model.info.Ref.Model}
	more := false
	for _, it := range r.items {
		switch {
		case it.kind == kindReasoning && it.raw != nil:
			k.Items, more = append(k.Items, kept{Reasoning: it.raw}), true
		case it.kind == kindMessage && it.said > 0:
			k.Items = append(k.Items, kept{Text: it.said, Phase: it.phase})
			more = more || it.phase != ""
		case it.kind == kindCall && r.finish == domain.FinishCalls:
			k.Items = append(k.Items, kept{Call: true})
		}
	}
	if !more {
		return nil
	}
	data, err := llm.Encode(k)
	if err != nil {
		return nil // raw values came out of a decoder, so they always encode
	}
	return &domain.Opaque{Provider: r.model.info.Ref.Provider, Data: data}
}

// kept returns what was kept with a reply of this very model. It is false when
// nothing was, or when it does not fit the reply.
func (m *Model) kept(r domain.ModelReply) ([]kept, bool) {
	var k keepsake
	if r.Opaque == nil || r.Opaque.Provider != m.info.Ref.Provider || json.Unmarshal(r.Opaque.Data, &k) != nil || k.Model != m.info.Ref.Model {
		return nil, false
	}
	length, texts, calls := 0, 0, 0
	for _, it := range k.Items {
		switch {
		case it.Text < 0:
			return nil, false
		case it.Text > 0:
			length += it.Text
			texts++
		case it.Call:
			calls++
		}
	}
	if texts > 1 {
		length += (texts - 1) * len(between)
	}
	return k.Items, length == len(r.Text) && calls == len(r.Calls)
}

// said renders a reply of before as items. Reasoning is left out where nothing
// follows it.
func (m *Model) said(r domain.ModelReply, names *llm.CallNames, dropped option) []any {
	items, ok := m.kept(r)
	if !ok {
		items = nil
		if r.Text != "" {
			items = append(items, kept{Text: len(r.Text)})
		}
		for range r.Calls {
			items = append(items, kept{Call: true})
		}
	}
	var out, thoughts []any
	text, calls := r.Text, r.Calls
	follow := func(item any) {
		out = append(append(out, thoughts...), item)
		thoughts = nil
	}
	for _, it := range items {
		switch {
		case it.Reasoning != nil:
			if dropped&dropKept == 0 {
				thoughts = append(thoughts, it.Reasoning)
			}
		case it.Call:
			follow(called(calls[0], names))
			calls = calls[1:]
		case it.Text > 0:
			follow(message{Type: "message", Role: "assistant", Content: text[:it.Text], Phase: it.Phase})
			text = text[min(len(text), it.Text+len(between)):]
		}
	}
	return out
}

func called(c domain.ModelCall, names *llm.CallNames) functionCall {
	return functionCall{Type: "function_call", ID: names.Add(c), Name: llm.ToolName(c.Name), Args: string(llm.Sent(c))}
}
