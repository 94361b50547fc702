package main

import (
	"slices"
	"strings"
	"testing"
)

// stream joins events the way go test -json writes them.
func stream(events ...string) string { return strings.Join(events, "\n") + "\n" }

func TestReport(t *testing.T) {
	tests := []struct {
		name   string
		in     string
		want   []string // in this order
		absent []string
		counts counts
		left   []skip
		design []string // names
		broken []skip
	}{
		{
			name: "a passing package is one line",
			in: stream(
				`{"Action":"start","Package":"m/a"}`,
				`{"Action":"run","Package":"m/a","Test":"TestOne"}`,
				`{"Action":"output","Package":"m/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestOne","Output":"    a_test.go:1: noise\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestOne","Output":"--- PASS: TestOne (0.00s)\n"}`,
				`{"Action":"pass","Package":"m/a","Test":"TestOne"}`,
				`{"Action":"output","Package":"m/a","Output":"PASS\n"}`,
				`{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.01s\n"}`,
				`{"Action":"pass","Package":"m/a"}`,
			),
			want:   []string{"ok  \tm/a\t0.01s"},
			absent: []string{"noise", "PASS", "RUN"},
			counts: counts{passed: 1},
		},
		{
			name: "a failing test says all it said",
			in: stream(
				`{"Action":"run","Package":"m/a","Test":"TestOne"}`,
				`{"Action":"output","Package":"m/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestOne","Output":"    a_test.go:1: got 1\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestOne","Output":"--- FAIL: TestOne (0.00s)\n"}`,
				`{"Action":"fail","Package":"m/a","Test":"TestOne"}`,
				`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.01s\n"}`,
				`{"Action":"fail","Package":"m/a"}`,
			),
			want:   []string{"a_test.go:1: got 1", "--- FAIL: TestOne", "FAIL\tm/a\t0.01s"},
			absent: []string{"=== RUN"},
			counts: counts{failed: 1},
		},
		{
			name: "a test that was running when the binary died is a failure",
			in: stream(
				`{"Action":"run","Package":"m/a","Test":"TestHang"}`,
				`{"Action":"output","Package":"m/a","Test":"TestHang","Output":"panic: test timed out\n"}`,
				`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t9s\n"}`,
				`{"Action":"fail","Package":"m/a"}`,
			),
			want:   []string{"FAIL\tm/a\t9s", "m/a.TestHang did not end", "panic: test timed out"},
			counts: counts{failed: 1},
		},
		{
			name: "a skip is told with its reason",
			in: stream(
				`{"Action":"run","Package":"m/a","Test":"TestPg"}`,
				`{"Action":"output","Package":"m/a","Test":"TestPg","Output":"=== RUN   TestPg\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestPg","Output":"    a_test.go:7: no server\n"}`,
				`{"Action":"output","Package":"m/a","Test":"TestPg","Output":"--- SKIP: TestPg (0.00s)\n"}`,
				`{"Action":"skip","Package":"m/a","Test":"TestPg"}`,
			),
			counts: counts{skipped: 1},
			left:   []skip{{"m/a.TestPg", "a_test.go:7: no server"}},
		},
		{
			name: "a skip by design is not left out",
			in: stream(
				`{"Action":"run","Package":"m/adapters/memory","Test":"TestStore/reopen"}`,
				`{"Action":"skip","Package":"m/adapters/memory","Test":"TestStore/reopen"}`,
			),
			counts: counts{byDesign: 1},
			design: []string{"m/adapters/memory.TestStore/reopen"},
		},
		{
			name: "what does not compile is shown",
			in: stream(
				`{"ImportPath":"m/a","Action":"build-output","Output":"a.go:1: undefined: x\n"}`,
				`{"ImportPath":"m/a","Action":"build-fail"}`,
				`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a [build failed]\n"}`,
				`{"Action":"fail","Package":"m/a"}`,
			),
			want:   []string{"a.go:1: undefined: x", "FAIL\tm/a [build failed]"},
			counts: counts{broken: 1},
			broken: []skip{{"m/a", "it did not build"}},
		},
		{
			name: "what does not build is known by its mark alone",
			in: stream(
				`{"Action":"start","Package":"m/a"}`,
				`{"Action":"fail","Package":"m/a","Elapsed":0,"FailedBuild":"m/b"}`,
			),
			counts: counts{broken: 1},
			broken: []skip{{"m/a", "it did not build"}},
		},
		{
			name: "what imports nothing that exists does not build",
			in: stream(
				`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a [setup failed]\n"}`,
				`{"Action":"fail","Package":"m/a"}`,
			),
			want:   []string{"[setup failed]"},
			counts: counts{broken: 1},
			broken: []skip{{"m/a", "it did not build"}},
		},
		{
			name: "a binary that dies before or after its tests",
			in: stream(
				`{"Action":"run","Package":"m/a","Test":"TestOne"}`,
				`{"Action":"pass","Package":"m/a","Test":"TestOne"}`,
				`{"Action":"output","Package":"m/a","Output":"exit status 3\n"}`,
				`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t0.01s\n"}`,
				`{"Action":"fail","Package":"m/a"}`,
			),
			want:   []string{"exit status 3"},
			counts: counts{passed: 1, broken: 1},
			broken: []skip{{"m/a", "its test binary failed outside of any test: exit status 3"}},
		},
		{
			name: "what is no event is passed on",
			in:   "warning: something\n{\"other\":1}\nlast line without end",
			want: []string{"warning: something", `{"other":1}`, "last line without end"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			// Three bytes at a time: a pipe cuts lines anywhere.
			for in := test.in; in != ""; {
				n := min(3, len(in))
				if _, err := r.Write([]byte(in[:n])); err != nil {
					t.Fatal(err)
				}
				in = in[n:]
			}
			r.Close()
			rest := out.String()
			for _, want := range test.want {
				_, after, ok := strings.Cut(rest, want)
				if !ok {
					t.Fatalf("output %q lacks %q", out.String(), want)
				}
				rest = after
			}
			for _, absent := range test.absent {
				if strings.Contains(out.String(), absent) {
					t.Errorf("output %q holds %q", out.String(), absent)
				}
			}
			if r.counts != test.counts {
				t.Errorf("counts %+v, want %+v", r.counts, test.counts)
			}
			if len(r.skipped) != len(test.left) || (len(test.left) > 0 && r.skipped[0] != test.left[0]) {
				t.Errorf("left out %v, want %v", r.skipped, test.left)
			}
			if !slices.Equal(r.broken, test.broken) {
				t.Errorf("broken %v, want %v", r.broken, test.broken)
			}
			var design []string
			for _, s := range r.design {
				design = append(design, s.what)
			}
			if !slices.Equal(design, test.design) {
				t.Errorf("by design %v, want %v", design, test.design)
			}
		})
	}
}
