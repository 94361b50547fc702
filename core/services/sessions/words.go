package sessions

// Texts are gathered in blocks, each twice as long as the one before up to a
// bound: what was gathered is never copied, and a piece costs its bytes and no
// more.
const (
	firstBlock = 64
	lastBlock  = 16 << 10
)

// words is a text that grows by small pieces. The zero value is empty.
type words struct {
	blocks [][]byte
	n      int // bytes of all
}

// add adds a piece.
func (w *words) add(piece string) {
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

// after returns the text without its first bytes.
func (w *words) after(skip int) string {
	text := make([]byte, 0, w.n)
	for _, b := range w.blocks {
		text = append(text, b...)
	}
	return string(text[skip:])
}
