package architecture

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// checkGlobals finds package-level variables that are, or could be, changed.
// What is allowed: errors, compiled tables (regexp.MustCompile and alike),
// embedded files, proofs (var _ I = T{}), and literals that nothing in the
// package assigns to, takes the address of, or calls a pointer method on.
func checkGlobals(t *tree) []violation {
	var bad []violation
	used := map[string]bool{}
	for _, p := range t.packages {
		if within(p.dir, "test") {
			continue
		}
		g := globalsOf(t, p)
		for _, v := range g.found {
			key := p.dir + "." + v.name.Name
			if p.dir == "." {
				key = v.name.Name
			}
			why := g.mutable(v)
			if why == "" {
				continue
			}
			if _, ok := t.exceptions.globals[key]; ok {
				used[key] = true
				continue
			}
			bad = append(bad, violation{t.at(v.name.Pos()), "package-level variable " + v.name.Name + " " + why})
		}
		for _, w := range g.foreign {
			bad = append(bad, violation{t.at(w.Pos()), "assigns to a variable of another package"})
		}
	}
	return append(bad, stale("globals", t.exceptions.globals, used)...)
}

// global is one package-level variable.
type global struct {
	name     *ast.Ident
	typ      ast.Expr // nil when inferred
	value    ast.Expr // nil when there is none
	embedded bool
}

// globals is what one package declares and does with it.
type globals struct {
	info    *types.Info
	found   []global
	written map[types.Object]token.Pos
	foreign []ast.Node
}

// globalsOf resolves the names of a package. Its imports are left unresolved:
// what belongs to other packages is not needed to see who writes here.
func globalsOf(t *tree, p *sources) *globals {
	g := &globals{
		info: &types.Info{
			Defs:       map[*ast.Ident]types.Object{},
			Uses:       map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{},
		},
		written: map[types.Object]token.Pos{},
	}
	var files []*ast.File
	for _, f := range p.files {
		if !f.test {
			files = append(files, f.ast)
			g.declared(f.ast)
		}
	}
	conf := types.Config{
		Importer: noImports{}, FakeImportC: true,
		Error: func(error) {}, // unresolved imports make many
	}
	conf.Check(p.dir, t.fset, files, g.info) //nolint:errcheck // the names it did resolve are what is wanted
	for _, f := range files {
		g.writes(f)
	}
	return g
}

// noImports resolves nothing.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) { return nil, errors.New("not loaded") }

func (g *globals) declared(f *ast.File) {
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.ValueSpec)
			for i, name := range spec.Names {
				v := global{name: name, typ: spec.Type, embedded: embeds(gen.Doc) || embeds(spec.Doc)}
				if i < len(spec.Values) {
					v.value = spec.Values[i]
				}
				g.found = append(g.found, v)
			}
		}
	}
}

// embeds reports whether a declaration carries a go:embed line.
func embeds(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// mutable says why v is not a constant in all but name; "" when it is.
func (g *globals) mutable(v global) string {
	if v.name.Name == "_" {
		return ""
	}
	if pos := g.written[g.info.Defs[v.name]]; pos.IsValid() {
		return "is changed"
	}
	if v.embedded {
		return ""
	}
	if v.value == nil {
		return "has no value of its own, so something must give it one"
	}
	isError := strings.HasPrefix(v.name.Name, "Err") || strings.HasPrefix(v.name.Name, "err") || g.newError(v.value)
	if fixed(v.value) || isError {
		return ""
	}
	return "is neither an error, a literal nor a compiled table"
}

// newError reports whether an expression makes a new value of an error type of
// the package, compared by identity as the ones of errors.New are.
func (g *globals) newError(e ast.Expr) bool {
	ref, ok := e.(*ast.UnaryExpr)
	if !ok || ref.Op != token.AND {
		return false
	}
	lit, ok := ref.X.(*ast.CompositeLit)
	if !ok {
		return false
	}
	id, ok := lit.Type.(*ast.Ident)
	if !ok || g.info.Uses[id] == nil {
		return false
	}
	method, _, _ := types.LookupFieldOrMethod(types.NewPointer(g.info.Uses[id].Type()), true, g.info.Uses[id].Pkg(), "Error")
	_, isFunc := method.(*types.Func)
	return isFunc
}

// fixed reports whether an expression makes a value that stays as it is when
// nobody writes to it.
func fixed(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit, *ast.CompositeLit, *ast.FuncLit, *ast.Ident:
		return true
	case *ast.ParenExpr:
		return fixed(e.X)
	case *ast.UnaryExpr:
		return e.Op != token.AND && fixed(e.X)
	case *ast.BinaryExpr:
		return fixed(e.X) && fixed(e.Y)
	case *ast.SelectorExpr:
		return true // a constant, variable or function of another package
	case *ast.CallExpr:
		return pure(e)
	}
	return false
}

// pure knows the calls that make a value and nothing else: conversions of
// literals, and constructors of things without visible state.
func pure(call *ast.CallExpr) bool {
	fun := call.Fun
	if generic, ok := fun.(*ast.IndexExpr); ok {
		fun = generic.X
	}
	switch fn := fun.(type) {
	case *ast.ArrayType:
		return true // []byte("…")
	case *ast.SelectorExpr:
		x, ok := fn.X.(*ast.Ident)
		if !ok {
			return false
		}
		switch x.Name + "." + fn.Sel.Name {
		case "regexp.MustCompile", "strings.NewReplacer", "crc32.MakeTable", "errors.New", "fmt.Errorf", "fmt.Sprintf", "reflect.TypeFor", "netip.MustParsePrefix", "netip.MustParseAddr":
			return true
		}
	}
	return false
}

// writes notes everything in f that changes a package-level variable.
func (g *globals) writes(f *ast.File) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, lhs := range n.Lhs {
					g.write(lhs)
				}
			}
		case *ast.IncDecStmt:
			g.write(n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				g.write(n.Key)
				g.write(n.Value)
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				g.write(n.X)
			}
		case *ast.CallExpr:
			g.call(n)
		}
		return true
	})
}

// call notes the built-in calls that change their argument and methods that
// take the address of their receiver.
func (g *globals) call(call *ast.CallExpr) {
	switch fn := call.Fun.(type) {
	case *ast.Ident:
		if (fn.Name == "delete" || fn.Name == "clear" || fn.Name == "copy") && len(call.Args) > 0 {
			g.write(call.Args[0])
		}
	case *ast.SelectorExpr:
		sel := g.info.Selections[fn]
		if sel == nil || sel.Kind() != types.MethodVal {
			return
		}
		recv := sel.Obj().(*types.Func).Signature().Recv()
		_, pointer := recv.Type().(*types.Pointer)
		_, already := sel.Recv().(*types.Pointer)
		if pointer && !already {
			g.write(fn.X)
		}
	}
}

// write notes the variable at the root of an expression such as v, v.f, v[i]
// or *v.
func (g *globals) write(e ast.Expr) {
	if e == nil {
		return
	}
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if id, ok := x.X.(*ast.Ident); ok {
				if pkg, ok := g.info.Uses[id].(*types.PkgName); ok {
					if strings.Contains(pkg.Imported().Path(), ".") {
						g.foreign = append(g.foreign, x)
					}
					return
				}
			}
			e = x.X
		case *ast.Ident:
			if v, ok := g.info.Uses[x].(*types.Var); ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
				g.written[v] = x.Pos()
			}
			return
		default:
			return
		}
	}
}
