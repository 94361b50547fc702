package shellpolicy

import (
	"context"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/berth-dev/berth/core/domain"
)

// The classes, from the least to the most careful.
const (
	read = domain.AccessRead
	run  = domain.AccessRun
	risk = domain.AccessRisk
)

const (
	// maxNest is how deep statements may be nested.
	maxNest = 200
	// maxJudged is how many paths of a line are looked up.
	maxJudged = 4096
)

// walker judges one line.
type walker struct {
	ctx   context.Context
	line  string
	env   Env
	paths Paths
	res   Analysis
	// current is the innermost command under way; what is found without one
	// counts for the line.
	current *call
	// renamed are the variables with a known value that the line may change.
	renamed   map[string]bool
	functions map[string]bool
	places    map[[2]string]domain.Place
	named     map[string]bool // paths already in res.Paths
	depth     int
	inner     int // how many texts are being judged inside others
}

// scope is what a statement finds when it starts.
type scope struct {
	dirs       dirs
	background bool
	stdin      stdin
}

// stdin says where a command's standard input comes from.
type stdin int

const (
	stdinNull  stdin = iota // the tool gives commands an empty one
	stdinFile               // a file of a known name
	stdinText               // a here-document
	stdinPipe               // another command
	stdinOther              // something that is not known
)

func newWalker(ctx context.Context, line string, env Env, paths Paths) *walker {
	return &walker{
		ctx: ctx, line: line, env: env, paths: paths,
		res:     Analysis{Class: read},
		renamed: map[string]bool{}, functions: map[string]bool{},
		places: map[[2]string]domain.Place{}, named: map[string]bool{},
	}
}

// file walks a whole line.
func (w *walker) file(f *syntax.File) {
	w.survey(f)
	if len(f.Stmts) == 0 {
		w.forbid("the command is empty")
	}
	w.stmts(scope{dirs: here()}, f.Stmts)
}

// survey finds out what has to be known beforehand: the functions, and whether
// the line may give HOME or PWD another value.
func (w *walker) survey(f *syntax.File) {
	harmless := map[*syntax.Lit]bool{}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.FuncDecl:
			if n.Name != nil {
				w.functions[n.Name.Value] = true
			}
		case *syntax.ParamExp:
			if simpleParam(n) {
				harmless[n.Param] = true
			}
		case *syntax.SglQuoted:
			w.rename(n.Value)
		case *syntax.Lit:
			if !harmless[n] {
				w.rename(n.Value)
			}
		}
		return true
	})
}

func (w *walker) rename(text string) {
	for _, name := range []string{"HOME", "PWD"} {
		if strings.Contains(strings.ReplaceAll(text, `\`, ""), name) {
			w.renamed[name] = true
		}
	}
}

// source is a node as it is written.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset()) //nolint:gosec // offsets lie in the line, which is short
	if from < 0 || to > len(w.line) || from >= to {
		return ""
	}
	if s, ok := n.(*syntax.Stmt); ok && !s.Background {
		return strings.TrimRight(w.line[from:to], "; ")
	}
	return w.line[from:to]
}

// forbid makes the line one that never runs. The first reason stays.
func (w *walker) forbid(why string) {
	if w.res.Forbidden != "" {
		return
	}
	w.res.Forbidden = why
	if w.current != nil {
		w.res.Decisive = w.current.from
	}
}

// raise makes the current command, or the line, at least as bad as c.
func (w *walker) raise(c domain.AccessClass, why string) {
	if w.current != nil {
		w.current.raise(c, why)
		return
	}
	w.worsen(c, why, w.line)
}

// worsen makes the line at least as bad as c because of what is written in
// from.
func (w *walker) worsen(c domain.AccessClass, why, from string) {
	if c > w.res.Class {
		w.res.Class, w.res.Reason = c, why
		if w.res.Forbidden == "" {
			w.res.Decisive = from
		}
	}
}

// emit adds a command to the result.
func (w *walker) emit(c domain.SimpleCommand, why, from string) {
	if w.inner > 0 { // a text inside another command: that one is asked about
		c.Exact, c.Prefix = false, 0
	}
	w.res.Commands = append(w.res.Commands, c)
	w.worsen(c.Class, why, from)
}

// result is the analysis, in which nothing is worse than its commands say.
func (w *walker) result() Analysis {
	r := w.res
	worst := read
	for _, c := range r.Commands {
		worst = max(worst, c.Class)
	}
	switch {
	case r.Forbidden != "":
		r.Class = risk
	case r.Class > worst:
		r.Commands = append(r.Commands, domain.SimpleCommand{Class: r.Class})
	}
	if r.Decisive == "" {
		r.Decisive = w.line
	}
	if w.ctx.Err() != nil && r.Forbidden == "" {
		r.Class, r.Forbidden = risk, "the command was not judged in time"
	}
	r.Paths, r.Reads, r.Writes = sorted(r.Paths), sorted(r.Reads), sorted(r.Writes)
	r.Reads = slices.DeleteFunc(r.Reads, func(p string) bool { return slices.Contains(r.Writes, p) })
	return r
}
