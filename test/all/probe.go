package main

import (
	"context"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// raceUnavailable says why a program with the race detector cannot be built
// here; "" when it can. It builds one, because a compiler without the C
// library's headers is found and still of no use.
func raceUnavailable(ctx context.Context) string {
	dir, err := os.MkdirTemp("", "berth-race-")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	src := filepath.Join(dir, "main.go")
	if err := os.WriteFile(src, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		return err.Error()
	}
	program := filepath.Join(dir, "probe"+exeSuffix())
	cmd := exec.CommandContext(ctx, "go", "build", "-race", "-o", program, src)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOFLAGS=", "GOWORK=off")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return raceReason(string(out), err)
	}
	if err := exec.CommandContext(ctx, program).Run(); err != nil {
		return "a program built with it does not start here: " + err.Error()
	}
	return ""
}

// raceReason turns what go build printed into one line for the summary.
func raceReason(output string, err error) string {
	switch {
	case strings.Contains(output, "executable file not found"):
		return "there is no C compiler (gcc or clang)"
	case strings.Contains(output, "not supported on"):
		return "it does not exist for " + runtime.GOOS + "/" + runtime.GOARCH
	}
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			return "it does not build here: " + line
		}
	}
	return "it does not build here: " + err.Error()
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// function is one function of a test file and the package it stands in.
type function struct {
	pkg  string // "./adapters/jsonrpc"
	name string // "FuzzMessage"
}

// functions finds the functions of test files that match and compile on this
// machine. It reads the sources instead of asking go test -list, which would
// link every test binary of the module.
func functions(fsys fs.FS, match func(*ast.FuncDecl) bool) ([]function, error) {
	var found []function
	here := build.Default
	here.OpenFile = func(name string) (io.ReadCloser, error) { return fsys.Open(filepath.ToSlash(name)) }
	here.JoinPath = path.Join
	err := walkGo(fsys, func(name string) error {
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		if ok, err := here.MatchFile(path.Dir(name), path.Base(name)); err != nil || !ok {
			return err
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && match(fn) {
				found = append(found, function{pkg: "./" + path.Dir(name), name: fn.Name.Name})
			}
		}
		return nil
	})
	return found, err
}

// isFuzz reports whether fn is func FuzzXxx(f *testing.F).
func isFuzz(fn *ast.FuncDecl) bool {
	if fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Fuzz") || len(fn.Type.Params.List) != 1 {
		return false
	}
	star, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "F"
}
