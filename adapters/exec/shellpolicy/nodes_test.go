package shellpolicy

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every kind of node and operator that the grammar knows has been thought
// about. A new version that adds one fails here before it can pass unjudged.
func TestNodes_AllKnown(t *testing.T) {
	pkg, err := build.Import("mvdan.cc/sh/v3/syntax", ".", build.FindOnly)
	if err != nil {
		t.Skipf("the sources of the grammar are not here: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(pkg.Dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources in %s: %v", pkg.Dir, err)
	}
	known := map[string][]string{
		"commandNode": {
			"CallExpr", "IfClause", "WhileClause", "ForClause", "CaseClause", "Block", "Subshell", "BinaryCmd", "FuncDecl", "ArithmCmd", "TestClause", "DeclClause",
			"LetClause", "TimeClause", "CoprocClause", "TestDecl", // TestDecl: forbidden, it is of another language
		},
		"wordPartNode":   {"Lit", "SglQuoted", "DblQuoted", "ParamExp", "CmdSubst", "ArithmExp", "ProcSubst", "ExtGlob", "BraceExp"},
		"arithmExprNode": {"BinaryArithm", "UnaryArithm", "ParenArithm", "FlagsArithm", "Word"}, // FlagsArithm: forbidden, of another language
		"testExprNode":   {"BinaryTest", "UnaryTest", "ParenTest", "Word"},
		"loopNode":       {"WordIter", "CStyleLoop"},
	}
	// Statement marks and the parts of ${…} are fields, not nodes.
	fields := map[string][]string{
		"Stmt":     {"Comments", "Cmd", "Position", "Semicolon", "Negated", "Background", "Coprocess", "Disown", "Redirs"},
		"Redirect": {"OpPos", "Op", "N", "Word", "Hdoc"},
		"CallExpr": {"Assigns", "Args"},
		"Assign":   {"Append", "Naked", "Name", "Index", "Value", "Array"},
		"ParamExp": {"Dollar", "Rbrace", "Short", "Flags", "Excl", "Length", "Width", "IsSet", "Split", "GlobSubst", "RcExpand", "Param", "NestedParam", "Index", "Modifiers", "Slice", "Repl", "Names", "Exp"},
	}
	got, structs := map[string][]string{}, map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && strings.HasSuffix(n.Name.Name, "Node") {
					got[n.Name.Name] = append(got[n.Name.Name], receiver(n.Recv.List[0].Type))
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && fields[n.Name.Name] != nil {
					for _, field := range s.Fields.List {
						for _, id := range field.Names {
							structs[n.Name.Name] = append(structs[n.Name.Name], id.Name)
						}
					}
				}
			}
			return true
		})
	}
	for kind, list := range got {
		for _, name := range list {
			if !slices.Contains(known[kind], name) {
				t.Errorf("the grammar has a new %s: %s", kind, name)
			}
		}
	}
	for kind, list := range known {
		for _, name := range list {
			if !slices.Contains(got[kind], name) {
				t.Errorf("the grammar has no %s %s any more", kind, name)
			}
		}
	}
	for name, list := range structs {
		if !slices.Equal(list, fields[name]) {
			t.Errorf("%s has the fields %v, and %v are known", name, list, fields[name])
		}
	}
	if len(structs) != len(fields) {
		t.Errorf("found only %v", structs)
	}
}

func receiver(x ast.Expr) string {
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
