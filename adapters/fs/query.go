package fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

const (
	maxProgram = 10_000  // instructions of a compiled pattern
	maxDirect  = 4 << 20 // instructions times bytes that are matched without looking at the context
)

// query is a compiled pattern.
type query struct {
	re     *regexp.Regexp
	insts  int
	multi  bool     // matches may span lines
	once   bool     // the pattern asks for the beginning of the text
	lines  *program // nil when package regexp has to do alone
	needle []needle
	whole  bool // a line that holds the needle is a match
	odd    bool // some letters have forms that the needles do not know
}

// asked is a pattern as it was asked for.
type asked struct {
	pattern              string
	literal, fold, multi bool
}

// compile reads a pattern. A line break in it makes it match across lines.
func compile(a asked) (*query, error) {
	pattern := strings.ReplaceAll(a.pattern, "\r\n", "\n")
	switch {
	case pattern == "":
		return nil, domain.Errorf(domain.InvalidArgument, "the pattern is empty")
	case len(pattern) > maxPatternBytes:
		return nil, domain.Errorf(domain.InvalidArgument, "the pattern is %d bytes long; at most %d are allowed", len(pattern), maxPatternBytes)
	case a.literal:
		pattern = regexp.QuoteMeta(pattern)
	}
	flags := syntax.Perl
	if a.fold {
		flags |= syntax.FoldCase
	}
	re, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, patternError(a.pattern, err)
	}
	if size(re) > maxProgram {
		return nil, domain.Errorf(domain.InvalidArgument, "the pattern is too large once its repetitions are written out; use smaller counts, or * and +")
	}
	q := &query{multi: a.multi || breaks(re)}
	modes := ""
	if a.fold {
		modes += "i"
	}
	if q.multi {
		modes += "m"
	}
	if modes != "" {
		pattern = "(?" + modes + ")" + pattern
		if re, err = syntax.Parse(pattern, syntax.Perl); err != nil {
			return nil, patternError(a.pattern, err)
		}
	}
	if q.re, err = regexp.Compile(pattern); err != nil {
		return nil, patternError(a.pattern, err)
	}
	q.needle, q.whole = needles(re)
	q.odd = oddCases(q.needle)
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, patternError(a.pattern, err)
	}
	q.insts = len(prog.Inst)
	for _, in := range prog.Inst {
		q.once = q.once || in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&syntax.EmptyBeginText != 0
	}
	q.lines = newProgram(prog, q.multi)
	return q, nil
}

// size is about how many instructions a pattern compiles to.
func size(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += size(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1) + 1
	}
	return min(n, 1<<30)
}

// breaks reports whether a pattern names a line break.
func breaks(re *syntax.Regexp) bool {
	return re.Op == syntax.OpLiteral && slices.Contains(re.Rune, '\n') || slices.ContainsFunc(re.Sub, breaks)
}

// patternError says what is wrong with a pattern and what to write instead.
func patternError(pattern string, err error) error {
	var se *syntax.Error
	what := err.Error()
	if errors.As(err, &se) {
		what = se.Code.String()
		if se.Expr != "" {
			what += ": " + brief(se.Expr)
		}
	}
	advice := "to look for exactly this text, set literal to true"
	switch has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(pattern, p) })
	}; {
	case has("(?=", "(?!", "(?<=", "(?<!"):
		what = "look-ahead and look-behind are not supported"
		advice = "match the text around it too and judge the lines of the result, or search twice"
	case has("(?>", "++", "*+", "?+", "}+"):
		what = "atomic groups and possessive repetition are not supported"
		advice = "write it without them: matching takes linear time anyway"
	case backReference(pattern):
		what = "references to a group, such as \\1, are not supported"
		advice = "write the text out, or search for the part before and judge the lines of the result"
	case has("(?#", "(?|", "(?P=", "(?P>", "(?&", "(?R", "(?("):
		what = "this kind of group is not supported"
		advice = "the syntax is that of RE2: (…), (?:…), (?P<name>…), (?i), (?s)"
	case has(`\K`, `\G`, `\R`, `\X`, `\h`, `\H`, `\N`, `\Z`, `\u`, `\e`, `\c`):
		what = "an escape in it is not supported (" + what + ")"
		advice = `RE2 has \d \w \s \b \pL \x{10FFFF} and \z; for white space in a line write [ \t]`
	case errors.As(err, &se) && se.Code == syntax.ErrInvalidRepeatSize:
		advice = "a count goes up to 1000, also of counts inside each other; use * or + instead"
	case errors.As(err, &se) && (se.Code == syntax.ErrLarge || se.Code == syntax.ErrNestingDepth):
		advice = "use smaller counts, or * and +"
	}
	return domain.Errorf(domain.InvalidArgument, "the pattern cannot be used: %s; %s", printable(what), advice)
}

// backReference reports whether a pattern holds \1 to \9.
func backReference(pattern string) bool {
	for i := 0; i+1 < len(pattern); i++ {
		if pattern[i] == '\\' {
			if i++; pattern[i] >= '1' && pattern[i] <= '9' {
				return true
			}
		}
	}
	return false
}

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
