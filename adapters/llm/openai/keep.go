package openai

import (
	"bytes"
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// keepsake is what a server wants back, unchanged, with a reply it gave:
// reasoning text (DeepSeek), reasoning details (OpenRouter), signatures of
// messages and calls (Gemini). It is the content of domain.Opaque, and goes
// back only to the provider and the model it came from: another model refuses
// what it does not know.
type keepsake struct {
	Model string `json:"model"`
	// Field is the name reasoning came under. The text itself is the reply's
	// Thought and is not stored twice.
	Field   string                     `json:"field,omitempty"`
	Details []json.RawMessage          `json:"details,omitempty"`
	Extra   json.RawMessage            `json:"extra,omitempty"`
	Calls   map[string]json.RawMessage `json:"calls,omitempty"` // by position in the reply

	grown *block // the newest of Details; nil when nothing can be added to it
}

// add notes what an event brought.
func (k *keepsake) add(m *message) {
	for _, d := range m.Details {
		k.detail(d)
	}
	if len(m.Extra) > 0 && string(m.Extra) != "null" {
		k.Extra = m.Extra
	}
}

// detail appends a reasoning detail. Details are streamed in pieces; a piece
// of text that follows a piece of the same block joins it.
func (k *keepsake) detail(raw json.RawMessage) {
	if k.grown != nil && k.grown.join(raw) {
		return
	}
	k.settle()
	k.Details, k.grown = append(k.Details, raw), newBlock(raw)
}

// settle writes down the block that has grown last.
func (k *keepsake) settle() {
	if k.grown != nil && k.grown.pieces > 1 {
		k.Details[len(k.Details)-1] = k.grown.whole()
	}
	k.grown = nil
}

// block is a reasoning detail as far as it has come. Its text is apart from the
// rest, because a long one comes in thousands of pieces.
type block struct {
	members map[string]json.RawMessage // without the text
	field   string                     // the name of the text
	text    []byte
	pieces  int
}

// newBlock begins a block, nil for one that comes whole.
func newBlock(raw json.RawMessage) *block {
	b := &block{pieces: 1}
	if json.Unmarshal(raw, &b.members) != nil {
		return nil
	}
	switch string(b.members["type"]) {
	case `"reasoning.text"`:
		b.field = "text"
	case `"reasoning.summary"`:
		b.field = "summary"
	default:
		return nil
	}
	var err error
	if b.text, err = llm.AppendText(nil, b.members[b.field]); err != nil {
		return nil
	}
	delete(b.members, b.field)
	return b
}

// join adds a piece of the same block: equal in all but the text, where either
// may lack what the other has, as a signature that comes last. It reports
// false for a piece of another.
func (b *block) join(raw json.RawMessage) bool {
	var piece map[string]json.RawMessage
	if json.Unmarshal(raw, &piece) != nil {
		return false
	}
	for name, v := range piece {
		if old := b.members[name]; name != b.field && llm.Present(old) && llm.Present(v) && !same(old, v) {
			return false
		}
	}
	text, err := llm.AppendText(b.text, piece[b.field])
	if err != nil {
		return false
	}
	b.text, b.pieces = text, b.pieces+1
	for name, v := range piece {
		if name != b.field && !llm.Present(b.members[name]) {
			b.members[name] = v
		}
	}
	return true
}

// whole returns the block.
func (b *block) whole() json.RawMessage {
	var j llm.Joiner
	text, err := json.Marshal(j.Add(b.text) + j.End())
	if err != nil {
		return nil // a text always encodes
	}
	b.members[b.field] = text
	out, err := json.Marshal(b.members)
	if err != nil {
		return nil // it came out of a decoder, so it always encodes
	}
	return out
}

// same compares plain values; objects and lists are never taken for the same.
func same(a, b json.RawMessage) bool {
	return a[0] != '{' && a[0] != '[' && bytes.Equal(a, b)
}

// opaque returns what is to be kept with a reply, nil when there is nothing.
func (k keepsake) opaque(provider string, list []*call, requested []domain.ModelCall) *domain.Opaque {
	k.settle()
	for i := range requested {
		if list[i].extra != nil {
			if k.Calls == nil {
				k.Calls = make(map[string]json.RawMessage)
			}
			k.Calls[position(i)] = list[i].extra
		}
	}
	if k.Field == "" && k.Details == nil && k.Extra == nil && k.Calls == nil {
		return nil
	}
	data, err := json.Marshal(k)
	if err != nil {
		return nil // raw values came out of a decoder, so they always encode
	}
	return &domain.Opaque{Provider: provider, Data: data}
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
