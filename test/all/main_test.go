package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestSummary(t *testing.T) {
	tests := []struct {
		name   string
		strict bool
		done   []outcome
		status int
		want   string
	}{
		{"all ran", false, []outcome{{stage: "vet"}, {stage: "test"}}, 0, "everything passed"},
		{"something failed", false, []outcome{{stage: "vet", err: errors.New("bad")}, {stage: "test"}}, 1, "FAILED"},
		{
			"left out is told", false,
			[]outcome{{stage: "interop", skipped: []skip{{"interop", "node is not installed"}}}},
			0, "left out: interop: node is not installed",
		},
		{
			"left out fails when strict", true,
			[]outcome{{stage: "test", skipped: []skip{{"the race detector", "there is no C compiler"}}}},
			1, "-strict allows nothing",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			r := &runner{opts: options{strict: test.strict}, done: test.done}
			if got := r.summary(&out); got != test.status {
				t.Errorf("status %d, want %d", got, test.status)
			}
			if !strings.Contains(out.String(), test.want) {
				t.Errorf("summary %q lacks %q", out.String(), test.want)
			}
		})
	}
}

// The end of a run says where to look, whatever went wrong, and names what was
// skipped on purpose.
func TestSummary_OfTests(t *testing.T) {
	r := &runner{
		done:   []outcome{{stage: "test", err: errors.New("go test: exit status 1")}},
		counts: counts{passed: 3, byDesign: 2, broken: 2},
		design: []skip{{"m/a.TestOne/x", "nothing to prove"}, {"m/b.TestTwo", "root may do all"}, {"m/a.TestOne/y", "nothing to prove"}},
		broken: []skip{{"m/c", "it did not build"}, {"m/d", "its test binary failed outside of any test: exit status 3"}},
	}
	var out strings.Builder
	if got := r.summary(&out); got != 1 {
		t.Errorf("status %d, want 1", got)
	}
	const want = `
skipped by design:
  nothing to prove:
    m/a.TestOne/x
    m/a.TestOne/y
  root may do all:
    m/b.TestTwo
package m/c: it did not build
package m/d: its test binary failed outside of any test: exit status 3
3 passed, 0 failed, 2 skipped, and 2 packages that did not build or did not come to their end
FAILED
`
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("the summary is\n%s\nand should end in\n%s", out.String(), want)
	}
}

func TestParse(t *testing.T) {
	if _, err := parse([]string{"-stages", "vet,nonsense"}, io.Discard); err == nil {
		t.Error("an unknown stage was accepted")
	}
	o, err := parse([]string{"-strict", "-stages", "fmt, cross"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !o.strict || !slices.Equal(o.stages, []string{"fmt", "cross"}) || !slices.Equal(o.packages, []string{"./..."}) {
		t.Errorf("parsed %+v", o)
	}
}

func TestRaceReason(t *testing.T) {
	tests := []struct{ output, want string }{
		{"# runtime/cgo\ncgo: C compiler \"gcc\" not found: exec: \"gcc\": executable file not found in $PATH\n", "no C compiler"},
		{"go: -race is not supported on linux/riscv64\n", "does not exist for"},
		{"# runtime/cgo\n_cgo_export.c:3:10: fatal error: stdlib.h: No such file\n", "stdlib.h"},
		{"", "exit status 1"},
	}
	for _, test := range tests {
		if got := raceReason(test.output, errors.New("exit status 1")); !strings.Contains(got, test.want) {
			t.Errorf("raceReason(%q) = %q, want something with %q", test.output, got, test.want)
		}
	}
}

func TestFunctions(t *testing.T) {
	fuzz := "package p\n\nimport \"testing\"\n\nfunc FuzzIt(f *testing.F) {}\n\nfunc FuzzHelper(n int) {}\n\nfunc TestIt(t *testing.T) {}\n"
	tree := fstest.MapFS{
		"a/a_test.go":              {Data: []byte(fuzz)},
		"a/a_plan9_test.go":        {Data: []byte(strings.ReplaceAll(fuzz, "FuzzIt", "FuzzElsewhere"))},
		"a/a.go":                   {Data: []byte("package p\n")},
		"a/testdata/x/x_test.go":   {Data: []byte(fuzz)},
		"node_modules/p/p_test.go": {Data: []byte(fuzz)},
	}
	got, err := functions(tree, isFuzz)
	if err != nil {
		t.Fatal(err)
	}
	if want := []function{{"./a", "FuzzIt"}}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

func TestFunctions_OfThisRepository(t *testing.T) {
	root, err := moduleRoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := functions(os.DirFS(root), isFuzz); err != nil {
		t.Errorf("the sources cannot be read: %v", err)
	}
}
