package domain

import "strings"

// Words are gathered in blocks, each twice as long as the one before up to a
// bound.
const (
	firstBlock = 64
	lastBlock  = 16 << 10
)

// Words is a text that grows by small pieces: what was gathered is never
// copied, and a piece costs its bytes and no more. The zero value is empty.
type Words struct {
	blocks [][]byte
	n      int // bytes of all
}

// Add adds a piece.
func (w *Words) Add(piece string) {
	w.n += len(piece)
	for piece != "" {
		last := len(w.blocks) - 1
		if last < 0 || len(w.blocks[last]) == cap(w.blocks[last]) {
			size := firstBlock
			if last >= 0 {
				size = min(2*cap(w.blocks[last]), lastBlock)
			}
			w.blocks = append(w.blocks, make([]byte, 0, size))
			last++
		}
		b := w.blocks[last]
		part := min(len(piece), cap(b)-len(b))
		w.blocks[last], piece = append(b, piece[:part]...), piece[part:]
	}
}

// Len is how long the text is, in bytes.
func (w *Words) Len() int { return w.n }

// After returns the text without its first bytes, in memory of its own.
func (w *Words) After(skip int) string {
	var text strings.Builder
	text.Grow(w.n - skip)
	for _, b := range w.blocks {
		left := b[min(skip, len(b)):]
		skip -= len(b) - len(left)
		text.Write(left)
	}
	return text.String()
}
