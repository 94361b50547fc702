package fs

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

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
