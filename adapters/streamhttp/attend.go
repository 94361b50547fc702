package streamhttp

import (
	"fmt"
	"time"
)

// attend notes that a request of the client is under way. It reports false
// when the connection has ended.
func (c *connection) attend() bool {
	c.mu.Lock()
	if c.why != nil || c.closed {
		c.mu.Unlock()
		return false
	}
	c.attended++
	c.mu.Unlock()
	c.tellAway()
	return true
}

// leave undoes attend.
func (c *connection) leave() {
	c.mu.Lock()
	if c.attended--; c.attended == 0 && c.why == nil && !c.closed {
		c.absentAt = time.Now().Add(c.patience())
		c.idle.Reset(c.patience())
	}
	c.mu.Unlock()
	c.tellAway()
}

// idled loses a connection whose client has been away for long enough. The
// timer may have fired just before the client was here, and have found the lock
// taken until it was away again: that counts anew, and so does the timer.
func (c *connection) idled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attended == 0 && !time.Now().Before(c.absentAt) {
		c.lose(fmt.Errorf("the client sent nothing and had no stream open for %v", c.patience()))
	}
}

// watchAway has f told when the client goes away, having listened, and when it
// is back.
func (c *connection) watchAway(f func(away bool)) {
	c.awayMu.Lock()
	c.onAway = f
	c.awayMu.Unlock()
	c.tellAway()
}

// tellAway tells whether the client is away, if that changed. Once the
// connection has ended that says more.
func (c *connection) tellAway() {
	c.awayMu.Lock()
	defer c.awayMu.Unlock()
	c.mu.Lock()
	away, over := c.attended == 0 && c.listened, c.why != nil || c.closed
	c.mu.Unlock()
	if c.onAway != nil && !over && away != c.told {
		c.told = away
		c.onAway(away)
	}
}

// patience is how long the client may be away. The lock is held.
func (c *connection) patience() time.Duration {
	if c.listened {
		return c.opts.Absent
	}
	return c.opts.Unattended
}
