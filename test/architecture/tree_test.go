package architecture

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tree is the module's sources, parsed.
type tree struct {
	fsys       fs.FS
	module     string // module path
	fset       *token.FileSet
	packages   []*sources // sorted by directory
	exceptions exceptions
}

// sources is one directory with Go files.
type sources struct {
	dir   string // relative to the module, slashes; "." for the root
	files []*file
}

// file is one Go file.
type file struct {
	path string
	test bool
	ast  *ast.File
}

// violation is one place where a rule is broken.
type violation struct {
	where string // file and line, or a package
	what  string
}

func (v violation) String() string { return v.where + ": " + v.what }

// rule is one rule of the design.
type rule struct {
	name   string
	reason string
	check  func(*tree) []violation
}

// rules lists every rule. Each has at least one entry in mutants_test.go.
func rules() []rule {
	return []rule{
		{"imports", "each ring knows only the rings inside it, so that any adapter can be replaced", checkImports},
		{"modules", "a dependency is a decision: one home each, written down", checkModules},
		{"ports", "a port without a consumer, a suite and an adapter is a drawer, not a port", checkPorts},
		{"goroutines", "every goroutine has an owner, a stop and a join; few files may start one", checkGoroutines},
		{"init", "start-up is a feature and order of initialisation is nobody's business", checkInit},
		{"globals", "state that anybody can change belongs to nobody", checkGlobals},
		{"clock", "time, ids and the environment come in by constructor, so that core behaves the same every time", checkClock},
		{"tags", "wire structs live in the wire adapter and rows in the store adapter", checkTags},
		{"stdout", "on stdio, standard output carries JSON-RPC and nothing else", checkStdout},
		{"docs", "a reader gets the contract before the code", checkDocs},
		{"todo", "behaviour is there or it is refused; a note to oneself is neither", checkTodo},
		{"links", "a paper that names a file which is not there misleads", checkLinks},
	}
}

// load parses every Go file below fsys that belongs to the module.
func load(fsys fs.FS) (*tree, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	t := &tree{fsys: fsys, module: modulePath(string(mod)), fset: token.NewFileSet()}
	if t.module == "" {
		return nil, fmt.Errorf("go.mod names no module")
	}
	byDir := map[string]*sources{}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (skipDir(d.Name()) || isModule(fsys, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &sources{dir: dir}
		}
		byDir[dir].files = append(byDir[dir].files, &file{path: name, test: strings.HasSuffix(name, "_test.go"), ast: parsed})
		return nil
	})
	for _, p := range byDir {
		t.packages = append(t.packages, p)
	}
	slices.SortFunc(t.packages, func(a, b *sources) int { return cmp.Compare(a.dir, b.dir) })
	return t, err
}

// skipDir names directories that hold no source of the module.
func skipDir(name string) bool {
	return name == "testdata" || name == "node_modules" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

// isModule reports whether a directory is a module of its own: a tool that
// needs what the program does not.
func isModule(fsys fs.FS, dir string) bool {
	_, err := fs.Stat(fsys, dir+"/go.mod")
	return err == nil
}

func modulePath(mod string) string {
	for line := range strings.Lines(mod) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.Trim(name, "\" ")
		}
	}
	return ""
}

// exists reports whether the module has a file or directory of that name.
func (t *tree) exists(name string) bool {
	_, err := fs.Stat(t.fsys, name)
	return err == nil
}

// pkg returns the package of a directory, nil when there is none.
func (t *tree) pkg(dir string) *sources {
	for _, p := range t.packages {
		if p.dir == dir {
			return p
		}
	}
	return nil
}

// code calls fn for every file that is no test and stands below one of the
// directories; with none, for every such file of the module.
func (t *tree) code(fn func(*sources, *file), dirs ...string) {
	for _, p := range t.packages {
		if len(dirs) > 0 && !slices.ContainsFunc(dirs, func(d string) bool { return within(p.dir, d) }) {
			continue
		}
		for _, f := range p.files {
			if !f.test {
				fn(p, f)
			}
		}
	}
}

// at describes a place.
func (t *tree) at(pos token.Pos) string {
	p := t.fset.Position(pos)
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// within reports whether dir is parent or lies below it.
func within(dir, parent string) bool {
	return dir == parent || strings.HasPrefix(dir, parent+"/")
}

// importPath returns the path of an import.
func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return ""
	}
	return p
}

// local returns the directory of an import of this module.
func (t *tree) local(importPath string) (string, bool) {
	if importPath == t.module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}

// standard reports whether a path is of the standard library.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// nameOf returns the name under which a file knows an import.
func nameOf(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	base := path.Base(importPath(spec))
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(importPath(spec)))
	}
	return base
}

// selections calls fn for every X.Sel of the file where X is the package
// imported from the given path.
func (f *file) selections(fn func(importPath string, sel *ast.SelectorExpr)) {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		names[nameOf(spec)] = importPath(spec)
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && names[id.Name] != "" {
			fn(names[id.Name], sel)
		}
		return true
	})
}
