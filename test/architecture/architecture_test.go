package architecture

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// here loads the repository this test stands in.
func here(t *testing.T) (*tree, string) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	tr.exceptions = allowed()
	return tr, root
}

func TestRules(t *testing.T) {
	tr, _ := here(t)
	if len(tr.packages) < 5 {
		t.Fatalf("found %d packages; the rules would prove nothing", len(tr.packages))
	}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			bad := r.check(tr)
			for _, v := range bad {
				t.Error(v)
			}
			if len(bad) > 0 {
				t.Logf("rule %s: %s", r.name, r.reason)
			}
		})
	}
}

// TestStartup keeps packages that cost time or memory by being imported out
// of the programs that people start.
func TestStartup(t *testing.T) {
	tr, root := here(t)
	var programs []string
	for _, p := range tr.packages {
		if within(p.dir, "cmd") && p.files[0].ast.Name.Name == "main" {
			programs = append(programs, p.dir)
		}
	}
	if !slices.Contains(programs, "cmd/berth") {
		t.Fatalf("programs %v, want cmd/berth among them", programs)
	}
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./"+program)
			cmd.Dir, cmd.Stderr = root, &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("go list: %v\n%s", err, &stderr)
			}
			deps := strings.Fields(string(out))
			t.Logf("%s is made of %d packages", program, len(deps))
			for _, v := range deniedAtStart(deps) {
				t.Error(v)
			}
		})
	}
}

// TestSizes reports what has grown; a long file is a question, not a fault.
func TestSizes(t *testing.T) {
	tr, _ := here(t)
	const longFile, longFunc = 300, 60
	tr.code(func(_ *sources, f *file) {
		lines := tr.fset.File(f.ast.Pos()).LineCount()
		if lines > longFile {
			t.Logf("%s has %d lines", f.path, lines)
		}
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			if n := tr.fset.Position(fn.End()).Line - tr.fset.Position(fn.Pos()).Line + 1; n > longFunc {
				t.Logf("%s: %s has %d lines", tr.at(fn.Pos()), fn.Name.Name, n)
			}
		}
	}, "core", "adapters", "bootstrap", "cmd")
}

// TestNoPlaceOfThisMachine finds text that names where this checkout, this
// toolchain or this machine's package registries happen to be.
func TestNoPlaceOfThisMachine(t *testing.T) {
	_, root := here(t)
	places := machinePlaces(t.Context(), root)
	if len(places) == 0 {
		t.Fatal("not even the checkout's own directory was found")
	}
	bad, err := naming(os.DirFS(root), places)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range bad {
		t.Error(v)
	}
}

// machinePlaces returns strings that mean something on this machine only.
func machinePlaces(ctx context.Context, root string) []string {
	var places []string
	add := func(p string) {
		// A short or shared path such as /tmp says nothing about a machine.
		common := []string{"", "/", "/tmp", "/home", "/root", "/usr", "/usr/local", "/var", "/var/tmp", "/opt", "/srv", "/src", "/mnt", "/usr/local/go", "/usr/lib/go"}
		p = filepath.ToSlash(filepath.Clean(p))
		if filepath.IsAbs(p) && !slices.Contains(common, p) {
			places = append(places, p+"/")
		}
	}
	add(root)
	add(filepath.Dir(root))
	env, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB").Output()
	if err != nil {
		return places
	}
	lines := strings.Split(strings.TrimSpace(string(env)), "\n")
	for i, line := range lines {
		if i < 3 {
			add(line)
		} else {
			places = append(places, hosts(line)...)
		}
	}
	if npm, err := exec.CommandContext(ctx, "npm", "config", "get", "registry").Output(); err == nil {
		places = append(places, hosts(strings.TrimSpace(string(npm)))...)
	}
	return places
}

// hosts returns the host names in a comma- or bar-separated list of URLs.
func hosts(list string) []string {
	var out []string
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		if u, err := url.Parse(item); err == nil && strings.Contains(u.Hostname(), ".") {
			out = append(out, u.Hostname())
		} else if !strings.Contains(item, "://") && strings.Contains(item, ".") {
			out = append(out, item)
		}
	}
	return out
}

// deniedAtStart returns the packages of a program that it must not be made of.
func deniedAtStart(deps []string) []violation {
	denied := []struct{ prefix, why string }{
		{"github.com/santhosh-tekuri/jsonschema", "6.5 ms and 1.7 MB at every start"},
		{"github.com/mark3labs/mcp-go", "pulls a schema compiler into every start"},
		{"github.com/alecthomas/chroma", "18 ms at every start"},
		{"charm.land/glamour", "pulls chroma in"},
		{"github.com/charmbracelet/glamour", "pulls chroma in"},
		{"charm.land/catwalk", "10 ms at its first call"},
		{"charm.land/fantasy", "40 MB of providers"},
		{"google.golang.org/genai", "4.4 ms at every start"},
		{"google.golang.org/grpc", "weight nobody asked for"},
		{"github.com/bytedance/sonic", "compiles at its first marshal"},
		{"filippo.io/age", "scrypt takes 1.4 s by design"},
		{"github.com/coder/acp-go-sdk", "a peer for tests"},
		{"github.com/google/go-cmp", "for tests"},
		{"go.uber.org/goleak", "for tests"},
		{"testing", "for tests"},
		{"github.com/berth-dev/berth/core/ports/porttest", "for tests"},
		{"github.com/berth-dev/berth/adapters/llm/llmtest", "for tests"},
		{"net/http/pprof", "registers itself with the default server"},
		{"expvar", "registers itself with the default server"},
	}
	var bad []violation
	for _, dep := range deps {
		for _, d := range denied {
			if within(dep, d.prefix) {
				bad = append(bad, violation{dep, fmt.Sprintf("must not be part of the program: %s", d.why)})
			}
		}
	}
	return bad
}
