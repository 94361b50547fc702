package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// runner runs stages one after the other and remembers how each ended.
type runner struct {
	opts   options
	root   string
	out    io.Writer
	err    io.Writer
	done   []outcome
	counts counts // of go test, over all its packages
	design []skip // what go test skipped by design
	broken []skip // packages that failed without a failed test
}

// outcome is how one stage ended.
type outcome struct {
	stage   string
	err     error
	took    time.Duration
	skipped []skip
}

// skip is one thing that was left out, and why.
type skip struct {
	what string
	why  string
}

// stage is one step. It returns what it had to leave out, and an error when
// something is wrong with the code.
type stage struct {
	name string
	run  func(*runner, context.Context) ([]skip, error)
}

// stages lists every stage in the order they run.
func stages() []stage {
	return []stage{
		{"fmt", (*runner).fmtStage},
		{"tidy", (*runner).tidyStage},
		{"vet", (*runner).vetStage},
		{"lint", (*runner).lintStage},
		{"test", (*runner).testStage},
		{"console", (*runner).consoleStage},
		{"interop", (*runner).interopStage},
		{"browser", (*runner).browserStage},
		{"cross", (*runner).crossStage},
		{"fuzz", (*runner).fuzzStage},
	}
}

func stageNames() []string {
	var names []string
	for _, s := range stages() {
		names = append(names, s.name)
	}
	return names
}

func stageByName(name string) (stage, bool) {
	for _, s := range stages() {
		if s.name == name {
			return s, true
		}
	}
	return stage{}, false
}

// run runs the chosen stages in their own order. A failing one does not keep
// the others from running: one run shows all that is wrong.
func (r *runner) run(ctx context.Context) {
	chosen := map[string]bool{}
	for _, name := range r.opts.stages {
		chosen[name] = true
	}
	for _, s := range stages() {
		if !chosen[s.name] {
			continue
		}
		fmt.Fprintf(r.err, "==> %s\n", s.name)
		start := time.Now()
		skipped, err := s.run(r, ctx)
		if ctx.Err() != nil {
			err = errors.Join(err, errors.New("interrupted"))
		}
		r.done = append(r.done, outcome{stage: s.name, err: err, took: time.Since(start), skipped: skipped})
		if ctx.Err() != nil {
			return
		}
	}
}

// summary prints how everything ended and returns the exit status.
func (r *runner) summary(w io.Writer) int {
	status := 0
	left := 0
	fmt.Fprintln(w)
	for _, o := range r.done {
		word := "ok"
		if o.err != nil {
			word, status = "FAILED", 1
		} else if o.stageLeftOut() {
			word = "left out"
		}
		fmt.Fprintf(w, "%-8s %-8s %6.1fs", o.stage, word, o.took.Seconds())
		if o.err != nil {
			fmt.Fprintf(w, "  %s", firstLine(o.err.Error()))
		}
		fmt.Fprintln(w)
		for _, s := range o.skipped {
			left++
			fmt.Fprintf(w, "         left out: %s: %s\n", s.what, s.why)
		}
	}
	r.testSummary(w)
	switch {
	case status != 0:
		fmt.Fprintln(w, "FAILED")
	case left > 0 && r.opts.strict:
		fmt.Fprintln(w, "FAILED: -strict allows nothing to be left out")
		status = 1
	case left > 0:
		fmt.Fprintln(w, "all that could run here passed")
	default:
		fmt.Fprintln(w, "everything passed")
	}
	return status
}

// testSummary prints what became of the tests: their numbers, the packages
// that never came to them, and which ones were skipped by design.
func (r *runner) testSummary(w io.Writer) {
	if r.counts.ran() == 0 {
		return
	}
	fmt.Fprintln(w)
	if len(r.design) > 0 {
		fmt.Fprintln(w, "skipped by design:")
	}
	for i, s := range r.design {
		if !slices.ContainsFunc(r.design[:i], func(before skip) bool { return before.why == s.why }) {
			fmt.Fprintf(w, "  %s:\n", s.why)
			for _, same := range r.design[i:] {
				if same.why == s.why {
					fmt.Fprintf(w, "    %s\n", same.what)
				}
			}
		}
	}
	for _, s := range r.broken {
		fmt.Fprintf(w, "package %s: %s\n", s.what, s.why)
	}
	fmt.Fprintln(w, r.counts)
}

// stageLeftOut reports whether the stage itself did not run.
func (o outcome) stageLeftOut() bool {
	return len(o.skipped) == 1 && o.skipped[0].what == o.stage
}

// command prepares a program with the repository as its directory and its
// output passed through.
func (r *runner) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.root
	cmd.Stdout = r.out
	cmd.Stderr = r.err
	// An interrupt lets the program clean up behind itself; what ignores it
	// is ended.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// exec runs a program and says which one it was when it fails.
func (r *runner) exec(cmd *exec.Cmd) error {
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
