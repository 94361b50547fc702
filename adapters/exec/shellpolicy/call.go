package shellpolicy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/berth-dev/berth/core/domain"
)

// call is one simple command under way.
type call struct {
	w    *walker
	sc   scope
	from string // as it is written
	// words are the argument list, without the wrappers that were peeled off.
	words []word
	// forms are other argument lists of the same command.
	forms [][]string
	class domain.AccessClass
	why   string
	// assigned are the values of the assignments in front.
	assigned []word
	extras   []pending
	// texts are the indexes of words that are text and no paths, whatever they
	// look like.
	texts map[int]bool
	// judged are the indexes of words whose paths have been dealt with.
	judged map[int]bool
	start  int // where the arguments begin that a table is about
	prefix int
	fixed  bool // never to be remembered
	// external is set when a wrapper looks the program up, so that the shell's
	// own commands are out of the question.
	external bool
}

// pending is a command to emit, and why it is no read.
type pending struct {
	command domain.SimpleCommand
	why     string
}

func (w *walker) newCall(sc scope, from string) *call {
	return &call{w: w, sc: sc, from: from, class: read, start: 1, texts: map[int]bool{}, judged: map[int]bool{}}
}

// raise makes the command at least as bad as class.
func (c *call) raise(class domain.AccessClass, why string) {
	if class > c.class {
		c.class, c.why = class, why
	}
}

// simple walks a simple command.
func (w *walker) simple(sc scope, s *syntax.Stmt, x *syntax.CallExpr) ends {
	c := w.newCall(sc, w.source(s))
	w.current = c
	c.sc.stdin = w.redirects(sc, s.Redirs)
	e := both(sc.dirs)
	if x != nil {
		c.assignments(x.Assigns)
		c.words = w.words(sc, x.Args)
	}
	if len(c.words) > 0 {
		e = c.judge()
	}
	c.finish()
	return e
}

// finish looks for forbidden names in what the command says, and adds it to
// the result.
func (c *call) finish() {
	if c.sc.background {
		c.raise(risk, "keeps running in the background")
	}
	before := c.class
	for i, d := range c.words {
		switch {
		case d.static, d.number:
		case c.texts[i] && (before == read || !d.split):
			c.raise(run, notKnown(d))
		default: // it may be an option, or several
			c.raise(risk, notKnown(d))
		}
	}
	if c.class > read || len(c.extras) > 0 {
		for _, d := range c.assigned {
			c.search(d)
		}
	}
	if c.class > read {
		for i, d := range c.words {
			if !c.texts[i] {
				c.search(d)
			}
		}
		c.operands()
	}
	switch {
	case len(c.words) > 0:
		c.emitWords()
	case c.class > read:
		c.emitBare()
	}
	for _, p := range c.extras {
		c.w.emit(p.command, p.why, c.from)
	}
	c.extras = nil
}

// operands judges the words of a command that is no read, and that no table
// has dealt with: each may be a path to do anything with.
func (c *call) operands() {
	options := true
	for i, d := range c.words {
		if i == 0 || c.texts[i] || c.judged[i] || !d.static {
			continue
		}
		if d.glob {
			c.pattern(d, useAny)
			continue
		}
		text := d.text
		if options && d.flag() {
			options = text != "--"
			_, value, found := strings.Cut(text, "=")
			if !found || !rooted(value) {
				continue
			}
			text = value
		} else if key, value, found := strings.Cut(text, "="); found && rooted(value) && !strings.Contains(key, "/") {
			text = value
		}
		if text == "" || strings.ContainsAny(text, "\n") || strings.Contains(text, "://") || len(text) > 4096 {
			continue
		}
		if c.w.touch(c.sc, c.homed(text), useAny) == nil {
			c.raise(risk, "cannot be analysed: the directory it runs in is not known")
		}
	}
}

// rooted reports whether the value of an option is a path that leads
// somewhere else than into the directory.
func rooted(s string) bool {
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~/") || s == ".." || strings.HasPrefix(s, "../")
}

// homed expands a tilde that a program, or the shell in some places, expands.
func (c *call) homed(s string) string {
	if (s == "~" || strings.HasPrefix(s, "~/")) && c.w.env.Home != "" {
		return c.w.env.Home + s[1:]
	}
	return s
}

// emitWords adds the command itself.
func (c *call) emitWords() {
	out := domain.SimpleCommand{Class: c.class, Forms: c.forms}
	for i, d := range c.words {
		if !d.static || d.glob && i == 0 {
			out.More = true
			break
		}
		out.Words = append(out.Words, d.text)
	}
	exact := c.class == run && !c.fixed && !out.More && len(out.Words) > 0 &&
		!slices.ContainsFunc(c.words, func(d word) bool { return d.glob })
	if len(out.Words) > 0 {
		if name, trusted := c.trusted(out.Words[0]); trusted && name != out.Words[0] {
			out.Forms = append(out.Forms, slices.Clone(out.Words))
			out.Words[0] = name
		}
	}
	out.Exact = exact
	if exact {
		out.Prefix = c.prefix
	}
	if !c.sc.dirs.home() && c.class == run {
		if dir := c.sc.dirs.only(c.w.env.Cwd); dir == "" {
			c.extra(run, "runs in a directory that is not known", false, "cd")
		} else if dir != c.w.env.Cwd {
			c.extra(run, "runs in "+dir, true, "cd", dir)
		}
	}
	c.w.emit(out, c.why, c.from)
}

// emitBare adds a command of which only the class can be told, unless it is a
// read.
func (c *call) emitBare() {
	if c.class > read {
		c.w.emit(domain.SimpleCommand{Class: c.class}, c.why, c.from)
	}
}
