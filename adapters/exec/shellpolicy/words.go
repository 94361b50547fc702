package shellpolicy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxBraces is how many words the braces of one word may make.
const maxBraces = 256

// word is one word of a command after quote removal, as far as that is known
// before the line runs.
type word struct {
	text   string // the value, when static; else its literal parts
	static bool
	why    string // why it is not static
	split  bool   // not static, and it may become several words
	number bool   // not static, but an unsigned number all the same
	glob   bool   // the shell replaces it by the file names that match pattern
	// pattern is text with a backslash before each character that is meant
	// literally and means something in a pattern.
	pattern string
	// lits are the literal runs between what is expanded.
	lits []string
	// from is the word as it is written.
	from string
}

// plain reports whether the word is one known value.
func (d word) plain() bool { return d.static && !d.glob }

// flag reports whether the word can be read as an option.
func (d word) flag() bool { return len(d.text) > 1 && d.text[0] == '-' }

// literal makes a word of known text.
func literal(text string) word {
	return word{text: text, static: true, pattern: escapeGlob(text), lits: []string{text}, from: text}
}

// assembly puts the parts of a word together.
type assembly struct {
	w       *walker
	sc      scope
	text    strings.Builder
	pattern strings.Builder
	run     strings.Builder
	out     word
	assign  bool // the word is the value of an assignment: no patterns, tildes after colons
}

// words evaluates words, each brace expression making several.
func (w *walker) words(sc scope, list []*syntax.Word) []word {
	var out []word
	for _, x := range list {
		if !braced(x) {
			out = append(out, w.word(sc, x))
			continue
		}
		expanded, why := w.braces(x)
		if why != "" {
			d := w.word(sc, x)
			d.static, d.why = false, why
			out = append(out, d)
			continue
		}
		for _, e := range expanded {
			d := w.word(sc, e)
			d.from = w.source(x)
			out = append(out, d)
		}
	}
	return out
}

// word evaluates one word without brace expansion.
func (w *walker) word(sc scope, x *syntax.Word) word {
	return w.assemble(sc, x, false)
}

// value evaluates the value of an assignment.
func (w *walker) value(sc scope, x *syntax.Word) word {
	if x == nil {
		return literal("")
	}
	d := w.assemble(sc, x, true)
	d.glob = false
	return d
}

func (w *walker) assemble(sc scope, x *syntax.Word, assign bool) word {
	a := &assembly{w: w, sc: sc, assign: assign, out: word{static: true, from: w.source(x)}}
	parts := x.Parts
	if lit, ok := first(parts); ok && strings.HasPrefix(lit.Value, "~") {
		parts = a.tilde(lit.Value, parts)
	}
	a.parts(parts)
	return a.finish()
}

func first(parts []syntax.WordPart) (*syntax.Lit, bool) {
	if len(parts) == 0 {
		return nil, false
	}
	lit, ok := parts[0].(*syntax.Lit)
	return lit, ok
}

// tilde expands a leading ~, and returns the parts that are left.
func (a *assembly) tilde(lit string, parts []syntax.WordPart) []syntax.WordPart {
	name, rest, slash := strings.Cut(lit, "/")
	switch {
	case name == "~" && (slash || len(parts) == 1) && !(a.assign && strings.Contains(rest, ":")):
		if a.w.env.Home == "" || a.w.renamed["HOME"] {
			a.unknown("the home directory is not known")
		}
		a.literal(a.w.env.Home)
		if slash {
			rest = "/" + rest
		}
		return append([]syntax.WordPart{&syntax.Lit{Value: rest}}, parts[1:]...)
	case slash || len(parts) == 1:
		a.unknown("it names the home directory of somebody, or another directory, by a shorthand")
		a.out.why = shorthand
	default:
		a.unknown("a tilde stands before something that is expanded")
	}
	return parts
}

// shorthand is why words such as ~root and ~+ are not static.
const shorthand = "it names a directory by a shorthand such as ~name"

func (a *assembly) finish() word {
	a.endRun()
	d := a.out
	d.text, d.pattern = a.text.String(), a.pattern.String()
	d.glob = d.static && !a.assign && hasGlob(d.pattern)
	if d.static {
		d.lits = []string{d.text}
	}
	return d
}

func (a *assembly) endRun() {
	if a.run.Len() > 0 {
		a.out.lits = append(a.out.lits, a.run.String())
		a.run.Reset()
	}
}

// literal adds quoted text.
func (a *assembly) literal(s string) {
	a.text.WriteString(s)
	a.run.WriteString(s)
	a.pattern.WriteString(escapeGlob(s))
}

// bare adds one unquoted character.
func (a *assembly) bare(c byte) {
	a.text.WriteByte(c)
	a.run.WriteByte(c)
	a.pattern.WriteByte(c)
}

// unknown says that something is expanded here whose value is not known.
func (a *assembly) unknown(why string) {
	a.endRun()
	a.out.static, a.out.number = false, false
	if a.out.why == "" {
		a.out.why = why
	}
}

func (a *assembly) parts(parts []syntax.WordPart) {
	for i, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			a.unquoted(p.Value)
			if a.w.env.Dialect == Posix && i+1 < len(parts) && strings.HasSuffix(p.Value, "$") {
				a.unknown("only some shells know that kind of quotes")
			}
		case *syntax.SglQuoted:
			a.single(p)
		case *syntax.DblQuoted:
			if p.Dollar {
				a.unknown("its text depends on the language of the system")
			}
			a.double(p.Parts)
		default:
			a.expansion(p, false)
			a.out.split = a.out.split || !a.out.static && !a.out.number
		}
	}
}

// unquoted adds text outside quotes, where a backslash quotes one character.
func (a *assembly) unquoted(s string) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			if i++; s[i] != '\n' { // else the line goes on
				a.literal(s[i : i+1])
			}
		case s[i] == '~' && i > 0 && (s[i-1] == '=' || s[i-1] == ':'):
			a.literal("~")
			a.unknown("a tilde stands after = or :")
			if i+1 == len(s) || s[i+1] == '/' {
				a.run.WriteString("~") // so that ~/… is found in what is literal
			}
		default:
			a.bare(s[i])
		}
	}
}

func (a *assembly) single(q *syntax.SglQuoted) {
	if !q.Dollar {
		a.literal(q.Value)
		return
	}
	text, ok := ansiC(q.Value)
	if !ok || a.w.env.Dialect == Posix {
		a.unknown("it has escapes that only some shells know")
	}
	a.literal(text)
}

// double adds what is in double quotes.
func (a *assembly) double(parts []syntax.WordPart) {
	for _, p := range parts {
		if lit, ok := p.(*syntax.Lit); ok {
			a.literal(dequote(lit.Value, "$`\"\\\n"))
			continue
		}
		a.expansion(p, true)
	}
}

// dequote removes the backslash before the characters of special, and the
// newline with it where that is one of them: the line goes on.
func dequote(s, special string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(special, s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
