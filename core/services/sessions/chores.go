package sessions

import (
	"context"
	"sync"
)

// chores runs what the service does on goroutines of its own: freeing what a
// gone client had, closing tools, waiting for what a turn left running. Each
// is bounded by its caller; Shutdown joins them all.
type chores struct {
	mu   sync.Mutex
	busy int
	rest chan struct{} // closed when busy falls to 0; nil while nobody waits
}

// do runs fn and returns a channel that is closed when it has returned.
func (c *chores) do(fn func()) <-chan struct{} {
	c.mu.Lock()
	c.busy++
	c.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer c.done()
		defer close(done)
		fn()
	}()
	return done
}

func (c *chores) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy--
	if c.busy == 0 && c.rest != nil {
		close(c.rest)
		c.rest = nil
	}
}

// wait returns when none is running, or with the context's cause.
func (c *chores) wait(ctx context.Context) error {
	c.mu.Lock()
	if c.busy == 0 {
		c.mu.Unlock()
		return nil
	}
	if c.rest == nil {
		c.rest = make(chan struct{})
	}
	rest := c.rest
	c.mu.Unlock()
	select {
	case <-rest:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
