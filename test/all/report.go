package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// report reads the stream of go test -json and prints what go test prints
// without it: one line a package, and everything a failed test said. On the
// way it counts, and it collects the tests that skipped themselves, which
// plain go test hides.
type report struct {
	out     io.Writer
	rest    []byte                     // the beginning of a line that is not complete yet
	open    map[string]map[string]text // output of tests that have not ended, by package and test
	counts  counts
	skipped []skip
	design  []skip            // skipped by design, each with its reason
	broken  []skip            // packages that failed without a failed test: they did not build, or their binary died
	failing map[string]bool   // packages with a failed test
	last    map[string]string // the last thing a package itself said, before its own FAIL
	unbuilt map[string]bool   // packages that go test could not build
}

// text is the output of one test.
type text []string

// counts is how many tests, with their subtests, ended in which way.
type counts struct {
	passed, failed, skipped, byDesign int
	broken                            int // packages that failed without a failed test
}

func (c counts) ran() int { return c.passed + c.failed + c.skipped + c.byDesign + c.broken }

// String gives the counts in the words that test runners share, and what
// those have no word for behind them.
func (c counts) String() string {
	s := fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped+c.byDesign)
	switch c.broken {
	case 0:
		return s
	case 1:
		return s + ", and 1 package that did not build or did not come to its end"
	}
	return fmt.Sprintf("%s, and %d packages that did not build or did not come to their end", s, c.broken)
}

// event is one line of go test -json.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	FailedBuild string // of a package that failed because something did not build
}

func newReport(out io.Writer) *report {
	return &report{
		out: out, open: map[string]map[string]text{},
		failing: map[string]bool{}, last: map[string]string{}, unbuilt: map[string]bool{},
	}
}

// Write takes the next piece of the stream. It never fails: what is no event
// is passed on as it is.
func (r *report) Write(p []byte) (int, error) {
	r.rest = append(r.rest, p...)
	for {
		line, rest, ok := bytes.Cut(r.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		r.line(line)
		r.rest = rest
	}
}

// Close passes on what is left of an incomplete line.
func (r *report) Close() {
	if len(r.rest) > 0 {
		r.line(r.rest)
		r.rest = nil
	}
}

func (r *report) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		fmt.Fprintf(r.out, "%s\n", line)
		return
	}
	if e.Action == "build-output" {
		io.WriteString(r.out, e.Output)
		return
	}
	if e.Test == "" {
		r.packageEvent(e)
		return
	}
	tests := r.open[e.Package]
	if tests == nil {
		tests = map[string]text{}
		r.open[e.Package] = tests
	}
	switch e.Action {
	case "run":
		tests[e.Test] = nil
	case "output":
		tests[e.Test] = append(tests[e.Test], e.Output)
	case "pass":
		r.counts.passed++
		delete(tests, e.Test)
	case "fail":
		r.counts.failed++
		r.failing[e.Package] = true
		r.print(tests[e.Test])
		delete(tests, e.Test)
	case "skip":
		r.skip(e, tests[e.Test])
		delete(tests, e.Test)
	}
}

// packageEvent handles what is said of a whole package.
func (r *report) packageEvent(e event) {
	switch e.Action {
	case "output":
		r.said(e.Package, strings.TrimSpace(e.Output))
		if e.Output != "PASS\n" {
			io.WriteString(r.out, e.Output)
		}
	case "fail":
		// A test that was running when the binary died has no end of its own.
		for name, said := range r.open[e.Package] {
			r.counts.failed++
			r.failing[e.Package] = true
			fmt.Fprintf(r.out, "--- FAIL: %s.%s did not end\n", e.Package, name)
			r.print(said)
		}
		delete(r.open, e.Package)
		r.packageFailed(e)
	case "pass", "skip":
		delete(r.open, e.Package)
	}
}

// said remembers what a package says of itself, apart from its tests.
func (r *report) said(pkg, line string) {
	switch {
	case strings.HasSuffix(line, "[build failed]"), strings.HasSuffix(line, "[setup failed]"):
		r.unbuilt[pkg] = true
	case line != "" && line != "PASS" && !strings.HasPrefix(line, "FAIL"):
		r.last[pkg] = line
	}
}

// packageFailed names a package that failed although none of its tests did:
// without that, nothing of the summary would say where to look.
func (r *report) packageFailed(e event) {
	why := ""
	switch {
	case r.unbuilt[e.Package] || e.FailedBuild != "":
		why = "it did not build"
	case r.failing[e.Package]:
		return
	case r.last[e.Package] != "":
		why = "its test binary failed outside of any test: " + r.last[e.Package]
	default:
		why = "its test binary failed outside of any test"
	}
	r.counts.broken++
	r.broken = append(r.broken, skip{e.Package, why})
}

// print shows what a test said, without the marks of -v.
func (r *report) print(said text) {
	for _, s := range said {
		if !strings.HasPrefix(s, "=== ") {
			io.WriteString(r.out, s)
		}
	}
}

func (r *report) skip(e event, said text) {
	name := e.Package + "." + e.Test
	if reason, ok := skippedByDesign(name); ok {
		r.counts.byDesign++
		r.design = append(r.design, skip{name, reason})
		return
	}
	r.counts.skipped++
	why := "no reason given"
	for _, s := range said {
		s = strings.TrimSpace(s)
		if s == "" || strings.HasPrefix(s, "=== ") || strings.HasPrefix(s, "--- SKIP") {
			continue
		}
		why = s
	}
	r.skipped = append(r.skipped, skip{name, why})
}
