package fs

import (
	"bytes"
	"unicode/utf8"
)

const (
	maxHitLine = 500 // bytes of a line that are shown
	maxHitSpan = 50  // lines of one match
)

// hitLine is one line of the answer.
type hitLine struct {
	number int
	text   string
	kind   hitKind
}

type hitKind byte

const (
	hitContext hitKind = iota
	hitFirst           // the first line of a match
	hitMore            // a further line of it
	hitLeft            // number lines of it are left out
)

// fileHits are the matches in one file.
type fileHits struct {
	path  string
	count int
	first int // line of the first match
	lines []hitLine
}

// collector makes fileHits of one text.
type collector struct {
	fileHits
	p    *searching
	text []byte
	show bool

	counted int // bytes of text whose line ends are counted
	number  int // line ends in them
	after   int // where the line after the last one shown begins
	bytes   int
}

// tell takes a match in.
func (c *collector) tell(line, match span) bool {
	if c.count++; c.count == 1 {
		c.first = c.lineNumber(line.from)
		if !c.show {
			return c.p.output != outputFiles
		}
	}
	switch {
	case !c.show:
		return c.p.output == outputCount || c.count <= maxCounted
	case c.count > c.p.limit || c.bytes > maxSearchText:
		c.finish()
		c.show = false
		return true
	}
	c.contextBefore(line.from)
	kind := hitFirst
	for shown := 0; ; shown++ {
		end := len(c.text)
		if i := bytes.IndexByte(c.text[line.from:], '\n'); i >= 0 {
			end = line.from + i
		}
		if shown == maxHitSpan {
			left := bytes.Count(c.text[line.from:line.to], []byte{'\n'}) + 1
			c.lines = append(c.lines, hitLine{number: left, kind: hitLeft})
			c.after = min(line.to+1, len(c.text))
			break
		}
		c.put(line.from, end, match, kind)
		kind = hitMore
		if end >= line.to {
			break
		}
		line.from = end + 1
	}
	return true
}

// lineNumber is the number of the line that begins at a place, which is not
// before the one asked for last.
func (c *collector) lineNumber(at int) int {
	if at < c.counted {
		c.counted, c.number = 0, 0
	}
	c.number += bytes.Count(c.text[c.counted:at], []byte{'\n'})
	c.counted = at
	return c.number + 1
}

// put adds the line from a place to its end.
func (c *collector) put(from, end int, match span, kind hitKind) {
	next := min(end+1, len(c.text))
	if end > from && end < len(c.text) && c.text[end-1] == '\r' {
		end--
	}
	h := hitLine{number: c.lineNumber(from), kind: kind}
	if end-from > maxHitLine && kind == hitFirst && match.to == 0 {
		if loc := c.p.query.re.FindIndex(c.text[from:min(end, from+maxDirect/c.p.query.insts)]); loc != nil {
			match = span{from + loc[0], from + loc[1]}
		}
	}
	h.text = cutLine(c.text[from:end], match.from-from)
	c.bytes += len(h.text)
	c.lines = append(c.lines, h)
	c.after = next
}

// contextBefore adds the lines before a match, and those after the one before
// it.
func (c *collector) contextBefore(at int) {
	from := at
	for n := 0; n < c.p.around && from > c.after; n++ {
		from = bytes.LastIndexByte(c.text[:from-1], '\n') + 1
	}
	from = max(from, c.after)
	if c.count > 1 {
		c.contextAfter(from)
	}
	for from = max(from, c.after); from < at; from = c.after {
		c.put(from, c.lineEnd(from), span{}, hitContext)
	}
}

// contextAfter adds the lines after the last match, up to limit.
func (c *collector) contextAfter(limit int) {
	for n := 0; n < c.p.around && c.after < limit; n++ {
		c.put(c.after, c.lineEnd(c.after), span{}, hitContext)
	}
}

func (c *collector) lineEnd(from int) int {
	if i := bytes.IndexByte(c.text[from:], '\n'); i >= 0 {
		return from + i
	}
	return len(c.text)
}

// finish adds what follows the last match.
func (c *collector) finish() {
	if c.show && c.count > 0 {
		c.contextAfter(len(c.text))
		c.show = false
	}
}

// cutLine is a line as it is shown: a long one only around a place in it.
func cutLine(line []byte, around int) string {
	if len(line) <= maxHitLine {
		return shown(line)
	}
	from := min(max(around-maxHitLine/4, 0), len(line)-maxHitLine)
	to := from + maxHitLine
	for from > 0 && !utf8.RuneStart(line[from]) && to-from < maxHitLine+utf8.UTFMax {
		from--
	}
	for to > from && to < len(line) && !utf8.RuneStart(line[to]) {
		to--
	}
	text := shown(line[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text
}
