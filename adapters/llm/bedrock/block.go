package bedrock

import (
	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// kind is what a block of a reply holds.
type kind int

// The kinds of blocks that mean something here.
const (
	textBlock kind = iota
	thoughtBlock
	redactedBlock // a thought that only the provider can read
	callBlock
)

// block is one part of a reply as far as it has come.
type block struct {
	index  int
	kind   kind
	closed bool

	join      llm.Joiner // of texts and thoughts
	size      int        // bytes of text or thought that were passed on
	signature []byte
	redacted  []byte

	id, name string // of a call
	args     []byte
}

// blocks are the parts of a reply in the order they began.
type blocks struct {
	list  []*block
	bytes int // of arguments and of what is kept
	// tangled tells that a block went on after another one had begun, so that
	// the order of the texts is not that of the blocks.
	tangled bool
}

// maxBlocks is the most parts of one reply. Real ones have a few dozen.
const maxBlocks = 4096

// begin adds a block.
func (b *blocks) begin(index int, k kind) *block {
	if len(b.list) >= maxBlocks {
		b.bytes = llm.MaxEvent // the next growth is one too many
	}
	next := &block{index: index, kind: k}
	b.list = append(b.list, next)
	return next
}

// open returns the block of that index and kind that is not closed, and
// begins one where there is none: only calls are announced.
func (b *blocks) open(index int, k kind) *block {
	if found := b.find(index, k); found != nil {
		b.tangled = b.tangled || found != b.list[len(b.list)-1]
		return found
	}
	return b.begin(index, k)
}

// find returns the open block of that index and kind, nil when there is none.
func (b *blocks) find(index int, k kind) *block {
	for i := len(b.list) - 1; i >= 0; i-- {
		if at := b.list[i]; at.index == index && at.kind == k && !at.closed {
			return at
		}
	}
	return nil
}

// grow counts what a reply holds in memory. It reports false when that
// exceeds what an event may hold.
func (b *blocks) grow(n int) bool {
	b.bytes += n
	return b.bytes <= llm.MaxEvent
}

// calls returns the calls of a complete reply. It reports false when one of them was not closed, has no name, or arguments
// that are no JSON object; nothing is mended.
func (b *blocks) calls() ([]domain.ModelCall, bool) {
	var out []domain.ModelCall
	for _, k := range b.list {
		if k.kind != callBlock {
			continue
		}
		args, ok := llm.Arguments(k.args)
		if !k.closed || k.name == "" || !ok {
			return nil, false
		}
		out = append(out, domain.ModelCall{ProviderID: k.id, Name: k.name, Args: args})
	}
	return out, true
}
