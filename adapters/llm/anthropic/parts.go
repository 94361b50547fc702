package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// kind is what a content block is.
type kind int

// The kinds. Blocks that nobody asked for, such as those of the provider's own
// tools, are foreign and passed over.
const (
	foreign kind = iota
	isText
	isThought
	isRedacted
	isCall
)

// part is a content block as far as it has come.
type part struct {
	kind  kind
	index int
	text  int // bytes of the reply's text that are its own

	thought   []byte
	signature string
	data      string

	id, name string
	input    json.RawMessage // as it stood in the beginning
	args     []byte          // as it was streamed
}

// parts are the content blocks of one reply, in order.
type parts struct {
	list  []*part
	bytes int
}

// noIndex is the index of events without one.
const noIndex = -1

func (ps *parts) add(k kind, index int) *part {
	p := &part{kind: k, index: index}
	ps.list = append(ps.list, p)
	return p
}

// at returns the newest block of an index, or the newest of all when there is
// no index; nil when there is none.
func (ps *parts) at(index int) *part {
	for _, p := range slices.Backward(ps.list) {
		if index == noIndex || p.index == index {
			return p
		}
	}
	return nil
}

// of returns the block that a piece of text or thought belongs to. Servers that
// do not announce a block begin it with its first piece. Text that follows on
// other text in another block is kept apart from it.
func (ps *parts) of(k kind, index int) *part {
	if n := len(ps.list); n > 0 {
		if last := ps.list[n-1]; last.kind == k && (index == noIndex || index == last.index) {
			return last
		}
	}
	if p := ps.at(index); p != nil && p.kind == foreign {
		return p
	}
	return ps.add(k, index)
}

// grow counts what is held; it reports false beyond what an event may hold.
func (ps *parts) grow(n int) bool {
	ps.bytes += n
	return ps.bytes <= llm.MaxEvent
}

// arguments returns what a call was called with: what was streamed, else what
// stood in the beginning.
func (p *part) arguments() ([]byte, bool) {
	if came := p.args; len(bytes.TrimSpace(came)) > 0 || !llm.Present(p.input) {
		return llm.Arguments(came)
	}
	return llm.Arguments(p.input)
}

// calls returns the calls of a complete reply. It reports false when one of
// them has no name or arguments that are no JSON object; nothing is mended.
func (ps *parts) calls() ([]domain.ModelCall, bool) {
	var out []domain.ModelCall
	for _, p := range ps.list {
		if p.kind != isCall {
			continue
		}
		args, ok := p.arguments()
		if p.name == "" || !ok {
			return nil, false
		}
		out = append(out, domain.ModelCall{ProviderID: p.id, Name: p.name, Args: args})
	}
	return out, true
}

// layout returns the order of the blocks, for a reply with so many calls. A
// thought that was cut before it was signed is worth nothing.
func (ps *parts) layout(calls int, cut bool) layout {
	var out layout
	call := 0
	for _, p := range ps.list {
		switch p.kind {
		case isText:
			if p.text > 0 {
				out = append(out, kept{Text: p.text})
			}
		case isThought:
			if p.signature != "" || len(p.thought) > 0 && !cut {
				out = append(out, kept{Thought: &thought{Text: string(p.thought), Signature: p.signature}})
			}
		case isRedacted:
			if p.data != "" {
				out = append(out, kept{Thought: &thought{Data: p.data}})
			}
		case isCall:
			if call++; call <= calls {
				out = append(out, kept{Call: call})
			}
		case foreign:
		}
	}
	return out
}
