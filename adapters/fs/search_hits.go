package fs

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
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

// searchResult is what was found, taken in order.
type searchResult struct {
	limit, around int
	output        output
	multi         bool

	list  []fileHits // those with something to show
	total int        // matches
	files int        // with a match
	shown int        // matches, or files
	bytes int
}

// counted reports whether there is so much that it is not counted further.
func (m *searchResult) counted() bool {
	if m.output == outputContent {
		return m.total > maxCounted
	}
	return m.files > maxCounted
}

// enough reports whether nothing more is shown.
func (m *searchResult) enough() bool { return m.shown >= m.limit || m.bytes > maxSearchText }

// more reports whether there is more than what is shown.
func (m *searchResult) more() bool {
	if m.output == outputContent {
		return m.total > m.shown
	}
	return m.files > m.shown
}

// add takes the matches of the next file in; true when that is all there is
// to be known.
func (m *searchResult) add(f *fileHits) (enough bool) {
	m.total += f.count
	m.files++
	switch {
	case m.enough():
	case m.output != outputContent:
		m.list = append(m.list, *f)
		m.shown++
	default:
		n := m.cut(f)
		m.shown += n
		m.list = append(m.list, *f)
	}
	return m.counted()
}

// cut leaves as many matches of a file as may still be shown, and returns how
// many.
func (m *searchResult) cut(f *fileHits) (matches int) {
	left, last := m.limit-m.shown, 0
	for i, l := range f.lines {
		if l.kind == hitFirst {
			if matches == left || m.bytes > maxSearchText {
				// The lines since are the context of both.
				end := last + 1
				for end < i && end <= last+m.around && f.lines[end].number == f.lines[last].number+end-last {
					end++
				}
				f.lines = f.lines[:end]
				return matches
			}
			matches++
		}
		if l.kind != hitContext {
			last = i
		}
		m.bytes += len(l.text)
	}
	return matches
}

// words are the result as text: what was found in a few words, and the lines.
func (p *searching) words(s *sweep) (head, body string) {
	m := &p.matches
	var h strings.Builder
	searched := plural(s.tally.files, "file")
	switch {
	case m.total == 0 && p.dir == nil:
		fmt.Fprintf(&h, "[no match in %s", p.where())
	case m.total == 0:
		fmt.Fprintf(&h, "[no match in %s searched in %s", searched, p.where())
	case m.counted() && p.output == outputContent:
		fmt.Fprintf(&h, "[more than %d matches in %s", maxCounted, p.where())
	case m.counted():
		fmt.Fprintf(&h, "[more than %d files match in %s", maxCounted, p.where())
	case p.output == outputFiles:
		verb := "match"
		if m.files == 1 {
			verb = "matches"
		}
		fmt.Fprintf(&h, "[%s %s of %d in %s", plural(m.files, "file"), verb, s.tally.files, p.where())
	case p.dir == nil:
		fmt.Fprintf(&h, "[%s in %s", matchWords(m.total), p.where())
	default:
		fmt.Fprintf(&h, "[%s in %d of %s in %s", matchWords(m.total), m.files, searched, p.where())
	}
	if m.more() {
		what := ""
		if m.output != outputContent {
			what = " files"
		}
		h.WriteString("; " + firstShown(m.shown, what))
	}
	if why := s.unfinished(); why != "" {
		h.WriteString("; " + why + ", so there may be more: name a directory further down, or a glob")
	}
	if hint := s.tally.hint(); hint != "" && m.total == 0 {
		h.WriteString("; " + hint)
	}
	h.WriteByte(']')
	var b strings.Builder
	for i := range m.list {
		p.write(&b, &m.list[i])
	}
	if passed := s.tally.words(p.prefix()); passed != "" {
		b.WriteString("[not searched: " + passed + "]\n")
	}
	return h.String(), b.String()
}

// write writes what is shown of one file.
func (p *searching) write(b *strings.Builder, f *fileHits) {
	path := printable(p.shown(f.path))
	switch p.output {
	case outputFiles:
		b.WriteString(path + "\n")
		return
	case outputCount:
		b.WriteString(path + ": " + strconv.Itoa(f.count) + "\n")
		return
	case outputContent:
	}
	next := 0
	for i, l := range f.lines {
		if l.kind == hitLeft {
			fmt.Fprintf(b, "%s: … [%s of this match]\n", path, plural(l.number, "more line"))
			next = 0
			continue
		}
		if p.around > 0 && l.number != next && (i > 0 || b.Len() > 0) {
			b.WriteString("--\n")
		}
		next = l.number + 1
		sep := ":"
		if l.kind == hitContext {
			sep = "-"
		}
		b.WriteString(path + sep + strconv.Itoa(l.number) + sep + " " + l.text + "\n")
	}
}

func matchWords(n int) string {
	if n == 1 {
		return "1 match"
	}
	return strconv.Itoa(n) + " matches"
}

// firstShown says how much of what was found is shown.
func firstShown(n int, what string) string {
	if n == 1 {
		return "the first is shown"
	}
	return fmt.Sprintf("the first %d%s are shown", n, what)
}
