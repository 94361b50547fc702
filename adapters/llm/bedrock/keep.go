package bedrock

import (
	"encoding/json"

	"github.com/berth-dev/berth/core/domain"
)

// keepsake is what a model wants back, unchanged and in its order, with a
// reply it gave: the signatures of its thoughts, and thoughts that only it can
// read. It is the content of domain.Opaque, and goes back only to the provider
// and the model it came from. Texts are not stored twice: a part tells how
// many bytes of the reply's own text or thought are its.
type keepsake struct {
	Model string `json:"model"`
	Parts []part `json:"parts"`
}

// part is one block of a reply; one of its members is there.
type part struct {
	Text    *int    `json:"text,omitempty"` // bytes of the reply's text
	Thought *signed `json:"thought,omitempty"`
	Secret  []byte  `json:"secret,omitempty"` // redacted
	Call    bool    `json:"call,omitempty"`   // the next of the reply's calls
}

// signed is a thought with its signature.
type signed struct {
	Size      int    `json:"size"` // bytes of the reply's thought
	Signature string `json:"signature,omitempty"`
}

// keep returns what is to be kept with a reply, nil when there is nothing:
// only thoughts that are signed or secret are wanted back.
func (m *Model) keep(b *blocks, calls int) *domain.Opaque {
	k := keepsake{Model: m.info.Ref.Model}
	wanted := false
	for _, at := range b.list {
		switch at.kind {
		case textBlock:
			k.Parts = append(k.Parts, part{Text: &at.size})
		case thoughtBlock:
			wanted = wanted || len(at.signature) > 0
			k.Parts = append(k.Parts, part{Thought: &signed{Size: at.size, Signature: string(at.signature)}})
		case redactedBlock:
			wanted = true
			k.Parts = append(k.Parts, part{Secret: at.redacted})
		case callBlock:
			if calls > 0 {
				k.Parts = append(k.Parts, part{Call: true})
			}
		}
	}
	if !wanted || b.tangled {
		return nil
	}
	data, err := json.Marshal(k)
	if err != nil {
		return nil // plain values, which always encode
	}
	return &domain.Opaque{Provider: m.info.Ref.Provider, Data: data}
}

// kept returns the parts of a reply of this very model, nil when nothing was
// kept or when the reply is not the one that was kept: a signature holds for
// the thought as it was.
func (m *Model) kept(r domain.ModelReply) []part {
	var k keepsake
	if r.Opaque == nil || r.Opaque.Provider != m.info.Ref.Provider || json.Unmarshal(r.Opaque.Data, &k) != nil || k.Model != m.info.Ref.Model {
		return nil
	}
	text, thought, calls := 0, 0, 0
	for _, p := range k.Parts {
		switch {
		case p.Text != nil && *p.Text >= 0:
			text += *p.Text
		case p.Thought != nil && p.Thought.Size >= 0:
			thought += p.Thought.Size
		case p.Call:
			calls++
		case p.Secret == nil:
			return nil
		}
	}
	if text != len(r.Text) || thought != len(r.Thought) || calls != len(r.Calls) {
		return nil
	}
	return k.Parts
}
