package porttest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hangLimit is when what should happen at once counts as never: far more than
// it takes on a machine with other work, and far less than for ever. Only what
// fails waits so long.
const hangLimit = 30 * time.Second

// TB is what the suites need of a test.
type TB interface {
	Helper()
	Name() string
	Context() context.Context
	TempDir() string
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	// Run runs a case of its own and reports whether it passed.
	Run(name string, fn func(TB)) bool
}

// T adapts a *testing.T.
func T(t *testing.T) TB { return tb{t} }

type tb struct{ *testing.T }

func (t tb) Run(name string, fn func(TB)) bool {
	return t.T.Run(name, func(sub *testing.T) { fn(tb{sub}) })
}

// check is one case of a suite: a name, the rule it guards, and the proof.
type check[H any] struct {
	name string
	rule string
	run  func(TB, H)
}

// runChecks runs every case and prints the rule of those that fail.
func runChecks[H any](t TB, h H, checks []check[H]) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.name, func(t TB) {
			t.Cleanup(func() {
				if f, ok := t.(interface{ Failed() bool }); ok && f.Failed() {
					t.Logf("rule %s: %s", c.name, c.rule)
				}
			})
			c.run(t, h)
		})
	}
}

// Recorder is a TB that records instead of failing, to prove that a suite
// can fail.
type Recorder struct {
	parent   *testing.T
	name     string
	failed   []string
	skipped  bool
	cleanups []func()
	children []*Recorder
}

// Record runs a suite over a (broken) adapter and returns the names of the
// cases that failed, with their messages.
func Record(t *testing.T, suite func(TB)) []string {
	t.Helper()
	r := &Recorder{parent: t, name: "suite"}
	r.run(suite)
	return r.Failures()
}

// Failures returns "case: message" for everything that failed.
func (r *Recorder) Failures() []string {
	out := append([]string(nil), r.failed...)
	for _, c := range r.children {
		out = append(out, c.Failures()...)
	}
	return out
}

// run executes fn on a goroutine of its own, because Fatalf ends it.
func (r *Recorder) run(fn func(TB)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.failed = append(r.failed, fmt.Sprintf("%s: panic: %v", r.name, p))
			}
		}()
		defer func() {
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		fn(r)
	}()
	<-done
}

// Helper does nothing.
func (r *Recorder) Helper() {}

// Name returns the case's name.
func (r *Recorder) Name() string { return r.name }

// Context returns the parent's context.
func (r *Recorder) Context() context.Context { return r.parent.Context() }

// TempDir returns a directory of the parent's.
func (r *Recorder) TempDir() string { return r.parent.TempDir() }

// Cleanup runs fn when the case ends.
func (r *Recorder) Cleanup(fn func()) { r.cleanups = append(r.cleanups, fn) }

// Logf drops the message.
func (r *Recorder) Logf(string, ...any) {}

// Errorf records a failure.
func (r *Recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, r.name+": "+strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// Fatalf records a failure and ends the case.
func (r *Recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// Skipf ends the case without a failure.
func (r *Recorder) Skipf(string, ...any) {
	r.skipped = true
	runtime.Goexit()
}

// Failed reports whether this case or one below it failed.
func (r *Recorder) Failed() bool { return len(r.Failures()) > 0 }

// Run runs a case below this one.
func (r *Recorder) Run(name string, fn func(TB)) bool {
	child := &Recorder{parent: r.parent, name: r.name + "/" + name}
	r.children = append(r.children, child)
	child.run(fn)
	return !child.Failed()
}
