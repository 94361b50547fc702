// Package framestest is the conformance suite of jsonrpc.Frames. A transport
// is proven by handing it a way to make two connected ends:
//
//	func TestFrames(t *testing.T) {
//		framestest.Run(t, func(t framestest.TB, maxBytes int) (a, b jsonrpc.Frames) { … })
//	}
//
// Every case guards a rule, which a failure prints. The suite waits in real
// time, because transports are made of system calls; a call that does not
// return within Patience has failed.
package framestest

import (
	"context"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// Patience is how long one step of a case may take. It is reached only by a
// transport that hangs.
const Patience = 30 * time.Second

// Limit is the bound on inbound frames the suite asks for.
const Limit = 1 << 20

// TB is what a case needs of a test.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Connect makes two connected ends, each of which refuses inbound frames over
// maxBytes. The suite closes both.
type Connect func(t TB, maxBytes int) (a, b jsonrpc.Frames)

// Case is one rule and its proof.
type Case struct {
	Name, Rule string
	check      func(t TB, a, b jsonrpc.Frames)
}

// Check proves one case.
func (c Case) Check(t TB, connect Connect) {
	t.Helper()
	a, b := connect(t, Limit)
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
		if f, ok := t.(interface{ Failed() bool }); ok && f.Failed() {
			t.Logf("rule %s: %s", c.Name, c.Rule)
		}
	})
	c.check(t, a, b)
}

// Run proves every case.
func Run(t *testing.T, connect Connect) {
	t.Helper()
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Check(t, connect) })
	}
}

// Cases returns the suite.
func Cases() []Case {
	return []Case{
		{"order", "frames arrive whole and in order, in both directions at once", checkOrder},
		{"sizes", "every size from one byte to the limit passes", checkSizes},
		{"content", "a frame arrives byte for byte, whatever JSON it holds", checkContent},
		{"over-limit", "a frame over the limit is an error, never a frame and never a hang", checkOverLimit},
		{"ownership", "a frame read stays as it is, a frame written is not kept", checkOwnership},
		{"whole-writes", "frames of many producers never interleave", checkWholeWrites},
		{"late-reader", "a reader that comes late loses nothing", checkLateReader},
		{"end", "what was written before an orderly end arrives, then io.EOF", checkEnd},
		{"half-close", "an end that has stopped sending still receives", checkHalfClose},
		{"close-unblocks-read", "closing either end ends a Read in progress", checkCloseUnblocksRead},
		{"close-unblocks-write", "closing either end ends a Write in progress", checkCloseUnblocksWrite},
		{"close-again", "a second Close is harmless, a Write afterwards an error", checkCloseAgain},
	}
}

// step runs f and fails the case if it does not return in time.
func step(t TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		t.Fatalf("%s hangs", what)
	}
}

// writeAll writes frames on a goroutine of its own and returns how it ended.
func writeAll(f jsonrpc.Frames, frames [][]byte) <-chan error {
	done := make(chan error, 1)
	go func() {
		for _, frame := range frames {
			if err := f.Write(frame); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return done
}

// read returns the next frame.
func read(t TB, f jsonrpc.Frames) (frame []byte, err error) {
	t.Helper()
	step(t, "Read", func() { frame, err = f.Read() })
	return frame, err
}

// wantFrames reads frames and compares them.
func wantFrames(t TB, f jsonrpc.Frames, want [][]byte) {
	t.Helper()
	for i, w := range want {
		got, err := read(t, f)
		if err != nil {
			t.Fatalf("frame %d of %d: %v", i+1, len(want), err)
		}
		if string(got) != string(w) {
			t.Fatalf("frame %d of %d: got %s, want %s", i+1, len(want), excerpt(got), excerpt(w))
		}
	}
}

func excerpt(b []byte) string {
	if len(b) > 80 {
		return string(b[:80]) + "…"
	}
	return string(b)
}
