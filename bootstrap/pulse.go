package bootstrap

import (
	"sync"
	"time"
)

// pulseTime is how long the Go runtime may stand still at most; see Pulse.
const pulseTime = 500 * time.Millisecond

// Pulse bounds a fault of the Go runtime (1.26 and 1.27, at least up to 1.27.1):
// a thread that enters a system call at the very moment at which the collector
// stops all threads may be overlooked. The whole process then stands still until
// that call returns, such as a read of standard input, or until the runtime's
// monitor looks again. The monitor sleeps until the next timer is due, and a
// minute if there is none. So there is always one.
//
// Programs call it once, at their start; the timer lasts as long as they do. A
// beat costs some twenty microseconds.
func Pulse() { pulse(pulseTime, func() {}) }

// pulse calls beat after each period until stop is called.
func pulse(period time.Duration, beat func()) (stop func()) {
	var mu sync.Mutex
	var timer *time.Timer
	stopped := false
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(period, func() {
		mu.Lock()
		defer mu.Unlock()
		if !stopped {
			beat()
			timer.Reset(period)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}
