package shellpolicy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/berth-dev/berth/core/domain"
)

// redirects judges the redirections of a statement and says where its standard
// input comes from in the end.
func (w *walker) redirects(sc scope, list []*syntax.Redirect) stdin {
	in := sc.stdin
	for _, r := range list {
		if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
			w.raise(risk, "a redirection sets a variable")
		}
		input := r.N == nil || r.N.Value == "0"
		switch r.Op {
		case syntax.RdrIn:
			if kind := w.redirectFrom(sc, r); input {
				in = kind
			}
		case syntax.DplIn, syntax.DplOut:
			w.duplicate(sc, r)
			if r.Op == syntax.DplIn && input {
				in = stdinOther
			}
		case syntax.RdrInOut:
			w.redirectTo(sc, r)
			if input {
				in = stdinOther
			}
		case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
			w.redirectTo(sc, r)
		case syntax.Hdoc, syntax.DashHdoc:
			if r.Hdoc != nil {
				w.text(sc, r.Hdoc)
			}
			if input {
				in = stdinText
			}
		case syntax.WordHdoc:
			w.text(sc, r.Word)
			if input {
				in = stdinText
			}
		default:
			w.forbid("the command uses a redirection that cannot be judged")
		}
	}
	return in
}

// target evaluates the word of a redirection to or from a file. why says why
// it is not known.
func (w *walker) target(sc scope, x *syntax.Word) (d word, why string) {
	d = w.word(sc, x)
	switch {
	case braced(x):
		d.static, why = false, "it has braces"
	case d.why == shorthand:
		why = d.why
		w.forbid("write the directory out instead of " + d.from)
	case !d.static:
		why = d.why
	case d.glob:
		d.static, why = false, "it is a pattern"
	}
	return d, why
}

// socket reports whether bash opens a connection instead of a file.
func socket(path string) bool {
	return strings.HasPrefix(path, "/dev/tcp/") || strings.HasPrefix(path, "/dev/udp/")
}

// redirectFrom judges <file.
func (w *walker) redirectFrom(sc scope, r *syntax.Redirect) stdin {
	d, why := w.target(sc, r.Word)
	switch {
	case why != "":
		w.raise(run, "reads a file whose name is not known: "+why)
		w.current.search(d)
		return stdinOther
	case socket(d.text):
		w.connects()
		return stdinOther
	}
	w.current.opens(d)
	if d.text == "/dev/null" {
		return stdinNull
	}
	return stdinFile
}

func (w *walker) connects() {
	w.raise(risk, "uses the network")
	w.res.Network = true
}

// duplicate judges >&word and <&word.
func (w *walker) duplicate(sc scope, r *syntax.Redirect) {
	d := w.word(sc, r.Word)
	if plain := strings.TrimSuffix(d.text, "-"); d.static && strings.Trim(plain, "0123456789") == "" && d.text != "" {
		return
	}
	if r.Op == syntax.DplOut && r.N == nil { // both streams into a file
		w.redirectTo(sc, r)
		return
	}
	w.raise(risk, "uses a stream that is not known")
	w.current.search(d)
}

// redirectTo judges >file and its like: writing the file is a command of its
// own, and asked about as such.
func (w *walker) redirectTo(sc scope, r *syntax.Redirect) {
	d, why := w.target(sc, r.Word)
	switch {
	case why != "":
		w.raise(risk, "writes to a file whose name is not known: "+why)
		w.current.search(d)
		return
	case socket(d.text):
		w.connects()
		return
	case d.text == "/dev/null", d.text == "/dev/stdout", d.text == "/dev/stderr", d.text == "/dev/fd/1", d.text == "/dev/fd/2":
		return
	}
	paths := w.touch(sc, d.text, useWrite)
	if paths == nil {
		w.raise(risk, "writes to a file in a directory that is not known")
		return
	}
	for _, p := range paths {
		w.current.extra(run, "writes to "+d.text, true, ">", p.Path)
	}
}

// extra adds something the command does beside what its words say.
func (c *call) extra(class domain.AccessClass, why string, exact bool, words ...string) {
	c.extras = append(c.extras, pending{domain.SimpleCommand{Words: words, Class: class, Exact: exact}, why})
}
