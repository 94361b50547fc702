package bootstrap

import (
	"flag"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestPulse_Beats: there is a timer at all times, until it is stopped.
func TestPulse_Beats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var beats atomic.Int32
		stop := pulse(pulseTime, func() { beats.Add(1) })
		time.Sleep(time.Minute + pulseTime/2)
		if got, want := beats.Load(), int32(time.Minute/pulseTime); got != want {
			t.Errorf("%d beats in a minute, want %d", got, want)
		}
		stop()
		time.Sleep(time.Minute)
		if got, want := beats.Load(), int32(time.Minute/pulseTime); got != want {
			t.Errorf("%d beats in all, after the stop", got-want)
		}
	})
}

var (
	freezeTime = flag.Duration("freeze", 2*time.Second, "for how long to look for a standstill of the Go runtime")
	freezeBare = flag.Bool("bare", false, "look for it without a pulse, to see whether the Go runtime still has the fault")
)

// TestPulse_Standstill provokes what Pulse is there for: it stops the world again
// and again while another thread goes to a read that blocks. Without a pulse one
// round in some 50,000 takes a minute, so that a longer look says more:
//
//	go test ./bootstrap -run Standstill -freeze 2m -v
//	go test ./bootstrap -run Standstill -freeze 3m -bare -v
func TestPulse_Standstill(t *testing.T) {
	if !*freezeBare {
		defer pulse(pulseTime, func() {})()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the only stops are ours
	toReader, fromTest := pipe(t)
	toTest, fromReader := pipe(t)
	spin := func(most int) {
		for i := range rand.IntN(most) {
			runtime.KeepAlive(i)
		}
	}
	asked := make(chan struct{})
	go func() { // ends with the test's end of the pipe
		defer close(asked)
		for b := make([]byte, 1); ; {
			if n, _ := toReader.Read(b); n == 0 {
				return
			}
			asked <- struct{}{}
			spin(20000) // about as long as the other takes to be where it stops the world
		}
	}()
	go func() { // ends with asked
		defer fromReader.Close()
		var stats runtime.MemStats
		for range asked {
			spin(1000)
			runtime.ReadMemStats(&stats)
			if _, err := fromReader.Write([]byte{0}); err != nil {
				return
			}
		}
	}()
	rounds, worst := 0, time.Duration(0)
	for begin, b := time.Now(), make([]byte, 1); time.Since(begin) < *freezeTime; rounds++ {
		start := time.Now()
		if _, err := fromTest.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := toTest.Read(b); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(start))
	}
	fromTest.Close()
	t.Logf("%d rounds, the longest took %v", rounds, worst)
	if worst > 30*time.Second {
		t.Errorf("the runtime stood still for %v", worst)
	}
}

// pipe makes a pipe whose reads and writes block their threads, like those of
// standard input and output.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Fd() // from now on it blocks
	w.Fd()
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}
