package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// fmtStage demands that gofmt has nothing to say.
func (r *runner) fmtStage(ctx context.Context) ([]skip, error) {
	files, err := r.goFiles()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd := r.command(ctx, "gofmt", append([]string{"-l"}, files...)...)
	cmd.Stdout = &out
	if err := r.exec(cmd); err != nil {
		return nil, err
	}
	if out.Len() > 0 {
		return nil, fmt.Errorf("not formatted, run make fmt: %s", strings.Join(strings.Fields(out.String()), " "))
	}
	return nil, nil
}

// tidyStage demands that go.mod and go.sum say what the code needs.
func (r *runner) tidyStage(ctx context.Context) ([]skip, error) {
	return nil, r.exec(r.command(ctx, "go", "mod", "tidy", "-diff"))
}

func (r *runner) vetStage(ctx context.Context) ([]skip, error) {
	return nil, r.exec(r.command(ctx, "go", append([]string{"vet"}, r.opts.packages...)...))
}

// lintStage runs golangci-lint where it is installed; building it would take
// longer than all tests together.
func (r *runner) lintStage(ctx context.Context) ([]skip, error) {
	if _, err := exec.LookPath("golangci-lint"); err != nil {
		return []skip{{"lint", "golangci-lint is not installed"}}, nil
	}
	return nil, r.exec(r.command(ctx, "golangci-lint", "run"))
}

// testStage runs go test, with the race detector where that can be built.
func (r *runner) testStage(ctx context.Context) ([]skip, error) {
	// go test gives a package ten minutes, which the acceptance tests may need
	// with the race detector on a machine that has other work.
	args := []string{"test", "-json", "-timeout", "20m"}
	env := os.Environ()
	var skipped []skip
	if why := raceUnavailable(ctx); why == "" {
		args = append(args, "-race")
		env = append(env, "CGO_ENABLED=1")
	} else {
		skipped = append(skipped, skip{"the race detector", why})
	}
	if r.opts.short {
		args = append(args, "-short")
	}
	cmd := r.command(ctx, "go", append(args, r.opts.packages...)...)
	cmd.Env = env
	report := newReport(r.out)
	cmd.Stdout = report
	err := r.exec(cmd)
	report.Close()
	r.counts, r.design, r.broken = report.counts, report.design, report.broken
	skipped = append(skipped, report.skipped...)
	if err == nil && r.counts.passed == 0 {
		err = errors.New("go test ran no test")
	}
	if slices.Contains(args, "-race") {
		err = errors.Join(err, r.plain(ctx))
	}
	return skipped, err
}

// plain runs the tests that cannot do with the race detector: those that count
// allocations, for it makes some of its own, and those that say so by calling
// withoutRace.
func (r *runner) plain(ctx context.Context) error {
	found, err := functions(os.DirFS(r.root), func(fn *ast.FuncDecl) bool {
		return strings.HasPrefix(fn.Name.Name, "Test") && (strings.HasSuffix(fn.Name.Name, "_Allocations") || callsWithoutRace(fn))
	})
	if err != nil || len(found) == 0 {
		return err
	}
	var names, packages []string
	for _, f := range found {
		names = append(names, f.name)
		if !slices.Contains(packages, f.pkg) {
			packages = append(packages, f.pkg)
		}
	}
	return r.exec(r.command(ctx, "go", append([]string{"test", "-run", "^(" + strings.Join(names, "|") + ")$"}, packages...)...))
}

// callsWithoutRace reports whether a test begins by saying that it cannot do
// with the race detector.
func callsWithoutRace(fn *ast.FuncDecl) bool {
	if fn.Body == nil || len(fn.Body.List) == 0 {
		return false
	}
	stmt, ok := fn.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := stmt.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.Ident)
	return ok && name.Name == "withoutRace"
}

// interopStage drives the built binary with other people's clients.
func (r *runner) interopStage(ctx context.Context) ([]skip, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return []skip{{"interop", tool + " is not installed"}}, nil
		}
	}
	dir := filepath.Join(r.root, "test", "interop")
	if err := r.npmInstall(ctx, dir); err != nil {
		return []skip{{"interop", firstLine(err.Error())}}, nil
	}
	var skipped []skip
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" { // the one platform the engine is pinned for
		if err := r.npmInstall(ctx, filepath.Join(dir, "engine"), "--ignore-scripts", "--omit=optional"); err != nil {
			skipped = append(skipped, skip{"turns through llama.cpp", firstLine(err.Error())})
		}
	}
	// Of the providers' clients only those without much behind them.
	if err := r.npmInstall(ctx, filepath.Join(dir, "vendors"), "--ignore-scripts", "--omit=optional"); err != nil {
		skipped = append(skipped, skip{"the providers' own clients", firstLine(err.Error())})
	}
	bin, err := os.MkdirTemp("", "berth-interop-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	berth := filepath.Join(bin, "berth"+exeSuffix())
	if err := r.exec(r.command(ctx, "go", "build", "-o", berth, "./cmd/berth")); err != nil {
		return nil, err
	}
	cmd := r.command(ctx, "npm", "test", "--silent")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "BERTH_BIN="+berth)
	return skipped, r.exec(cmd)
}

// consoleStage tests what of the web console needs no browser.
func (r *runner) consoleStage(ctx context.Context) ([]skip, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return []skip{{"console", "node is not installed"}}, nil
	}
	cmd := r.command(ctx, "node", "--test", "logic.test.mjs")
	cmd.Dir = filepath.Join(r.root, "test", "console")
	return nil, r.exec(cmd)
}

// browserStage drives the console of the built binary in a headless browser.
func (r *runner) browserStage(ctx context.Context) ([]skip, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return []skip{{"browser", tool + " is not installed"}}, nil
		}
	}
	chromium := os.Getenv("CHROMIUM")
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && chromium == "" {
			chromium = path
		}
	}
	if chromium == "" {
		return []skip{{"browser", "no Chromium is installed, nor named in CHROMIUM"}}, nil
	}
	dir := filepath.Join(r.root, "test", "console")
	if err := r.npmInstall(ctx, dir); err != nil {
		return []skip{{"browser", firstLine(err.Error())}}, nil
	}
	bin, err := os.MkdirTemp("", "berth-browser-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	berth := filepath.Join(bin, "berth"+exeSuffix())
	if err := r.exec(r.command(ctx, "go", "build", "-o", berth, "./cmd/berth")); err != nil {
		return nil, err
	}
	cmd := r.command(ctx, "node", "run.mjs")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "BERTH_BIN="+berth, "CHROMIUM="+chromium)
	return nil, r.exec(cmd)
}

// npmInstall installs exactly what the lock file names. A copy of the lock
// file left in node_modules tells that this was done before.
func (r *runner) npmInstall(ctx context.Context, dir string, more ...string) error {
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	stamp := filepath.Join(dir, "node_modules", ".installed-lock.json")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, lock) {
		return nil
	}
	cmd := r.command(ctx, "npm", append([]string{"ci", "--no-audit", "--no-fund"}, more...)...)
	cmd.Dir = dir
	cmd.Stdout = r.err
	if err := r.exec(cmd); err != nil {
		return err
	}
	return os.WriteFile(stamp, lock, 0o644)
}

// crossStage compiles the code and its tests for the other systems.
func (r *runner) crossStage(ctx context.Context) ([]skip, error) {
	var all error
	for _, target := range []string{"linux", "darwin", "windows"} {
		if target == runtime.GOOS {
			continue
		}
		for _, verb := range []string{"build", "vet"} {
			cmd := r.command(ctx, "go", append([]string{verb}, r.opts.packages...)...)
			cmd.Env = append(os.Environ(), "GOOS="+target, "CGO_ENABLED=0")
			if err := r.exec(cmd); err != nil {
				all = errors.Join(all, fmt.Errorf("GOOS=%s: %w", target, err))
			}
		}
	}
	return nil, all
}

// fuzzStage runs every fuzz target for a moment.
func (r *runner) fuzzStage(ctx context.Context) ([]skip, error) {
	targets, err := functions(os.DirFS(r.root), isFuzz)
	if err != nil {
		return nil, err
	}
	if len(targets) == 0 {
		return []skip{{"fuzz", "there is no fuzz target"}}, nil
	}
	each := min(r.opts.fuzzTime, r.opts.fuzzMax/time.Duration(len(targets)))
	var all error
	for _, t := range targets {
		fmt.Fprintf(r.out, "%s %s for %s\n", t.pkg, t.name, each.Round(time.Millisecond))
		err := r.exec(r.command(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", each.String(), t.pkg))
		all = errors.Join(all, err)
	}
	return nil, all
}

// goFiles lists the Go files of the repository, testdata apart.
func (r *runner) goFiles() ([]string, error) {
	var files []string
	err := walkGo(os.DirFS(r.root), func(path string) error {
		files = append(files, filepath.FromSlash(path))
		return nil
	})
	return files, err
}

// walkGo calls fn for every Go file below fsys that belongs to the module.
func walkGo(fsys fs.FS, fn func(path string) error) error {
	return fs.WalkDir(fsys, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if path != "." && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			return fn(path)
		}
		return nil
	})
}
