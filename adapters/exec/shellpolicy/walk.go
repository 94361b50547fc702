package shellpolicy

import (
	"mvdan.cc/sh/v3/syntax"
)

// stmts walks statements one after the other. The ends are those of the last.
func (w *walker) stmts(sc scope, list []*syntax.Stmt) ends {
	e := both(sc.dirs)
	for _, s := range list {
		sc.dirs = e.any()
		e = w.stmt(sc, s)
	}
	return e
}

// stmt walks one statement. A command under way, in whose words it stands, is
// set aside.
func (w *walker) stmt(sc scope, s *syntax.Stmt) ends {
	if w.depth++; w.depth > maxNest {
		w.depth--
		w.forbid("the command is nested too deeply; write it as several commands")
		return both(sc.dirs)
	}
	outer := w.current
	defer func() { w.depth--; w.current = outer }()
	w.current = nil

	before := sc.dirs
	if s.Background || s.Coprocess || s.Disown {
		sc.background = true
	}
	if call, ok := s.Cmd.(*syntax.CallExpr); ok || s.Cmd == nil {
		e := w.simple(sc, s, call)
		return finish(s, e, before)
	}
	w.current = w.newCall(sc, w.source(s))
	sc.stdin = w.redirects(sc, s.Redirs)
	w.current.finish()
	w.current = nil
	return finish(s, w.command(sc, s.Cmd), before)
}

// finish applies what a statement's marks do to where it ends.
func finish(s *syntax.Stmt, e ends, before dirs) ends {
	if s.Background || s.Coprocess || s.Disown {
		return both(before)
	}
	if s.Negated {
		return ends{ok: e.fail, fail: e.any()}
	}
	return e
}

// command walks a compound command. Every kind has its case: what is not known
// is forbidden.
func (w *walker) command(sc scope, c syntax.Command) ends {
	switch c := c.(type) {
	case *syntax.Block:
		return w.stmts(sc, c.Stmts)
	case *syntax.Subshell:
		w.stmts(sc, c.Stmts)
		return both(sc.dirs)
	case *syntax.BinaryCmd:
		return w.binary(sc, c)
	case *syntax.IfClause:
		return w.ifClause(sc, c)
	case *syntax.WhileClause:
		return w.loop(sc, c, func() ends {
			cond := w.stmts(sc, c.Cond)
			sc.dirs = cond.any()
			return both(cond.any().join(w.stmts(sc, c.Do).any()))
		})
	case *syntax.ForClause:
		w.loopHead(sc, c)
		return w.loop(sc, c, func() ends { return w.stmts(sc, c.Do) })
	case *syntax.CaseClause:
		return w.caseClause(sc, c)
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return both(sc.dirs)
		}
		return w.stmt(sc, c.Stmt)
	case *syntax.FuncDecl:
		w.function(sc, c)
	case *syntax.CoprocClause:
		sc.background = true
		w.opaque(sc, c, "keeps running in the background")
		w.stmt(sc, c.Stmt)
	case *syntax.ArithmCmd:
		w.evaluates(sc, c, func() { w.arithmetic(sc, c.X) })
	case *syntax.LetClause:
		w.evaluates(sc, c, func() {
			for _, x := range c.Exprs {
				w.arithmetic(sc, x)
			}
		})
	case *syntax.TestClause:
		w.evaluates(sc, c, func() { w.test(sc, c.X) })
	case *syntax.DeclClause:
		w.declare(sc, c)
	default: // CallExpr has been dealt with; TestDecl belongs to another language
		w.forbid("the command uses syntax that cannot be judged")
	}
	return both(sc.dirs)
}

// binary walks chains such as a && b | c. They may be long, so the left side
// is not walked by recursion.
func (w *walker) binary(sc scope, b *syntax.BinaryCmd) ends {
	var chain []*syntax.BinaryCmd
	left := b.X
	for chain = append(chain, b); ; {
		inner, ok := left.Cmd.(*syntax.BinaryCmd)
		if !ok || left.Negated || left.Background || left.Coprocess || left.Disown || len(left.Redirs) > 0 {
			break
		}
		chain = append(chain, inner)
		left = inner.X
	}
	e := w.stmt(sc, left)
	for i := len(chain) - 1; i >= 0; i-- {
		right := sc
		switch chain[i].Op {
		case syntax.AndStmt:
			right.dirs = e.ok
			e = e.and(w.stmt(right, chain[i].Y))
		case syntax.OrStmt:
			right.dirs = e.fail
			e = e.or(w.stmt(right, chain[i].Y))
		case syntax.Pipe, syntax.PipeAll:
			right.stdin = stdinPipe // each side is a shell of its own
			if _, ok := chain[i].Y.Cmd.(*syntax.TimeClause); ok {
				w.timeProgram(sc, chain[i].Y)
			}
			w.stmt(right, chain[i].Y)
			e = both(sc.dirs)
		default:
			w.forbid("the command uses syntax that cannot be judged")
		}
	}
	return e
}

// timeProgram adds time behind a pipe: there the shell does not take it for a
// word of its own, and starts the program of that name.
func (w *walker) timeProgram(sc scope, s *syntax.Stmt) {
	c := w.newCall(sc, w.source(s))
	c.words, c.fixed = []word{literal("time")}, true
	c.raise(run, "starts a program by the name of time")
	c.finish()
}

func (w *walker) ifClause(sc scope, c *syntax.IfClause) ends {
	out := dirs{}
	for c != nil {
		if len(c.Cond) == 0 { // else
			return both(out.join(w.stmts(sc, c.Then).any()))
		}
		cond := w.stmts(sc, c.Cond)
		then := sc
		then.dirs = cond.ok
		out = out.join(w.stmts(then, c.Then).any())
		sc.dirs = cond.fail
		c = c.Else
	}
	return both(out.join(sc.dirs))
}

// loop walks the body of a loop once. One that leaves the directory it started
// in is somewhere else each time.
func (w *walker) loop(sc scope, n syntax.Node, body func() ends) ends {
	after := body().any().join(sc.dirs)
	if !after.within(sc.dirs) {
		w.opaque(sc, n, "changes the directory in a loop")
		after.lost = true
	}
	return both(after)
}

// loopHead walks what a for or select loop goes through.
func (w *walker) loopHead(sc scope, c *syntax.ForClause) {
	w.current = w.newCall(sc, w.source(c))
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		w.words(sc, l.Items)
		if why := riskyVariable(l.Name.Value); why != "" {
			w.raise(risk, why)
		}
	case *syntax.CStyleLoop:
		for _, x := range []syntax.ArithmExpr{l.Init, l.Cond, l.Post} {
			w.arithmetic(sc, x)
		}
	default:
		w.forbid("the command uses syntax that cannot be judged")
	}
	if c.Select {
		w.raise(run, "waits for an answer")
	}
	w.current.emitBare()
	w.current = nil
}

func (w *walker) caseClause(sc scope, c *syntax.CaseClause) ends {
	w.current = w.newCall(sc, w.source(c))
	w.text(sc, c.Word)
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			w.text(sc, p)
		}
	}
	w.current.emitBare()
	w.current = nil
	out := sc.dirs
	for _, item := range c.Items {
		sc.dirs = out // an arm may fall through to the next
		out = out.join(w.stmts(sc, item.Stmts).any())
	}
	return both(out)
}

// function walks the body of a function. From its definition on nothing is
// what it seems.
func (w *walker) function(sc scope, f *syntax.FuncDecl) {
	w.opaque(sc, f, "defines a function")
	if f.Name == nil {
		w.forbid("the command defines a function without a name")
		return
	}
	if bomb(f) {
		w.forbid("a function that starts itself over and over is refused")
		return
	}
	w.stmt(sc, f.Body)
}

// bomb reports whether a function starts itself in a pipe or the background.
func bomb(f *syntax.FuncDecl) bool {
	found := false
	calls := func(n syntax.Node) {
		syntax.Walk(n, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && c.Args[0].Lit() == f.Name.Value {
				found = true
			}
			return !found
		})
	}
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				calls(n.X)
				calls(n.Y)
			}
		case *syntax.Stmt:
			if n.Background || n.Coprocess {
				calls(n)
			}
		}
		return !found
	})
	return found
}

// substitution walks the commands of $(…) and its like. Their output becomes
// text of the line, which is more than anybody can judge.
func (w *walker) substitution(sc scope, n syntax.Node, list []*syntax.Stmt) {
	w.raise(risk, "runs a command inside a word: "+cut(w.source(n), 80))
	w.stmts(scope{dirs: sc.dirs, background: sc.background}, list)
}

// opaque adds a command of which only the kind is known.
func (w *walker) opaque(sc scope, n syntax.Node, why string) {
	outer := w.current
	w.current = w.newCall(sc, w.source(n))
	w.raise(risk, why)
	w.current.emitBare()
	w.current = outer
}

// evaluates walks a command of the shell that computes or tests something.
func (w *walker) evaluates(sc scope, n syntax.Node, walk func()) {
	w.current = w.newCall(sc, w.source(n))
	walk()
	w.current.emitBare()
	w.current = nil
}

// text walks a word whose value is looked at and no more.
func (w *walker) text(sc scope, x *syntax.Word) word {
	d := w.word(sc, x)
	if !d.static && !d.number {
		w.raise(run, notKnown(d))
	}
	return d
}

// notKnown says in words that a word cannot be judged.
func notKnown(d word) string { return "cannot be analysed: " + d.why }
