package tomltree

import "unicode/utf8"

// lines maps byte offsets to positions.
type lines struct {
	data   []byte
	starts []int
}

func newLines(data []byte) lines {
	l := lines{data: data, starts: make([]int, 1, 64)}
	for i, c := range data {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// start returns the offset of a line counted from 1, bounded by the document.
func (l lines) start(line int) int {
	if line < 1 {
		return 0
	}
	if line > len(l.starts) {
		return len(l.data)
	}
	return l.starts[line-1]
}

func (l lines) pos(off int) Pos {
	lo, hi := 0, len(l.starts)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; l.starts[mid] <= off {
			lo = mid
		} else {
			hi = mid
		}
	}
	return Pos{Line: lo + 1, Col: utf8.RuneCount(l.data[l.starts[lo]:off]) + 1}
}
