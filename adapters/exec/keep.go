package exec

import (
	"bytes"
	"unicode/utf8"
)

// keep holds the beginning and the end of a text of any length. Memory grows
// with the text up to headMax + 2*tailMax bytes.
type keep struct {
	headMax, tailMax int

	head  []byte
	tail  []byte // the end of what does not fit in head; up to 2*tailMax
	total int64  // bytes of the text
	lines int64  // line ends of the text
}

// add takes the next piece.
func (k *keep) add(p []byte) {
	k.total += int64(len(p))
	k.lines += int64(bytes.Count(p, []byte{'\n'}))
	if room := k.headMax - len(k.head); room > 0 {
		n := min(room, len(p))
		k.head = append(k.head, p[:n]...)
		p = p[n:]
	}
	if len(p) >= k.tailMax {
		k.tail = append(k.tail[:0], p[len(p)-k.tailMax:]...)
		return
	}
	if len(k.tail)+len(p) > 2*k.tailMax {
		n := copy(k.tail, k.tail[len(k.tail)-k.tailMax+len(p):])
		k.tail = k.tail[:n]
	}
	k.tail = append(k.tail, p...)
}

// whole reports whether nothing was lost yet.
func (k *keep) whole() bool { return k.total == int64(len(k.head)+len(k.tail)) }

// kept is what is shown of a text: all of it in head, or its two ends.
type kept struct {
	head, tail []byte
	omitted    int64 // bytes between them
	lines      int64 // line ends between them
}

// ends returns what at most n bytes can show: a third of it from the
// beginning, the rest from the end, cut at lines where one is near and at
// characters otherwise.
func (k *keep) ends(n int) kept {
	if k.whole() && k.total <= int64(n) {
		return kept{head: append(bytes.Clone(k.head), k.tail...)}
	}
	head, tail := k.head, k.tail
	if k.whole() {
		all := append(bytes.Clone(k.head), k.tail...)
		head, tail = all, all
	} else {
		tail = fromLine(tail)
	}
	head = headOf(head, n/3)
	tail = tailOf(tail, n-n/3)
	out := kept{head: bytes.Clone(head), tail: bytes.Clone(tail)}
	out.omitted = k.total - int64(len(head)+len(tail))
	out.lines = k.lines - int64(bytes.Count(head, []byte{'\n'})+bytes.Count(tail, []byte{'\n'}))
	return out
}

// headOf returns at most n bytes from the start.
func headOf(p []byte, n int) []byte {
	if len(p) <= n {
		n = len(p)
	} else {
		for n > 0 && !utf8.RuneStart(p[n]) {
			n--
		}
	}
	if i := bytes.LastIndexByte(p[:n], '\n'); i >= n-n/4 {
		return p[:i+1]
	}
	return wholeRunes(p[:n])
}

// wholeRunes leaves a character out that is cut off at the end.
func wholeRunes(p []byte) []byte {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if !utf8.FullRune(p[i:]) {
				return p[:i]
			}
			break
		}
	}
	return p
}

// tailOf returns at most n bytes from the end, cut at a line where one is near.
func tailOf(p []byte, n int) []byte {
	if len(p) <= n {
		return p
	}
	return fromLine(p[len(p)-n:])
}

// fromLine leaves out the rest of a line that p begins with, when it is short,
// or else of a character.
func fromLine(p []byte) []byte {
	if i := bytes.IndexByte(p, '\n'); i >= 0 && i < len(p)/4 {
		return p[i+1:]
	}
	for len(p) > 0 && !utf8.RuneStart(p[0]) {
		p = p[1:]
	}
	return p
}

// from returns the text from an offset on, as far as it is still there, and
// the offset it really begins at; past what is lost it begins at a line or a
// character.
func (k *keep) from(at int64) ([]byte, int64) {
	at = max(0, min(at, k.total))
	if k.whole() {
		all := append(bytes.Clone(k.head), k.tail...)
		return all[at:], at
	}
	start := k.total - int64(len(k.tail))
	if at >= start {
		return bytes.Clone(k.tail[at-start:]), at
	}
	tail := fromLine(k.tail)
	return bytes.Clone(tail), k.total - int64(len(tail))
}
