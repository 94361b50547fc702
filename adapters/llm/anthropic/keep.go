package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/core/domain"
)

// keepsake is what a reply was made of, in order, when it holds thoughts. It is
// the content of domain.Opaque, and goes back only to the provider and the
// model it came from. Texts and calls are those of the reply and not stored
// twice.
type keepsake struct {
	Model string `json:"model"`
	// Prefix tells what the reply was said to, for models that bind their
	// thoughts to it.
	Prefix string `json:"prefix,omitempty"`
	Blocks layout `json:"blocks"`
}

// layout is the order of the blocks of a reply.
type layout []kept

// kept is one block: a thought, the next Text bytes of the reply's text, or
// the Call-th of its calls, counted from 1.
type kept struct {
	Thought *thought `json:"thought,omitempty"`
	Text    int      `json:"text,omitempty"`
	Call    int      `json:"call,omitempty"`
}

// thought is a thinking block, or a redacted one when it has Data.
type thought struct {
	Text      string `json:"text,omitempty"`
	Signature string `json:"signature,omitempty"`
	Data      string `json:"data,omitempty"`
}

func (t thought) block() *block {
	if t.Data != "" {
		return &block{Type: "redacted_thinking", Data: t.Data}
	}
	return &block{Type: "thinking", Thinking: &t.Text, Signature: &t.Signature}
}

// opaque returns what is to be kept with a reply, nil when it had no thoughts.
func (l layout) opaque(ref domain.ModelRef, prefix string) *domain.Opaque {
	if !slices.ContainsFunc(l, func(k kept) bool { return k.Thought != nil }) {
		return nil
	}
	data, err := json.Marshal(keepsake{Model: ref.Model, Prefix: prefix, Blocks: l})
	if err != nil {
		return nil // strings and numbers always encode
	}
	return &domain.Opaque{Provider: ref.Provider, Data: data}
}

// kept returns what was kept with a reply of this very model, the zero value
// when nothing was.
func (m *Model) kept(o *domain.Opaque) keepsake {
	var k keepsake
	if o == nil || o.Provider != m.info.Ref.Provider || json.Unmarshal(o.Data, &k) != nil || k.Model != m.info.Ref.Model {
		return keepsake{}
	}
	return k
}

// layoutOf returns a layout that holds all of a reply, text and calls, each
// once: the kept one if it does, else thoughts, text and calls in this order.
func layoutOf(r domain.ModelReply, l layout) layout {
	text, calls := 0, make(map[int]bool)
	for _, k := range l {
		if k.Text < 0 || k.Call < 0 || k.Call > len(r.Calls) || calls[k.Call] {
			text = -1
			break
		}
		text += k.Text
		if k.Call > 0 {
			calls[k.Call] = true
		}
	}
	if len(l) > 0 && text == len(r.Text) && len(calls) == len(r.Calls) {
		return l
	}
	out := slices.DeleteFunc(slices.Clone(l), func(k kept) bool { return k.Thought == nil })
	if r.Text != "" {
		out = append(out, kept{Text: len(r.Text)})
	}
	for i := range r.Calls {
		out = append(out, kept{Call: i + 1})
	}
	return out
}

// without returns the layout without thoughts.
func (l layout) without() layout {
	return slices.DeleteFunc(slices.Clone(l), func(k kept) bool { return k.Thought != nil })
}
