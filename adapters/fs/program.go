package fs

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

// program is what automatons of one pattern share.
type program struct {
	prog   *syntax.Prog
	bounds []rune      // where the kinds of characters begin, ascending
	ascii  [128]uint16 // the kind of each ASCII character
	kinds  int
	word   []bool // whether the characters of a kind belong to words
	words  bool   // whether the pattern asks for the edges of words
	cr, nl int    // the kinds of a carriage return and of a line feed
	across bool   // a line feed is a character like others: the text is one line
}

// newProgram prepares a compiled pattern, for texts line by line or, with
// across set, as a whole. It is nil when the pattern tells too many kinds of
// characters apart: then package regexp has to do alone.
func newProgram(prog *syntax.Prog, across bool) *program {
	p := &program{prog: prog, across: across}
	cut := map[rune]bool{
		0: true, '\n': true, '\n' + 1: true, '\r': true, '\r' + 1: true,
		'0': true, '9' + 1: true, 'A': true, 'Z' + 1: true, '_': true, '_' + 1: true, 'a': true, 'z' + 1: true,
	}
	for i := range prog.Inst {
		in := &prog.Inst[i]
		if in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
			p.words = true
		}
		if in.Op != syntax.InstRune && in.Op != syntax.InstRune1 {
			continue
		}
		if len(in.Rune) == 1 {
			r := in.Rune[0]
			cut[r], cut[r+1] = true, true
			if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					cut[f], cut[f+1] = true, true
				}
			}
			continue
		}
		for j := 0; j+1 < len(in.Rune); j += 2 {
			cut[in.Rune[j]], cut[in.Rune[j+1]+1] = true, true
		}
		if len(cut) > maxClasses {
			return nil
		}
	}
	for r := range cut {
		p.bounds = append(p.bounds, r)
	}
	slices.Sort(p.bounds)
	p.kinds = len(p.bounds)
	for _, r := range p.bounds {
		p.word = append(p.word, syntax.IsWordChar(r))
	}
	for r := range p.ascii {
		p.ascii[r] = uint16(p.kind(rune(r)))
	}
	p.cr, p.nl = p.kind('\r'), p.kind('\n')
	return p
}

func (p *program) kind(r rune) int {
	i, found := slices.BinarySearch(p.bounds, r)
	if !found {
		i--
	}
	return i
}
