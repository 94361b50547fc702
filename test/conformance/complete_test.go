package conformance

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// areas says how many requirements the kit has for version 1 in each area;
// must says which lines of the checklist bind an agent. Both are counted by
// hand, so that a line lost from requirements_test.go is missed.
const (
	areas = `TRANSPORT 2 JSONRPC 5 INIT 4 SCHEMA 2 SESSION 2 PROMPT 3 PROMPTCAP 3 CANCEL 2 LOAD 3 RESUME 2 LIST 2 DELETE 2
		CLOSE 2 ADDDIRS 1 MODES 2 CONFIG 3 AUTH 5 CLIENTCAP 3 EXT 1 META 1 ERROR 1 SHUTDOWN 1 STDERR 1
		INFO-PARSE 1 INFO-INVALIDREQ 1 INFO-UNKNOWNSESSION 1`
	must = `1-14 18-20 23-28 30-32 36-38 40 44-51 53-54 58-60 65 68 70-73 82-85 90 95 98-100 102-104 106-108
		113-114 116-118 123-127 129-132 134-135 137-140 142-143 145-147 149-150 152-153 155-160`
)

// exactly the numbers of must that are no musts.
var notMust = []string{"052"}

func TestEveryRequirementIsListed(t *testing.T) {
	var want, got []string
	words := strings.Fields(areas)
	for i := 0; i < len(words); i += 2 {
		n, err := strconv.Atoi(words[i+1])
		if err != nil {
			t.Fatal(err)
		}
		for k := range n {
			want = append(want, fmt.Sprintf("ACP-%s-%03d", words[i], k+1))
		}
	}
	for _, span := range strings.Fields(must) {
		first, last, ok := strings.Cut(span, "-")
		if !ok {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, err := strconv.Atoi(last)
		if err != nil || from == 0 || to < from {
			t.Fatalf("span %q", span)
		}
		for n := from; n <= to; n++ {
			if id := fmt.Sprintf("%03d", n); !slices.Contains(notMust, id) {
				want = append(want, id)
			}
		}
	}
	for _, r := range slices.Concat(kit(), checklist()) {
		got = append(got, r.id)
		if r.text == "" || !strings.HasSuffix(r.text, ".") {
			t.Errorf("%s is not put into words", r.id)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	for _, id := range want {
		if !slices.Contains(got, id) {
			t.Errorf("%s is not listed", id)
		}
	}
	if !slices.Equal(got, slices.Compact(slices.Clone(got))) || len(got) != len(want) {
		t.Errorf("%d are listed, want %d, each once", len(got), len(want))
	}
}

// proof is a test of a requirement and the cases of test/acceptance it plays.
type proof struct {
	name  string
	cases []string
}

var testName = regexp.MustCompile(`^Test(?:TCK_(ACP_[A-Z]+(?:_[A-Z]+)?_\d{3})|Checklist_(\d{3})_[a-z0-9_]+)$`)

// proofs reads the tests of this package, by the id they are named by.
func proofs(t *testing.T) map[string]proof {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]proof{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(fn.Name.Name, "TestTCK_") && !strings.HasPrefix(fn.Name.Name, "TestChecklist_") {
				continue
			}
			m := testName.FindStringSubmatch(fn.Name.Name)
			if m == nil {
				t.Errorf("%s is named by no id", fn.Name.Name)
				continue
			}
			id := strings.ReplaceAll(m[1], "_", "-") + m[2]
			if found[id].name != "" {
				t.Errorf("%s has two tests", id)
			}
			found[id] = proof{fn.Name.Name, played(fn)}
		}
	}
	return found
}

// played finds the cases a test plays.
func played(fn *ast.FuncDecl) []string {
	var cases []string
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "playFile" {
			if lit, ok := call.Args[1].(*ast.BasicLit); ok {
				if name, err := strconv.Unquote(lit.Value); err == nil {
					cases = append(cases, name)
				}
			}
		}
		return true
	})
	return cases
}

func TestEveryRequirementHasATest(t *testing.T) {
	tests, waiting := proofs(t), waits()
	for _, r := range slices.Concat(kit(), checklist()) {
		if tests[r.id].name == "" {
			t.Errorf("%s has no test: %s", r.id, r.text)
		}
		delete(tests, r.id)
		delete(waiting, r.id)
	}
	for id, p := range tests {
		t.Errorf("%s tests %s, which is not listed", p.name, id)
	}
	for id := range waiting {
		t.Errorf("%s waits, but is not listed", id)
	}
}

// page is where the results are shown.
var page = filepath.Join("..", "..", "docs", "conformance.md")

// TestPage keeps docs/conformance.md in step; -update writes it.
func TestPage(t *testing.T) {
	want := render(t)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(got), "\r\n", "\n") != want {
		t.Error("docs/conformance.md is not in step; go test ./test/conformance -run TestPage -update writes it")
	}
}

func render(t *testing.T) string {
	t.Helper()
	tests, waiting := proofs(t), waits()
	var b strings.Builder
	total := len(kit()) + len(checklist())
	fmt.Fprintf(&b, `# Conformance

What the Agent Client Protocol, version 1, demands of an agent, and the test that
shows it. Each test starts the built binary and speaks to it over standard input
and output: `+"`go test ./test/conformance`"+`. A model that panics, prints or talks on
after a cancel needs a program of its own around the same assembly.

Of %d demands %d hold. The other %d wait for what this version does not offer, or not
wholly, each with its reason; their tests prove what is true instead, mostly that the
thing is neither advertised nor there, and fail when it comes.

Every frame of every test is held against the protocol's shapes as well, and, with
`+"`BERTH_ACP_SCHEMA`"+` set to the path of the published `+"`schema.json`"+`, against that.
Both lists are about the acp dialect; [protocol.md](protocol.md) tells of the other.

This page is generated: `+"`go test ./test/conformance -run TestPage -update`"+`.
`, total, total-len(waiting), len(waiting))
	table := func(title, about, column string, list []requirement) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| %s | demand | test | result |\n|---|---|---|---|\n", title, about, column)
		for _, r := range list {
			p, result := tests[r.id], "holds"
			if why := waiting[r.id]; why != "" {
				result = "waits: " + why
			}
			name := "`" + p.name + "`"
			if len(p.cases) > 0 {
				name += "; plays " + strings.Join(p.cases, ", ")
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.id, strings.ReplaceAll(r.text, "|", "\\|"), name, result)
		}
	}
	table("The official test kit", `The requirements of the protocol's own test kit by its ids, in our words. The kit only
records what happens in the last four; what is said there is what we hold ourselves to.`, "id", kit())
	table("The checklist", `Everything else the specification says an agent must do. The numbers are those of a
longer list that also has what is recommended only. "Plays" names conversations of
`+"`test/acceptance/testdata`"+` that are part of the test.`, "no.", checklist())
	return b.String()
}

// TestWaitsAreReal demands that each reason is one of a feature that the
// binary does not advertise, so that a reason cannot outlive the feature.
func TestWaitsAreReal(t *testing.T) {
	t.Parallel()
	o := scene{script: session}.play(t)
	can := o.capabilities(t)
	advertised := map[string]bool{
		"images": in(can, "promptCapabilities", "image") == true,
		"audio":  in(can, "promptCapabilities", "audio") == true,
		"fork":   in(can, "sessionCapabilities", "fork") != nil,
		"modes":  find(o.result(t, "session/new"), "modes") != nil,
		"config": find(o.result(t, "session/new"), "configOptions") != nil,
		"HTTP":   in(can, "mcpCapabilities", "http") == true,
	}
	reasons := strings.Join(slices.Sorted(maps.Values(waits())), "\n")
	for word, offered := range advertised {
		if strings.Contains(reasons, word) == offered {
			t.Errorf("%s: advertised %v, but the reasons say otherwise", word, offered)
		}
	}
}
