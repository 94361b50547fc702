package architecture

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// sound is a small module in which every rule holds.
func sound() map[string]string {
	return map[string]string{
		"go.mod":    "module example.com/m\n\ngo 1.26\n",
		"README.md": "# M\n\nSee `core/ports`, `core/ports.Store`, [the main](cmd/berth/main.go) and [below](#the-end).\n\n## The end\n",
		"core/domain/domain.go": `// Package domain holds the words.
package domain

import "strings"

// Thing is a thing.
type Thing struct{ Name string }

// ErrNone says that there is none.
var ErrNone = &Error{"none"}

// Error is an error.
type Error struct{ text string }

// Error returns the text.
func (e *Error) Error() string { return strings.TrimSpace(e.text) }
`,
		"core/ports/doc.go": `// Package ports declares what the core needs.
//
//	port   consumer           suite           adapters
//	Store  services/sessions  porttest.Store  memory
package ports

import "example.com/m/core/domain"

// Store keeps things.
type Store interface {
	Load(string) (domain.Thing, error)
}
`,
		"core/ports/porttest/store.go": `// Package porttest holds the suites.
package porttest

import (
	"testing"

	"example.com/m/core/ports"
)

// Store is the suite.
func Store(t *testing.T, s ports.Store) {}
`,
		"core/services/sessions/service.go": `// Package sessions is a service.
package sessions

import "example.com/m/core/ports"

// Service serves.
type Service struct{ store ports.Store }

var names = map[string]int{"one": 1}

// One returns one.
func One() int { return names["one"] }
`,
		"core/services/turns/turns.go": `// Package turns runs turns.
package turns

// Run runs.
func Run(f func()) { go f() }
`,
		"adapters/memory/memory.go": `// Package memory is an adapter.
package memory

import (
	"example.com/m/core/domain"
	"example.com/m/core/ports"
)

// Store keeps things in memory.
type Store struct{}

var _ ports.Store = (*Store)(nil)

// Load returns nothing.
func (*Store) Load(string) (domain.Thing, error) { return domain.Thing{}, domain.ErrNone }
`,
		"adapters/memory/memory_test.go": `package memory

import (
	"testing"

	"example.com/m/core/ports/porttest"
)

func TestStore(t *testing.T) { porttest.Store(t, &Store{}) }
`,
		"bootstrap/app.go": `// Package bootstrap puts things together.
package bootstrap

import (
	"go.uber.org/fx"

	"example.com/m/adapters/memory"
)

// New makes the app.
func New() (fx.Option, *memory.Store) { return nil, nil }
`,
		"cmd/berth/main.go": `// Command berth is the program.
package main

import "example.com/m/bootstrap"

func main() { bootstrap.New() }
`,
	}
}

func parsed(t *testing.T, files map[string]string, ex exceptions) *tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tr, err := load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	tr.exceptions = ex
	return tr
}

func TestRulesHoldOnASoundTree(t *testing.T) {
	tr := parsed(t, sound(), exceptions{})
	for _, r := range rules() {
		for _, v := range r.check(tr) {
			t.Errorf("%s: %s", r.name, v)
		}
	}
}

// mutant breaks one rule.
type mutant struct {
	rule  string
	name  string
	files map[string]string // added to the sound tree, or in place of its own
	cut   string            // file to remove
	ex    exceptions
	want  string // part of the violation
}

// one makes a package of one file with the given body.
func one(file, body string) map[string]string {
	dir := strings.Split(file, "/")
	pkg := dir[len(dir)-2]
	return map[string]string{file: "// Package " + pkg + " is broken.\npackage " + pkg + "\n\n" + body}
}

func mutants() []mutant {
	return []mutant{
		{rule: "imports", name: "the domain reads files", files: one("core/domain/x.go", "import _ \"os\"\n"), want: "core/domain imports os"},
		{rule: "imports", name: "the domain knows contexts", files: one("core/domain/x.go", "import _ \"context\"\n"), want: "core/domain imports context"},
		{rule: "imports", name: "a port knows an adapter", files: one("core/ports/x.go", "import _ \"example.com/m/adapters/memory\"\n"), want: "core/ports imports adapters/memory"},
		{rule: "imports", name: "a service knows an adapter", files: one("core/services/sessions/x.go", "import _ \"example.com/m/adapters/memory\"\n"), want: "imports adapters/memory"},
		{rule: "imports", name: "a service knows another", files: one("core/services/sessions/x.go", "import _ \"example.com/m/core/services/turns\"\n"), want: "imports core/services/turns"},
		{rule: "imports", name: "a service serves HTTP", files: one("core/services/sessions/x.go", "import _ \"net/http\"\n"), want: "does not know it is remote"},
		{rule: "imports", name: "a service reads JSON", files: one("core/services/sessions/x.go", "import _ \"encoding/json\"\n"), want: "JSON lives in the adapters"},
		{rule: "imports", name: "an adapter knows a service", files: one("adapters/memory/x.go", "import _ \"example.com/m/core/services/sessions\"\n"), want: "imports core/services/sessions"},
		{rule: "imports", name: "an adapter knows another", files: one("adapters/observe/x.go", "import _ \"example.com/m/adapters/memory\"\n"), want: "imports adapters/memory"},
		{rule: "imports", name: "siblings of one family know each other", files: one("adapters/llm/openai/x.go", "import _ \"example.com/m/adapters/llm/scripted\"\n"), want: "imports adapters/llm/scripted"},
		{rule: "imports", name: "an adapter knows bootstrap", files: one("adapters/memory/x.go", "import _ \"example.com/m/bootstrap\"\n"), want: "imports bootstrap"},
		{rule: "imports", name: "a command knows a service", files: one("cmd/berth/x.go", "import _ \"example.com/m/core/services/sessions\"\n"), want: "imports core/services/sessions"},
		{rule: "imports", name: "a suite is part of the program", files: one("bootstrap/x.go", "import _ \"example.com/m/core/ports/porttest\"\n"), want: "imports core/ports/porttest"},
		{rule: "imports", name: "a package outside the layout", files: one("util/x.go", "import _ \"os\"\n"), want: "in no ring"},
		{rule: "imports", name: "a test needs a command", files: one("core/domain/x_test.go", "import _ \"example.com/m/cmd/berth\"\n"), want: "a test imports a command"},
		{rule: "imports", name: "an exception nobody needs", ex: exceptions{json: map[string]string{"core/services/turns/turns.go": "once"}}, want: "not needed any more"},
		{rule: "modules", name: "fx outside bootstrap", files: one("adapters/memory/x.go", "import _ \"go.uber.org/fx\"\n"), want: "belongs to bootstrap"},
		{rule: "modules", name: "fx's children outside bootstrap", files: one("cmd/berth/x.go", "import _ \"go.uber.org/fx/fxevent\"\n"), want: "belongs to bootstrap"},
		{rule: "modules", name: "a module of the tests in the program", files: one("bootstrap/x.go", "import _ \"github.com/coder/acp-go-sdk\"\n"), want: "tests only"},
		{rule: "modules", name: "a module nobody decided on", files: one("bootstrap/x_test.go", "import _ \"github.com/other/thing\"\n"), want: "no module with a home"},
		{rule: "ports", name: "an interface without a line", files: one("core/ports/x.go", "// Extra is extra.\ntype Extra interface{ Do() }\n"), want: "Extra has no line"},
		{rule: "ports", name: "a line without an interface", files: map[string]string{"core/ports/doc.go": strings.ReplaceAll(sound()["core/ports/doc.go"], "type Store", "type Shop")}, want: "names Store, which is no interface"},
		{rule: "ports", name: "six methods", files: map[string]string{"core/ports/doc.go": strings.Replace(sound()["core/ports/doc.go"], "Load(", "A(); B(); C(); D(); E()\n\tLoad(", 1)}, want: "declares 6 methods"},
		{rule: "ports", name: "no consumer uses it", files: one("core/services/sessions/service.go", "import _ \"example.com/m/core/ports\"\n"), want: "does not use Store"},
		{rule: "ports", name: "the consumer is gone", cut: "core/services/sessions/service.go", want: "consumer core/services/sessions of Store does not exist"},
		{rule: "ports", name: "no suite", files: one("core/ports/porttest/store.go", ""), want: "suite porttest.Store of Store does not exist"},
		{rule: "ports", name: "a suite nobody runs", cut: "adapters/memory/memory_test.go", want: "no adapter runs the suite"},
		{rule: "ports", name: "no adapter", files: one("adapters/memory/memory.go", "// Store is empty.\ntype Store struct{}\n"), want: "no adapter implements Store"},
		{rule: "goroutines", name: "a go statement", files: one("adapters/memory/x.go", "func f() { go f() }\n"), want: "a go statement"},
		{rule: "goroutines", name: "a wait group's Go", files: one("core/services/sessions/x.go", "import \"sync\"\n\nfunc f() { var wg sync.WaitGroup; wg.Go(f); wg.Wait() }\n"), want: "a group's Go"},
		{rule: "goroutines", name: "a timer's function", files: one("bootstrap/x.go", "import \"time\"\n\nfunc f() { time.AfterFunc(1, f) }\n"), want: "an AfterFunc"},
		{rule: "goroutines", name: "an exception nobody needs", ex: exceptions{goroutines: map[string]string{"bootstrap/app.go": "once"}}, want: "not needed any more"},
		{rule: "goroutines", name: "an exception without a reason", files: one("adapters/memory/x.go", "func f() { go f() }\n"), ex: exceptions{goroutines: map[string]string{"adapters/memory/x.go": ""}}, want: "gives no reason"},
		{rule: "init", name: "an init function", files: one("adapters/memory/x.go", "func init() {}\n"), want: "func init"},
		{rule: "globals", name: "without a value", files: one("adapters/memory/x.go", "var count int\n"), want: "count has no value"},
		{rule: "globals", name: "assigned", files: one("adapters/memory/x.go", "var count = 1\n\nfunc f() { count = 2 }\n"), want: "count is changed"},
		{rule: "globals", name: "assigned in another file", files: map[string]string{"adapters/memory/x.go": "package memory\n\nvar count = 1\n", "adapters/memory/y.go": "package memory\n\nfunc f() { count++ }\n"}, want: "count is changed"},
		{rule: "globals", name: "an element assigned", files: one("adapters/memory/x.go", "var table = map[string]int{}\n\nfunc f() { table[\"a\"] = 1 }\n"), want: "table is changed"},
		{rule: "globals", name: "an element deleted", files: one("adapters/memory/x.go", "var table = map[string]int{}\n\nfunc f() { delete(table, \"a\") }\n"), want: "table is changed"},
		{rule: "globals", name: "its address taken", files: one("adapters/memory/x.go", "var table = []int{1}\n\nfunc f() *int { return &table[0] }\n"), want: "table is changed"},
		{rule: "globals", name: "a pointer method called", files: one("adapters/memory/x.go", "type reg struct{ n int }\n\nfunc (r *reg) add() { r.n++ }\n\nvar all = reg{}\n\nfunc f() { all.add() }\n"), want: "all is changed"},
		{rule: "globals", name: "a lock", files: one("adapters/memory/x.go", "import \"sync\"\n\nvar mu sync.Mutex\n"), want: "mu has no value"},
		{rule: "globals", name: "made by a call", files: one("adapters/memory/x.go", "import \"net/http\"\n\nvar client = http.NewServeMux()\n"), want: "client is neither"},
		{rule: "globals", name: "a pointer to something", files: one("adapters/memory/x.go", "type conf struct{ N int }\n\nvar shared = &conf{1}\n"), want: "shared is"},
		{rule: "globals", name: "another package's variable", files: one("adapters/memory/x.go", "import \"example.com/m/core/domain\"\n\nfunc f() { domain.ErrNone = nil }\n"), want: "variable of another package"},
		{rule: "globals", name: "an exception nobody needs", ex: exceptions{globals: map[string]string{"adapters/memory.x": "once"}}, want: "not needed any more"},
		{rule: "clock", name: "time of day", files: one("core/services/sessions/x.go", "import \"time\"\n\nvar _ = time.Now\n"), want: "time.Now in the core"},
		{rule: "clock", name: "time of day under another name", files: one("core/domain/x.go", "import t \"time\"\n\nvar _ = t.Since\n"), want: "time.Since in the core"},
		{rule: "clock", name: "chance", files: one("core/services/sessions/x.go", "import \"math/rand/v2\"\n\nvar _ = rand.Int\n"), want: "math/rand/v2.Int in the core"},
		{rule: "clock", name: "environment", files: one("core/services/sessions/x.go", "import \"os\"\n\nvar _ = os.Getenv\n"), want: "os.Getenv in the core"},
		{rule: "tags", name: "JSON in the domain", files: one("core/domain/x.go", "// Row is a row.\ntype Row struct {\n\tA int `json:\"a\"`\n}\n"), want: "a struct tag"},
		{rule: "stdout", name: "a print", files: one("adapters/memory/x.go", "import \"fmt\"\n\nfunc f() { fmt.Println() }\n"), want: "fmt.Println"},
		{rule: "stdout", name: "the stream itself", files: one("cmd/berth/x.go", "import \"os\"\n\nvar _ = os.Stdout\n"), want: "os.Stdout"},
		{rule: "stdout", name: "the built-in print", files: one("core/domain/x.go", "func f() { println() }\n"), want: "builtin println"},
		{rule: "stdout", name: "an exception nobody needs", ex: exceptions{stdout: map[string]string{"bootstrap/app.go": "once"}}, want: "not needed any more"},
		{rule: "docs", name: "a package without a comment", files: map[string]string{"adapters/x/x.go": "package x\n"}, want: "the package has no comment"},
		{rule: "docs", name: "a function without a comment", files: one("adapters/memory/x.go", "func Do() {}\n"), want: "Do has no comment"},
		{rule: "docs", name: "a comment that starts elsewhere", files: one("adapters/memory/x.go", "// This does it.\nfunc Do() {}\n"), want: "does not start with its name"},
		{rule: "docs", name: "a method without a comment", files: one("adapters/memory/x.go", "func (*Store) Do() {}\n"), want: "Do has no comment"},
		{rule: "docs", name: "a type without a comment", files: one("adapters/memory/x.go", "type Do int\n"), want: "Do has no comment"},
		{rule: "docs", name: "a constant without a comment", files: one("adapters/memory/x.go", "const (\n\tDo = 1\n)\n"), want: "Do has no comment"},
		{rule: "todo", name: "a note to oneself", files: one("adapters/memory/x.go", "// TO"+"DO: later\n"), want: "a comment says"},
		{rule: "links", name: "a link to nowhere", files: map[string]string{"README.md": "[x](docs/none.md)"}, want: "there is no docs/none.md"},
		{rule: "links", name: "an anchor to nowhere", files: map[string]string{"README.md": "[x](#none)"}, want: "no heading makes that anchor"},
		{rule: "links", name: "a path to nowhere", files: map[string]string{"README.md": "`core/{domain,gone}`"}, want: "there is no core/gone"},
		{rule: "links", name: "a thing of a package to nowhere", files: map[string]string{"README.md": "`core/gone.Store`"}, want: "there is no core/gone.Store"},
	}
}

// TestRulesFailOnBrokenTrees proves that every rule can fail, for the reason
// it exists for.
func TestRulesFailOnBrokenTrees(t *testing.T) {
	byName := map[string]rule{}
	for _, r := range rules() {
		byName[r.name] = r
	}
	proven := map[string]bool{}
	for _, m := range mutants() {
		t.Run(m.rule+"/"+m.name, func(t *testing.T) {
			r, ok := byName[m.rule]
			if !ok {
				t.Fatalf("there is no rule %q", m.rule)
			}
			files := sound()
			maps.Copy(files, m.files)
			delete(files, m.cut)
			bad := r.check(parsed(t, files, m.ex))
			if !slices.ContainsFunc(bad, func(v violation) bool { return strings.Contains(v.String(), m.want) }) {
				t.Errorf("violations %v, want one with %q", bad, m.want)
			}
			proven[m.rule] = true
		})
	}
	for name := range byName {
		if !proven[name] {
			t.Errorf("nobody has seen rule %q fail", name)
		}
	}
}

// TestGlobalsThatStayAsTheyAre are what the rule must leave alone.
func TestGlobalsThatStayAsTheyAre(t *testing.T) {
	tests := map[string]string{
		"a local of the same name": "var count = 1\n\nfunc f() { count := 2; count++ }\n",
		"a compiled table":         "import \"regexp\"\n\nvar word = regexp.MustCompile(`\\w`)\n",
		"an error":                 "import \"errors\"\n\nvar errNone = errors.New(\"none\")\n",
		"a proof":                  "import \"io\"\n\nvar _ io.Closer = (*Store)(nil)\n\nfunc (*Store) close() {}\n",
		"embedded files":           "import \"embed\"\n\n//go:embed *.sql\nvar files embed.FS\n",
		"a value method":           "type set []int\n\nfunc (s set) len() int { return len(s) }\n\nvar all = set{1}\n\nfunc f() int { return all.len() }\n",
		"a type's description":     "import \"reflect\"\n\nvar kind = reflect.TypeFor[int]()\n",
		"read in a loop":           "var all = []int{1}\n\nfunc f() (n int) {\n\tfor _, v := range all {\n\t\tn += v\n\t}\n\treturn n\n}\n",
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			files := sound()
			maps.Copy(files, one("adapters/memory/x.go", body))
			for _, v := range checkGlobals(parsed(t, files, exceptions{})) {
				t.Error(v)
			}
		})
	}
}

func TestDeniedAtStart(t *testing.T) {
	deps := []string{"os", "testing", "testing/synctest", "github.com/santhosh-tekuri/jsonschema/v6/kind", "example.com/testing"}
	var got []string
	for _, v := range deniedAtStart(deps) {
		got = append(got, v.where)
	}
	want := []string{"testing", "testing/synctest", "github.com/santhosh-tekuri/jsonschema/v6/kind"}
	if !slices.Equal(got, want) {
		t.Errorf("denied %v, want %v", got, want)
	}
}

func TestNaming(t *testing.T) {
	fsys := fstest.MapFS{
		"a.md":                {Data: []byte("fine\ncd /checkouts/here/x\n")},
		"b.bin":               {Data: []byte("\x00/checkouts/here/x")},
		"node_modules/p/c.md": {Data: []byte("/checkouts/here/x")},
		"lock.json":           {Data: []byte("https://proxy.example.org/p.tgz")},
	}
	places := append([]string{"/checkouts/here/"}, hosts("https://proxy.example.org/mod,direct")...)
	bad, err := naming(fsys, places)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range bad {
		got = append(got, v.where)
	}
	if want := []string{"a.md:2", "lock.json:1"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

func TestTableIsRead(t *testing.T) {
	tr := parsed(t, sound(), exceptions{})
	got := tableOf(tr.pkg("core/ports"))
	want := []row{{"Store", "services/sessions", "porttest.Store", "memory"}}
	if !slices.Equal(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
	if dirs := consumerDirs("services/turns,sessions"); !slices.Equal(dirs, []string{"core/services/turns", "core/services/sessions"}) {
		t.Errorf("consumers %v", dirs)
	}
}
