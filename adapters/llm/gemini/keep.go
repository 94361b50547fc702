package gemini

import (
	"encoding/json"

	"github.com/berth-dev/berth/core/domain"
)

// keepsake is what the model wants back, unchanged, with a reply it gave: the
// signatures of its parts, and which parts those were. It is the content of
// domain.Opaque, and goes back only to the provider and the model it came
// from. Texts and calls themselves are the reply's own and not stored twice.
type keepsake struct {
	Model string `json:"model"`
	Parts []kept `json:"parts"`
}

// kept is one part of a reply. Pieces of one kind that follow each other and
// have no signature are one.
type kept struct {
	Kind kind   `json:"kind"`
	Len  int    `json:"len,omitempty"`  // bytes of the reply's text or thought
	Sign string `json:"sign,omitempty"` // as it came
}

type kind string

// The kinds of parts.
const (
	textPart    kind = "text"
	thoughtPart kind = "thought"
	callPart    kind = "call"
)

// add notes a part.
func (k *keepsake) add(part kind, n int, sign string) {
	if last := len(k.Parts) - 1; part != callPart && sign == "" && last >= 0 && k.Parts[last].Kind == part && k.Parts[last].Sign == "" {
		k.Parts[last].Len += n
		return
	}
	if part != callPart && sign == "" && n == 0 {
		return
	}
	k.Parts = append(k.Parts, kept{Kind: part, Len: n, Sign: sign})
}

// grow adds what was left of a cut character to the last part of its kind.
func (k *keepsake) grow(part kind, n int) {
	for i := len(k.Parts) - 1; i >= 0; i-- {
		if k.Parts[i].Kind == part {
			k.Parts[i].Len += n
			return
		}
	}
	k.add(part, n, "")
}

// opaque returns what is to be kept with a reply of those calls; nil when
// there is nothing that the calls themselves do not tell.
func (k keepsake) opaque(provider string, calls []domain.ModelCall) *domain.Opaque {
	worth := false
	for _, p := range k.Parts {
		worth = worth || p.Sign != ""
	}
	for _, c := range calls {
		worth = worth || c.ProviderID != ""
	}
	if !worth {
		return nil
	}
	data, err := json.Marshal(k)
	if err != nil {
		return nil // strings and numbers always encode
	}
	return &domain.Opaque{Provider: provider, Data: data}
}

// kept returns what was kept with a reply of this very model; false when the
// reply is another's, or nothing was kept.
func (m *Model) kept(o *domain.Opaque) (keepsake, bool) {
	var k keepsake
	if o == nil || o.Provider != m.info.Ref.Provider || json.Unmarshal(o.Data, &k) != nil || k.Model != m.info.Ref.Model {
		return keepsake{}, false
	}
	return k, true
}
