package fs

import (
	"bytes"
	"context"
	"io"
	"unicode/utf8"
)

// scan is the search of one goroutine: what it needs for one text at a time.
type scan struct {
	*query
	ctx    context.Context //nolint:containedctx // scan is a part of one running search
	auto   *automaton      // nil until it is needed
	found  finder
	tried  int // lines that held a needle
	passed int // bytes looked through for needles
	cost   int // of matching since the context was looked at
	over   bool
}

// span is a match, or the line it is in.
type span struct{ from, to int }

// lineAt is the line, without its end, that a place lies in, and where the
// next one begins.
func lineAt(text []byte, at int) (line span, next int) {
	line.from = bytes.LastIndexByte(text[:at], '\n') + 1
	line.to, next = len(text), len(text)
	if end := bytes.IndexByte(text[at:], '\n'); end >= 0 {
		line.to, next = at+end, at+end+1
		if line.to > line.from && text[line.to-1] == '\r' {
			line.to--
		}
	}
	return line, next
}

// each tells the lines of a text that match, or with multi the matches; match
// is empty when it is not known where in the line it is. It ends early when
// tell returns false or the context is over.
func (s *scan) each(text []byte, tell func(line, match span) bool) {
	s.over = false
	if s.multi {
		s.spans(text, tell)
		return
	}
	useNeedles := len(s.needle) > 0 && (!s.odd || !holdsOdd(text))
	if useNeedles {
		s.found.reset(s.needle, text)
	}
	for pos := 0; pos < len(text) && !s.over; {
		var line, match span
		var next int
		if useNeedles && !s.weak() {
			at, length := s.found.find(pos)
			if at < 0 {
				s.passed += len(text) - pos
				return
			}
			s.passed += at - pos
			s.tried++
			if line, next = lineAt(text, at); s.whole {
				match = span{at, at + length}
			} else if !s.matches(text, line) {
				pos = next
				continue
			}
		} else if at := s.line(text, pos); at >= 0 {
			line, next = lineAt(text, at)
		} else {
			return
		}
		if !tell(line, match) {
			return
		}
		pos = next
	}
}

// weak reports whether so many lines hold a needle that it saves nothing.
func (s *scan) weak() bool {
	return !s.whole && s.lines != nil && s.tried > 1000 && s.passed < 48*s.tried
}

// dfa is the automaton, when there is one that is of use.
func (s *scan) dfa() *automaton {
	if s.auto == nil && s.lines != nil {
		s.auto = newAutomaton(s.ctx, s.lines)
	}
	if s.auto == nil || s.auto.hopeless() {
		return nil
	}
	return s.auto
}

// matches reports whether one line matches.
func (s *scan) matches(text []byte, line span) bool {
	if a := s.dfa(); a != nil {
		return a.find(text, line.from, line.from+1) >= 0
	}
	return s.locate(text[line.from:line.to]) != nil
}

// line finds the next line that matches; -1 when there is none.
func (s *scan) line(text []byte, pos int) int {
	for pos < len(text) {
		if a := s.dfa(); a != nil {
			at := a.find(text, pos, len(text))
			if at >= 0 || !a.hopeless() {
				return at
			}
		}
		line, next := lineAt(text, pos)
		if s.locate(text[line.from:line.to]) != nil {
			return pos
		}
		if s.over {
			return -1
		}
		pos = next
	}
	return -1
}

// locate finds the first match in a text that is taken as a whole.
func (s *scan) locate(text []byte) []int {
	cost := s.insts * (len(text) + 1)
	if s.cost += cost; s.cost > maxDirect {
		s.cost = 0
		if s.over = s.over || s.ctx.Err() != nil; s.over {
			return nil
		}
	}
	if cost <= maxDirect {
		return s.re.FindIndex(text)
	}
	r := &watchedReader{ctx: s.ctx, text: text, every: max(maxDirect/s.insts, 1)}
	loc := s.re.FindReaderIndex(r)
	if s.over = r.over; s.over {
		return nil
	}
	return loc
}

// watchedReader hands a text to a matcher, and ends when the context does.
type watchedReader struct {
	ctx   context.Context //nolint:containedctx // it reads one text
	text  []byte
	at    int
	every int // characters between two looks
	left  int
	over  bool
}

// ReadRune returns the next character.
func (r *watchedReader) ReadRune() (rune, int, error) {
	if r.left--; r.left < 0 {
		r.left = r.every
		r.over = r.over || r.ctx.Err() != nil
	}
	if r.over || r.at >= len(r.text) {
		return 0, 0, io.EOF
	}
	c, n := rune(r.text[r.at]), 1
	if c >= utf8.RuneSelf {
		c, n = utf8.DecodeRune(r.text[r.at:])
	}
	r.at += n
	return c, n, nil
}

// spans tells the matches in a text, of which no two begin in one line.
func (s *scan) spans(text []byte, tell func(line, match span) bool) {
	if s.once {
		s.fromBegin(text, tell)
		return
	}
	useNeedles := len(s.needle) > 0 && (!s.odd || !holdsOdd(text))
	if useNeedles {
		s.found.reset(s.needle, text)
	}
	for pos := 0; pos < len(text) && !s.over; {
		if useNeedles && !s.has(pos) {
			return
		}
		// pos is the beginning of a line, and the pattern does not ask for that
		// of the text: what is left may stand for the whole of it.
		if a := s.dfa(); a != nil {
			if ok, _ := a.line(text[pos:], 0); !ok && !a.hopeless() {
				return
			}
		}
		loc := s.locate(text[pos:])
		if loc == nil {
			return
		}
		lines, next := spanLines(text, span{pos + loc[0], pos + loc[1]})
		if lines.from == len(text) || !tell(lines, span{pos + loc[0], pos + loc[1]}) {
			return
		}
		pos = next
	}
}

// fromBegin is spans for a pattern that asks for the beginning of the text,
// which no part of it can stand for.
func (s *scan) fromBegin(text []byte, tell func(line, match span) bool) {
	if s.insts*(len(text)+1) > 16*maxDirect {
		if loc := s.locate(text); loc != nil {
			lines, _ := spanLines(text, span{loc[0], loc[1]})
			tell(lines, span{loc[0], loc[1]})
		}
		return
	}
	pos := 0
	for _, loc := range s.re.FindAllIndex(text, maxCounted) {
		if loc[0] < pos {
			continue
		}
		lines, next := spanLines(text, span{loc[0], loc[1]})
		if lines.from == len(text) || !tell(lines, span{loc[0], loc[1]}) {
			return
		}
		pos = next
	}
}

// spanLines are the lines that a match touches, and where the next begins.
func spanLines(text []byte, match span) (lines span, next int) {
	first, _ := lineAt(text, match.from)
	last, next := lineAt(text, max(match.from, match.to-1))
	return span{first.from, last.to}, next
}

// has reports whether a needle is found at or after pos.
func (s *scan) has(pos int) bool {
	at, _ := s.found.find(pos)
	return at >= 0
}
