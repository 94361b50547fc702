package web

import (
	"cmp"
	"strings"
)

// writer puts text together: white space is one space, line ends come only
// between texts, and marks only around one.
type writer struct {
	markdown bool
	buf      []byte
	breaks   int    // line ends to come before the next text
	space    bool   // a space is to come before the next text
	marks    string // openings to come before the next text
	opened   map[string]int
	indent   string // what begins each line
	first    string // what begins the next one in its place
	cell     bool   // in a cell of a table, which has no lines
	pre      bool   // white space counts, and text goes to block
	block    []byte
	cut      bool // there was more than we take
}

const (
	maxMarks = 64 // bytes of openings that wait for a text
	maxFence = 64 // backquotes in a row that a fence can still be longer than
)

// text adds a run of text.
func (w *writer) text(s string) {
	if w.pre {
		w.block = append(w.block, w.fit(s, len(w.block))...)
		return
	}
	s = w.fit(s, len(w.buf))
	for s != "" {
		n := strings.IndexAny(s, " \t\n\r\f\u00A0")
		if n == 0 {
			w.space = true
			s = strings.TrimLeft(s, " \t\n\r\f\u00A0")
			continue
		}
		if n < 0 {
			n = len(s)
		}
		w.word(s[:n])
		s = s[n:]
	}
}

// word adds text without white space.
func (w *writer) word(s string) {
	w.flush()
	w.buf = append(w.buf, s...)
}

// flush writes the line ends, the space and the openings that are due.
func (w *writer) flush() {
	switch {
	case len(w.buf) == 0:
		w.buf = append(w.buf, cmp.Or(w.first, w.indent)...)
	case w.breaks > 0:
		for range w.breaks - 1 {
			w.buf = append(w.buf, '\n')
			w.buf = append(w.buf, strings.TrimRight(w.indent, " ")...)
		}
		w.buf = append(w.buf, '\n')
		w.buf = append(w.buf, cmp.Or(w.first, w.indent)...)
	case w.space:
		if last := w.buf[len(w.buf)-1]; last != ' ' && last != '\n' {
			w.buf = append(w.buf, ' ')
		}
	}
	w.breaks, w.space, w.first = 0, false, ""
	w.buf = append(w.buf, w.marks...)
	w.marks = ""
}

// lines asks for line ends before the next text.
func (w *writer) lines(n int) {
	switch {
	case n == 0, w.first != "": // a bullet waits for its text
	case w.pre:
		w.text("\n")
	case w.cell:
		w.space = true
	case len(w.buf) > 0:
		w.breaks = max(w.breaks, n)
	}
}

// mark adds text that is not of the page.
func (w *writer) mark(s string) {
	if w.markdown || s == " " || s == "|" || s == " |" {
		w.flush()
		w.buf = append(w.buf, s...)
	}
}

// open puts a mark before the next text, if there is any.
func (w *writer) open(mark string) {
	if !w.markdown || w.pre || len(w.marks) > maxMarks {
		return
	}
	if w.opened == nil {
		w.opened = map[string]int{}
	}
	w.opened[mark]++
	w.marks += mark
}

// shut ends what open began, with another mark or the same. An opening that no
// text followed is taken back.
func (w *writer) shut(opened, closed string) {
	if w.opened[opened] == 0 || w.pre {
		return
	}
	w.opened[opened]--
	if n := strings.LastIndex(w.marks, opened); n >= 0 {
		w.marks = w.marks[:n] + w.marks[n+len(opened):]
		return
	}
	w.buf = append(w.buf, closed...)
}

// bullet begins an item of a list.
func (w *writer) bullet(s string) {
	if w.pre || s == "" {
		return
	}
	w.first, w.marks, w.space = w.indent+s, "", false
}

// deeper adds to what begins each line, up to a limit.
func (w *writer) deeper(s string) {
	if len(w.indent) < maxIndent*2 && !w.cell {
		w.indent += s
	}
}

// verbatim begins and ends text whose white space counts.
func (w *writer) verbatim(on bool) {
	if on || !w.pre {
		w.pre = on
		return
	}
	w.pre = false
	block := strings.Trim(string(w.block), "\r\n")
	w.block = nil
	if strings.TrimSpace(block) == "" {
		return
	}
	if w.cell {
		w.text(block)
		return
	}
	if run := longestRun(block, '`'); w.markdown && run < maxFence {
		fence := strings.Repeat("`", max(3, run+1))
		block = fence + "\n" + block + "\n" + fence
	}
	w.flush()
	for n, line := range strings.Split(block, "\n") {
		if len(w.buf) > maxRendered {
			w.cut = true
			return
		}
		if n > 0 {
			w.buf = append(append(w.buf, '\n'), w.indent...)
		}
		w.buf = append(w.buf, line...)
	}
}

// fit cuts a text to what there is room for when so many bytes are taken.
func (w *writer) fit(s string, taken int) string {
	room := max(0, maxRendered+1-taken)
	w.cut = w.cut || len(s) > room
	return clip(s, room)
}

// longestRun is how often a character stands in a row at most.
func longestRun(s string, c byte) int {
	run, most := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}
