package fs

import (
	"fmt"
	"strconv"
	"strings"
)

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
