package fs

import (
	"bytes"
	"math/bits"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxNeedles is how many texts are looked for at once; a pattern with more
// alternatives is matched without looking for texts first.
const maxNeedles = 8

// needle is a text that a match holds, or one of a few of which it holds at
// least one. Finding a text is many times faster than matching a pattern, so
// only the lines that hold one are matched.
type needle struct {
	text string
	raw  []byte // the same
	fold bool   // without regard to case; text is lower case ASCII then
	// With fold, the byte to look for first: the rarest one.
	at     int
	lo, up byte
}

// needles finds texts for a pattern; nil when it may match without any of
// few. whole tells that a line that holds the one needle is a match.
func needles(re *syntax.Regexp) (list []needle, whole bool) {
	list = required(re)
	for i := range list {
		list[i].choose()
	}
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	// A carriage return at the end may be a part of the line's end.
	whole = re.Op == syntax.OpLiteral && len(list) == 1 && len(list[0].text) == len(string(re.Rune)) && !strings.HasSuffix(list[0].text, "\r")
	return list, whole
}

// required are the texts of which every match of re holds one.
func required(re *syntax.Regexp) []needle {
	switch re.Op {
	case syntax.OpLiteral:
		return literalNeedle(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []needle
		for _, sub := range re.Sub {
			if list := required(sub); worth(list) > worth(best) {
				best = list
			}
		}
		return best
	case syntax.OpAlternate:
		var all []needle
		for _, sub := range re.Sub {
			list := required(sub)
			if len(list) == 0 || len(all)+len(list) > maxNeedles {
				return nil
			}
			all = append(all, list...)
		}
		return all
	default: // matches too many texts, or none
	}
	return nil
}

// literalNeedle is the needle of a literal. Without regard to case it is the
// best piece of ASCII in it: other letters have cases of other lengths.
func literalNeedle(re *syntax.Regexp) []needle {
	text := string(re.Rune)
	if strings.ContainsRune(text, utf8.RuneError) {
		return nil // it stands for any byte that is not UTF-8, too
	}
	if re.Flags&syntax.FoldCase == 0 {
		return []needle{{text: text}}
	}
	best := needle{fold: true}
	for _, piece := range strings.FieldsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		if n := (needle{text: strings.ToLower(piece), fold: true}); n.worth() > best.worth() {
			best = n
		}
	}
	if best.text == "" {
		return nil
	}
	return []needle{best}
}

// worth is how much a set of needles narrows a search down: that of the worst
// one, and fewer are better.
func worth(list []needle) int {
	if len(list) == 0 {
		return 0
	}
	least := list[0].worth()
	for _, n := range list[1:] {
		least = min(least, n.worth())
	}
	return max(least-bits.Len(uint(len(list)-1)), 1)
}

// worth adds up how rare the bytes are.
func (n needle) worth() int {
	sum := 0
	for i := range len(n.text) {
		sum += rarity(n.text[i], n.fold)
	}
	return sum
}

// rarity is about how many bits a byte tells in source text.
func rarity(c byte, fold bool) int {
	switch {
	case c == ' ':
		return 3
	case strings.IndexByte("etaoinsrlcdpu", c) >= 0:
		return 5
	case c >= 'a' && c <= 'z':
		if fold {
			return 6
		}
		return 7
	case strings.IndexByte("(),.=\t\n", c) >= 0:
		return 6
	}
	return 8
}

// choose picks the byte that is looked for first.
func (n *needle) choose() {
	if n.raw = []byte(n.text); !n.fold {
		return
	}
	best := -1
	for i := range len(n.text) {
		if r := rank(n.text[i]); r > best {
			best, n.at = r, i
		}
	}
	n.lo = n.text[n.at]
	n.up = upper(n.lo)
}

// rank orders bytes by how rare they are in source text.
func rank(c byte) int {
	if at := strings.IndexByte(" etaoinrslcdpumfhgbyw.,()vk=x_:\"/-0123456789zqj", c); at >= 0 {
		return at
	}
	return 255
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c - 'A' + 'a'
	}
	return c
}

// oddCases reports whether a text without regard to case has letters whose
// other forms are not ASCII: k has the Kelvin sign, s the long s.
func oddCases(list []needle) bool {
	for _, n := range list {
		if n.fold && strings.ContainsAny(n.text, "ks") {
			return true
		}
	}
	return false
}

// holdsOdd reports whether a text holds one of those forms.
func holdsOdd(text []byte) bool {
	return bytes.Contains(text, []byte("\u212A")) || bytes.Contains(text, []byte("\u017F"))
}

// finder looks for needles in one text.
type finder struct {
	list []needle
	text []byte
	next [maxNeedles]int    // where each is next; -1 not looked for yet, len(text) nowhere
	lo   [maxNeedles][2]int // with fold: where the two forms of its first byte are next
}

func (f *finder) reset(list []needle, text []byte) {
	f.list, f.text = list, text
	for i := range list {
		f.next[i], f.lo[i] = -1, [2]int{-1, -1}
	}
}

// find returns where the first needle at or after pos begins, and its length;
// -1 when there is none.
func (f *finder) find(pos int) (at, length int) {
	at = len(f.text)
	for i := range f.list {
		if f.next[i] < pos {
			f.next[i] = f.search(i, pos)
		}
		if f.next[i] < at {
			at, length = f.next[i], len(f.list[i].text)
		}
	}
	if at == len(f.text) {
		return -1, 0
	}
	return at, length
}

func (f *finder) search(i, pos int) int {
	n := &f.list[i]
	if !n.fold {
		if at := bytes.Index(f.text[pos:], n.raw); at >= 0 {
			return pos + at
		}
		return len(f.text)
	}
	next := &f.lo[i]
	for from := pos + n.at; ; from++ {
		for form, c := range [2]byte{n.lo, n.up} {
			if next[form] >= from || form == 1 && n.up == n.lo {
				continue
			}
			if next[form] = len(f.text); from < len(f.text) {
				if at := bytes.IndexByte(f.text[from:], c); at >= 0 {
					next[form] = from + at
				}
			}
		}
		if from = next[0]; n.up != n.lo {
			from = min(from, next[1])
		}
		if from == len(f.text) {
			return from
		}
		if at := from - n.at; foldEqual(f.text[at:], n.text) {
			return at
		}
	}
}

// foldEqual reports whether text begins with s, which is lower case ASCII,
// without regard to case.
func foldEqual(text []byte, s string) bool {
	if len(text) < len(s) {
		return false
	}
	for i := range len(s) {
		if c := text[i]; c != s[i] && lower(c) != s[i] {
			return false
		}
	}
	return true
}
