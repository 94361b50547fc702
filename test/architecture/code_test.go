package architecture

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
)

// concurrent are the directories and files whose very subject is running
// things at the same time; every other file states a reason.
var concurrent = []string{
	"adapters/jsonrpc", "adapters/ws", "adapters/streamhttp", "adapters/bridge", "adapters/openclaw", "adapters/exec", "adapters/mcp", "core/services/turns",
	"bootstrap/subprocess.go", "bootstrap/daemon.go",
}

// checkGoroutines finds go statements and the calls that hide one.
func checkGoroutines(t *tree) []violation {
	var bad []violation
	used := map[string]bool{}
	t.code(func(p *sources, f *file) {
		// Suites are tests: what they start, they wait for.
		if (within(p.dir, "core/ports/porttest") || within(p.dir, "adapters/llm/llmtest")) || slices.ContainsFunc(concurrent, func(d string) bool { return within(f.path, d) }) {
			return
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if what := startsGoroutine(n); what != "" {
				if _, ok := t.exceptions.goroutines[f.path]; ok {
					used[f.path] = true
				} else {
					bad = append(bad, violation{t.at(n.Pos()), what + " outside the packages that may; state owner, stop and join in exceptions_test.go"})
				}
			}
			return true
		})
	}, "core", "adapters", "bootstrap", "cmd")
	return append(bad, stale("goroutines", t.exceptions.goroutines, used)...)
}

// startsGoroutine says how n starts a goroutine; "" when it does not.
func startsGoroutine(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return ""
		}
		switch {
		case sel.Sel.Name == "Go" && len(n.Args) == 1:
			return "a group's Go"
		case sel.Sel.Name == "AfterFunc":
			return "an AfterFunc"
		}
	}
	return ""
}

// checkInit finds init functions.
func checkInit(t *tree) []violation {
	var bad []violation
	t.code(func(_ *sources, f *file) {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				bad = append(bad, violation{t.at(fn.Pos()), "func init"})
			}
		}
	})
	return bad
}

// checkClock finds the core reading time, chance or environment.
func checkClock(t *tree) []violation {
	banned := map[string][]string{
		"time":         {"Now", "Since", "Until", "Sleep"},
		"os":           {"*"},
		"math/rand":    {"*"},
		"math/rand/v2": {"*"},
		"crypto/rand":  {"*"},
	}
	var bad []violation
	t.code(func(p *sources, f *file) {
		if within(p.dir, "core/ports/porttest") || within(p.dir, "adapters/llm/llmtest") {
			return // suites wait for real systems
		}
		f.selections(func(from string, sel *ast.SelectorExpr) {
			names := banned[from]
			if slices.Contains(names, sel.Sel.Name) || slices.Contains(names, "*") {
				bad = append(bad, violation{t.at(sel.Pos()), fmt.Sprintf("%s.%s in the core", from, sel.Sel.Name)})
			}
		})
	}, "core")
	return bad
}

// checkTags finds struct tags in the core.
func checkTags(t *tree) []violation {
	var bad []violation
	t.code(func(_ *sources, f *file) {
		if _, ok := t.exceptions.json[f.path]; ok {
			return
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil {
				bad = append(bad, violation{t.at(field.Pos()), "a struct tag " + field.Tag.Value + " in the core"})
			}
			return true
		})
	}, "core")
	return bad
}

// checkStdout finds what writes to standard output in code that berth acp can
// reach. Commands print to the writer their command gives them.
func checkStdout(t *tree) []violation {
	banned := map[string][]string{
		"fmt":     {"Print", "Printf", "Println"},
		"os":      {"Stdout"},
		"syscall": {"Stdout"},
		"log":     {"Print", "Printf", "Println", "Default", "SetOutput"},
	}
	var bad []violation
	used := map[string]bool{}
	t.code(func(_ *sources, f *file) {
		found := func(n ast.Node, what string) {
			if _, ok := t.exceptions.stdout[f.path]; ok {
				used[f.path] = true
				return
			}
			bad = append(bad, violation{t.at(n.Pos()), what + " may reach the protocol's stream"})
		}
		f.selections(func(from string, sel *ast.SelectorExpr) {
			if slices.Contains(banned[from], sel.Sel.Name) {
				found(sel, from+"."+sel.Sel.Name)
			}
		})
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
					found(call, "builtin "+id.Name)
				}
			}
			return true
		})
	}, "core", "adapters", "bootstrap", "cmd")
	return append(bad, stale("stdout", t.exceptions.stdout, used)...)
}

var marks = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

// checkTodo finds notes to oneself in comments.
func checkTodo(t *tree) []violation {
	var bad []violation
	t.code(func(_ *sources, f *file) {
		for _, group := range f.ast.Comments {
			for _, c := range group.List {
				if mark := marks.FindString(c.Text); mark != "" {
					bad = append(bad, violation{t.at(c.Pos()), "a comment says " + mark})
				}
			}
		}
	})
	return bad
}
