package shellpolicy

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// invariants checks what holds for every line.
func (r *rig) invariants(t *testing.T, line string) {
	t.Helper()
	began := time.Now()
	a := r.analyze(t, line)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%q took %v", cut(line, 200), took)
	}
	if a.Class < read || a.Class > risk || len(a.Commands) == 0 && a.Class > read && a.Forbidden == "" {
		t.Errorf("%q: %+v", line, a)
	}
	worst := read
	for _, c := range a.Commands {
		worst = max(worst, c.Class)
		if c.Exact && (c.Class != run || c.More || len(c.Words) == 0 || c.Prefix > len(c.Words)) {
			t.Errorf("%q: %+v may be remembered", line, c)
		}
	}
	if worst != a.Class && a.Forbidden == "" {
		t.Errorf("%q: class %d, the worst command has %d", line, a.Class, worst)
	}
	if a.Class > read && a.Reason == "" && a.Forbidden == "" {
		t.Errorf("%q: there is no reason: %+v", line, a)
	}
	if title := a.Title(); len([]rune(title)) > maxTitle || strings.ContainsAny(title, "\n\r\x1b") {
		t.Errorf("%q: the title is %q", line, title)
	}
	if a.ReadOnly() {
		r.proven(t, line, a)
	}
	if strings.HasSuffix(strings.TrimRight(line, " \t\n"), "\\") || strings.Contains(line, "<<") || strings.Contains(line, "#") {
		return // what is appended would belong to a word, a here-document or a comment
	}
	if b := r.analyze(t, line+"\ntrue"); a.Forbidden == "" && b.Forbidden == "" && b.Class < a.Class {
		t.Errorf("%q: true behind it makes class %d of %d", line, b.Class, a.Class)
	}
	if b := r.analyze(t, line+"\nrm -r build"); a.Forbidden == "" && b.Forbidden == "" && b.Class != risk {
		t.Errorf("%q: rm behind it is not seen", line)
	}
}

// proven checks a line that is judged a read against its tree: every program
// is on the list, and no word holds an expansion but those that are known.
func (r *rig) proven(t *testing.T, line string, a Analysis) {
	t.Helper()
	for _, c := range a.Commands {
		if len(c.Words) == 0 {
			t.Errorf("%q: a read of an unknown program: %+v", line, c)
			continue
		}
		name := path.Base(c.Words[0])
		_, known := readTool(name)
		if !known && !slices.Contains([]string{
			"find", "git", "sed", "gsed", "jq", "date", "hostname", "echo", "printf", "test", "[", "true", "false", ":", "type", "command", "exec", "builtin", "times", "env",
			"cd", "pushd", "exit", "return", "break", "continue", "set",
		}, name) {
			t.Errorf("%q: %s is on no list", line, name)
		}
	}
	file, err := parse(t.Context(), line, Bash)
	if err != nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ExtGlob, *syntax.FuncDecl, *syntax.DeclClause, *syntax.CoprocClause:
			t.Errorf("%q: a read with %T", line, n)
		case *syntax.ParamExp:
			if !simpleParam(n) || !slices.Contains([]string{"HOME", "PWD", "?", "#", "$"}, n.Param.Value) {
				t.Errorf("%q: a read with the variable %v", line, n.Param)
			}
		case *syntax.Stmt:
			if n.Background {
				t.Errorf("%q: a read in the background", line)
			}
		}
		return true
	})
}

func FuzzAnalyze(f *testing.F) {
	r := newRig(f)
	for _, c := range corpus(f) {
		if c.Input.Gen == nil {
			f.Add(c.line(r))
		}
	}
	m := newLineMaker(3)
	for range 200 {
		f.Add(m.line())
	}
	f.Fuzz(func(t *testing.T, line string) { r.invariants(t, line) })
}

func TestInvariants(t *testing.T) {
	r := newRig(t)
	m := newLineMaker(11)
	reads := 0
	for range 1500 {
		line := m.line()
		if r.analyze(t, line).ReadOnly() {
			reads++
		}
		r.invariants(t, line)
	}
	if reads < 100 {
		t.Errorf("only %d lines of 1500 are reads", reads)
	}
}
