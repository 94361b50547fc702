package domain_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unions finds the sealed interfaces of this package and their members: an
// interface with one unexported method isX, and every type that has it.
func unions(t *testing.T, files []*ast.File) map[string][]string {
	t.Helper()
	markers := map[string]string{} // method -> interface
	for _, f := range files {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				it, ok := ts.Type.(*ast.InterfaceType)
				if ok && len(it.Methods.List) == 1 && strings.HasPrefix(it.Methods.List[0].Names[0].Name, "is") {
					markers[it.Methods.List[0].Names[0].Name] = ts.Name.Name
				}
			}
		}
	}
	members := map[string][]string{}
	for _, f := range files {
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || markers[fn.Name.Name] == "" {
				continue
			}
			id, ok := fn.Recv.List[0].Type.(*ast.Ident)
			if !ok {
				t.Fatalf("%s has a pointer member; unions hold values", markers[fn.Name.Name])
			}
			members[markers[fn.Name.Name]] = append(members[markers[fn.Name.Name]], id.Name)
		}
	}
	return members
}

func parseDir(t *testing.T, root string) ([]*ast.File, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err == nil {
			files = append(files, f)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, fset
}

// switchTypes returns the names a type switch lists, "domain." stripped.
func switchTypes(sw *ast.TypeSwitchStmt) []string {
	var names []string
	for _, stmt := range sw.Body.List {
		for _, expr := range stmt.(*ast.CaseClause).List {
			switch e := expr.(type) {
			case *ast.Ident:
				names = append(names, e.Name)
			case *ast.SelectorExpr:
				if x, ok := e.X.(*ast.Ident); ok && x.Name == "domain" {
					names = append(names, e.Sel.Name)
				}
			}
		}
	}
	return names
}

// missing returns what a switch over a union leaves out, and which union.
func missing(members map[string][]string, listed []string) (union string, left []string) {
	for name, all := range members {
		if !slices.ContainsFunc(listed, func(n string) bool { return slices.Contains(all, n) }) {
			continue
		}
		for _, m := range all {
			if !slices.Contains(listed, m) {
				left = append(left, m)
			}
		}
		return name, left
	}
	return "", nil
}

func TestUnions_SwitchesListEveryMember(t *testing.T) {
	own, _ := parseDir(t, ".")
	members := unions(t, own)
	for _, want := range []string{"Record", "Update", "Block", "ModelEvent", "ModelMessage", "CallContent", "Event"} {
		if len(members[want]) < 2 {
			t.Errorf("union %s was not found; members: %v", want, members[want])
		}
	}
	seen := map[string]int{}
	for _, dir := range []string{".", "../services"} {
		files, fset := parseDir(t, dir)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				sw, ok := n.(*ast.TypeSwitchStmt)
				if !ok {
					return true
				}
				union, left := missing(members, switchTypes(sw))
				if union == "" {
					return true
				}
				seen[union]++
				if len(left) > 0 {
					t.Errorf("%s: the switch over %s leaves out %v", fset.Position(sw.Pos()), union, left)
				}
				return true
			})
		}
	}
	for _, want := range []string{"Record", "Block", "ModelEvent"} {
		if seen[want] == 0 {
			t.Errorf("no switch over %s was found; the test looks in the wrong place", want)
		}
	}
}

func TestUnions_AFaultIsFound(t *testing.T) {
	members := map[string][]string{"Block": {"Text", "Image"}, "Update": {"AgentText"}}
	union, left := missing(members, []string{"Text"})
	if union != "Block" || !slices.Equal(left, []string{"Image"}) {
		t.Errorf("a switch without Image is said to leave out %v of %q", left, union)
	}
}

// The doc comment of a union is its table of contents for a reader.
func TestUnions_DocListsEveryMember(t *testing.T) {
	files, _ := parseDir(t, ".")
	members := unions(t, files)
	for _, f := range files {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || len(gen.Specs) != 1 {
				continue
			}
			ts, ok := gen.Specs[0].(*ast.TypeSpec)
			if !ok || members[ts.Name.Name] == nil {
				continue
			}
			doc := strings.Join(strings.Fields(gen.Doc.Text()), " ")
			_, list, _ := strings.Cut(doc, "Members: ")
			list, _, _ = strings.Cut(list, ".")
			listed := strings.Split(list, ", ")
			slices.Sort(listed)
			want := slices.Sorted(slices.Values(members[ts.Name.Name]))
			if !slices.Equal(listed, want) {
				t.Errorf("the doc of %s lists %v, its members are %v", ts.Name.Name, listed, want)
			}
		}
	}
}
