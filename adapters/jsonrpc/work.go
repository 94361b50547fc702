package jsonrpc

import "sync"

// work counts the goroutines a connection started besides R and W, bounds
// those that serve requests, and tells when the last one has ended. Unlike a
// wait group it may be waited for while those that run start others.
type work struct {
	limit int

	mu       sync.Mutex
	n        int
	draining bool
	idle     chan struct{} // closed when draining and n is 0
}

func newWork(limit int) *work { return &work{limit: limit, idle: make(chan struct{})} }

// enter counts a goroutine in, unless there are too many.
func (w *work) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n >= w.limit {
		return false
	}
	w.n++
	return true
}

// add counts a goroutine in that is bounded elsewhere, unless all is over.
func (w *work) add() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining && w.n == 0 {
		return false
	}
	w.n++
	return true
}

// leave counts a goroutine out.
func (w *work) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
	w.settle()
}

// drain returns a channel that is closed once no goroutine is left. Nobody
// but those that run may start others from now on.
func (w *work) drain() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.draining {
		w.draining = true
		w.settle()
	}
	return w.idle
}

// settle closes idle when the time has come. The lock is held.
func (w *work) settle() {
	if w.draining && w.n == 0 {
		select {
		case <-w.idle:
		default:
			close(w.idle)
		}
	}
}
