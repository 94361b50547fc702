package architecture

import (
	"fmt"
	"slices"
	"strings"
)

// ring is one part of the module and what of the module it may import. The
// first ring of the list that a directory lies in counts.
type ring struct {
	dir string
	// may lists directories; "x/" stands for x and all below it.
	may []string
	// std says which packages of the standard library are out of bounds, and
	// why; nil allows all.
	std func(importPath string) (why string)
}

// rings is the dependency rule of ARCHITECTURE.md.
func rings() []ring {
	core := []string{"core/domain", "core/ports"}
	return []ring{
		{dir: "core/domain", std: domainStd},
		{dir: "core/ports/porttest", may: core},
		{dir: "core/ports", may: []string{"core/domain"}, std: coreStd},
		{dir: "core/services/turns", may: append([]string{"core/services/permissions", "core/services/sessions"}, core...), std: coreStd},
		{dir: "core/services", may: core, std: coreStd},
		{dir: "adapters/sqlite", may: append([]string{"adapters/sqlstore"}, core...)},
		{dir: "adapters/postgres", may: append([]string{"adapters/sqlstore"}, core...)},
		{dir: "adapters/jsonrpc", may: append([]string{"adapters/jsonrpc"}, core...)},
		{dir: "adapters/llm/llmtest", may: append([]string{"adapters/llm/", "core/ports/porttest"}, core...)},
		{dir: "adapters/llm", may: append([]string{"adapters/llm"}, core...)},
		{dir: "adapters/exec/sandbox", may: append([]string{"adapters/exec/sandbox/"}, core...)},
		{dir: "adapters/exec/shellpolicy", may: append([]string{"adapters/exec/shellpolicy/"}, core...)},
		{dir: "adapters/exec", may: append([]string{"adapters/exec/"}, core...)},
		{dir: "adapters/keyring"},
		{dir: "adapters/console"},
		{dir: "adapters/ws", may: append([]string{"adapters/jsonrpc", "adapters/jsonrpc/tether"}, core...)},
		{dir: "adapters/bridge", may: append([]string{"adapters/jsonrpc", "adapters/jsonrpc/tether"}, core...)},
		{dir: "adapters/openclaw/openclawtest", may: append([]string{"adapters/jsonrpc", "adapters/ws"}, core...)},
		{dir: "adapters/openclaw", may: append([]string{"adapters/jsonrpc", "adapters/jsonrpc/acp1"}, core...)},
		{dir: "adapters/streamhttp", may: append([]string{"adapters/jsonrpc", "adapters/ws"}, core...)},
		{dir: "adapters/acpclient", may: append([]string{"adapters/jsonrpc"}, core...)},
		{dir: "adapters", may: core},
		{dir: "bootstrap", may: []string{"core/domain", "core/ports", "core/services/", "adapters/", "bootstrap/"}},
		{dir: "cmd", may: []string{
			"bootstrap/", "core/domain", "core/ports",
			"adapters/acpclient", "adapters/bridge", "adapters/ws", "adapters/jsonrpc/", "cmd/",
		}},
	}
}

// domainStd allows core/domain a short list.
func domainStd(p string) string {
	short := []string{
		"bytes", "cmp", "errors", "fmt", "iter", "maps", "math", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8",
	}
	if slices.Contains(short, p) {
		return ""
	}
	return "the domain is values and pure functions; it may use " + strings.Join(short, " ")
}

// coreStd keeps the outside world out of ports and services.
func coreStd(p string) string {
	for banned, why := range map[string]string{
		"os":            "the core reads no file and no environment",
		"io/ioutil":     "the core reads no file",
		"path/filepath": "paths are the business of the adapters that open them",
		"net":           "the core does not know it is remote",
		"syscall":       "the core knows no system",
		"database":      "SQL lives in the store adapters",
		"log":           "events are typed and go to ports.Observer",
		"math/rand":     "ids come in by constructor",
		"crypto/rand":   "ids come in by constructor",
		"encoding/json": "JSON lives in the adapters",
		"reflect":       "unions are closed and switches name their members",
		"unsafe":        "values stay values",
		"testing":       "test code stays in tests",
		"plugin":        "there are no plugins",
		"flag":          "the command line is the business of cmd",
	} {
		if within(p, banned) {
			return why
		}
	}
	return ""
}

// checkImports applies the rings to all code that is no test, and keeps the
// suites and the commands out of it.
func checkImports(t *tree) []violation {
	var bad []violation
	used := map[string]bool{}
	t.code(func(p *sources, f *file) {
		r, ok := ringOf(p.dir)
		if !ok && !within(p.dir, "test") {
			bad = append(bad, violation{p.dir, "is in no ring of the layout"})
			return
		}
		for _, spec := range f.ast.Imports {
			name := importPath(spec)
			dir, ours := t.local(name)
			switch {
			case within(p.dir, "test"):
				// Test programs stand outside the rings.
			case ours && !r.allows(dir):
				bad = append(bad, violation{t.at(spec.Pos()), fmt.Sprintf("%s imports %s; it may import %s", p.dir, dir, r.list())})
			case standard(name) && r.std != nil && r.std(name) != "":
				if name == "encoding/json" && t.exceptions.json[f.path] != "" {
					used[f.path] = true
					continue
				}
				bad = append(bad, violation{t.at(spec.Pos()), fmt.Sprintf("%s imports %s: %s", p.dir, name, r.std(name))})
			}
		}
	})
	bad = append(bad, checkTestImports(t)...)
	return append(bad, stale("imports", t.exceptions.json, used)...)
}

// checkTestImports keeps tests from leaning on the commands: whatever they
// need of those has to be reachable without a process.
func checkTestImports(t *tree) []violation {
	var bad []violation
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				dir, ours := t.local(importPath(spec))
				if f.test && ours && within(dir, "cmd") && !within(p.dir, "cmd") {
					bad = append(bad, violation{t.at(spec.Pos()), "a test imports a command"})
				}
			}
		}
	}
	return bad
}

func ringOf(dir string) (ring, bool) {
	for _, r := range rings() {
		if within(dir, r.dir) {
			return r, true
		}
	}
	return ring{}, false
}

func (r ring) allows(dir string) bool {
	for _, may := range r.may {
		below, tree := strings.CutSuffix(may, "/")
		if dir == below || tree && within(dir, below) {
			return true
		}
	}
	return false
}

func (r ring) list() string {
	if len(r.may) == 0 {
		return "nothing of the module"
	}
	return strings.Join(r.may, ", ")
}

// home says where a module may be imported. Tests and what lies below test/
// may import every module that is listed.
type home struct {
	module string
	dirs   []string // none: tests only
	reason string
}

// homes lists every module the code imports itself.
func homes() []home {
	return []home{
		{"go.uber.org/fx", []string{"bootstrap"}, "composition and nothing else"},
		{"github.com/spf13/viper", []string{"bootstrap"}, "reads configuration once, into a value"},
		{"github.com/pelletier/go-toml/v2", []string{"bootstrap"}, "positions of keys for config get and set"},
		{"github.com/google/uuid", []string{"bootstrap", "adapters/sqlite"}, "the ids behind ports.IDs, and of the process in a lease"},
		{"github.com/rs/zerolog", []string{"bootstrap", "adapters/observe"}, "log lines are one adapter's choice"},
		{"github.com/jmoiron/sqlx", []string{"adapters/sqlstore", "adapters/sqlite", "adapters/postgres"}, "SQL stores"},
		{"modernc.org/sqlite", []string{"adapters/sqlite"}, "SQLite without cgo"},
		{"github.com/aymanbagabas/go-udiff", []string{"adapters/fs"}, "diffs of edits"},
		{"mvdan.cc/sh/v3", []string{"adapters/exec/shellpolicy"}, "the grammar of the shell"},
		{"github.com/bmatcuk/doublestar/v4", []string{"adapters/fs"}, "patterns of file names"},
		{"github.com/spf13/cobra", []string{"cmd"}, "the command line"},
		{"github.com/spf13/pflag", []string{"cmd"}, "the command line"},
		{"golang.org/x/term", []string{"cmd", "bootstrap"}, "is this a terminal"},
		{"golang.org/x/sys", []string{"adapters/fs", "adapters/exec", "adapters/sqlite", "adapters/sqlstore", "bootstrap", "cmd"}, "directory handles, locks, processes"},
		{"golang.org/x/net", []string{"adapters/web"}, "tokens of HTML and the charsets of old pages"},
		{"golang.org/x/tools", []string{"adapters/jsonrpc/transcript", "cmd"}, "txtar, the form of transcripts"},
		{"github.com/gorilla/websocket", []string{"adapters/ws"}, "WebSockets, behind a transport of our own"},
		{"github.com/zalando/go-keyring", []string{"adapters/keyring"}, "the key stores of operating systems"},
		{"github.com/godbus/dbus/v5", nil, "tests: a key store on a session bus"},
		{"github.com/google/go-cmp", nil, "tests: differences one can read"},
		{"go.uber.org/goleak", nil, "tests: goroutines left behind"},
		{"github.com/coder/acp-go-sdk", nil, "tests: an independent peer"},
		{"github.com/santhosh-tekuri/jsonschema/v6", nil, "tests: 6 ms at every start if it were not"},
	}
}

// checkModules keeps every module at its home.
func checkModules(t *tree) []violation {
	var bad []violation
	for _, p := range t.packages {
		for _, f := range p.files {
			for _, spec := range f.ast.Imports {
				name := importPath(spec)
				if _, ours := t.local(name); ours || standard(name) {
					continue
				}
				if why := misplaced(name, p.dir, f.test || within(p.dir, "test")); why != "" {
					bad = append(bad, violation{t.at(spec.Pos()), why})
				}
			}
		}
	}
	return bad
}

// misplaced says what is wrong with importing name from dir.
func misplaced(name, dir string, test bool) string {
	for _, h := range homes() {
		if !within(name, h.module) {
			continue
		}
		if test || slices.ContainsFunc(h.dirs, func(d string) bool { return within(dir, d) }) {
			return ""
		}
		if len(h.dirs) == 0 {
			return fmt.Sprintf("%s is for tests only (%s)", h.module, h.reason)
		}
		return fmt.Sprintf("%s belongs to %s (%s)", h.module, strings.Join(h.dirs, ", "), h.reason)
	}
	return name + " is of no module with a home; give it one in test/architecture with a reason, and a line in ARCHITECTURE.md"
}
