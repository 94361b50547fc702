package shellpolicy

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// braced reports whether the shell may expand braces in a word: one with an
// unquoted { and a later } between which a comma or two dots stand.
func braced(x *syntax.Word) bool {
	open, split := false, false
	for _, p := range x.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			continue
		}
		for i := range len(lit.Value) {
			switch c := lit.Value[i]; {
			case c == '{':
				open = true
			case open && (c == ',' || c == '.' && strings.HasPrefix(lit.Value[i:], "..")):
				split = true
			case c == '}' && split:
				return true
			}
		}
	}
	return false
}

// braces expands the braces of a word that is unquoted throughout. why says
// why others are left.
func (w *walker) braces(x *syntax.Word) (list []*syntax.Word, why string) {
	if w.env.Dialect == Posix {
		return nil, "not every shell expands braces"
	}
	if len(x.Parts) != 1 || strings.Contains(x.Lit(), `\`) {
		return nil, "braces stand beside quotes or variables"
	}
	split := *x
	if !syntax.SplitBraces(&split) {
		return nil, "its braces are not closed"
	}
	texts, ok := spread(&split)
	if !ok {
		return nil, "its braces make too many words"
	}
	for _, t := range texts {
		lit := *x.Parts[0].(*syntax.Lit)
		lit.Value = t
		e := *x
		e.Parts = []syntax.WordPart{&lit}
		if t == "" {
			continue // an empty word vanishes
		}
		list = append(list, &e)
	}
	return list, ""
}

// spread returns the texts that a word with brace expressions makes, in the
// shell's order.
func spread(x *syntax.Word) (texts []string, ok bool) {
	texts = []string{""}
	for _, p := range x.Parts {
		var tails []string
		switch p := p.(type) {
		case *syntax.Lit:
			tails = []string{p.Value}
		case *syntax.BraceExp:
			if tails, ok = elements(p); !ok {
				return nil, false
			}
		default:
			return nil, false
		}
		if len(texts)*len(tails) > maxBraces {
			return nil, false
		}
		var next []string
		for _, head := range texts {
			for _, tail := range tails {
				next = append(next, head+tail)
			}
		}
		texts = next
	}
	return texts, true
}

func elements(b *syntax.BraceExp) (texts []string, ok bool) {
	if b.Sequence {
		return sequence(b)
	}
	for _, e := range b.Elems {
		more, ok := spread(e)
		if !ok || len(texts)+len(more) > maxBraces {
			return nil, false
		}
		texts = append(texts, more...)
	}
	return texts, true
}

// sequence expands {1..5}; the forms with letters, steps and leading zeros
// are left alone.
func sequence(b *syntax.BraceExp) (texts []string, ok bool) {
	if len(b.Elems) != 2 {
		return nil, false
	}
	from, err1 := strconv.Atoi(b.Elems[0].Lit())
	to, err2 := strconv.Atoi(b.Elems[1].Lit())
	if err1 != nil || err2 != nil || from < 0 || to < 0 || from > 1e6 || to > 1e6 ||
		strconv.Itoa(from) != b.Elems[0].Lit() || strconv.Itoa(to) != b.Elems[1].Lit() {
		return nil, false
	}
	step := 1
	if to < from {
		step = -1
	}
	for n := from; ; n += step {
		if len(texts) == maxBraces {
			return nil, false
		}
		texts = append(texts, strconv.Itoa(n))
		if n == to {
			return texts, true
		}
	}
}
