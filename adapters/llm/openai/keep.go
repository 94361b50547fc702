package openai

import (
	"encoding/json"

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
	if n := len(k.Details); n > 0 {
		if joined, ok := join(k.Details[n-1], raw); ok {
			k.Details[n-1] = joined
			return
		}
	}
	k.Details = append(k.Details, raw)
}

// join puts two pieces of one block together: equal in all but the text, where
// either may lack what the other has, as a signature that comes last.
func join(a, b json.RawMessage) (json.RawMessage, bool) {
	var x, y map[string]any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return nil, false
	}
	field := ""
	switch x["type"] {
	case "reasoning.text":
		field = "text"
	case "reasoning.summary":
		field = "summary"
	default:
		return nil, false
	}
	for name, v := range y {
		old, had := x[name]
		text, isText := v.(string)
		prior, wasText := old.(string)
		switch {
		case name == field && isText && (wasText || old == nil):
			x[name] = prior + text
		case !had || old == nil:
			x[name] = v
		case v != nil && !same(old, v):
			return nil, false
		}
	}
	out, err := json.Marshal(x)
	return out, err == nil
}

// same compares plain values; objects and lists are never taken for the same.
func same(a, b any) bool {
	switch a := a.(type) {
	case string:
		return a == b
	case float64:
		return a == b
	case bool:
		return a == b
	}
	return false
}

// opaque returns what is to be kept with a reply, nil when there is nothing.
func (k keepsake) opaque(provider string, list []*call, requested []domain.ModelCall) *domain.Opaque {
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
