package streamhttp

import (
	"fmt"
	"time"
)

// waitForRoom waits until a message may be put on a stream. The lock is held
// before and after, and given up between.
func (c *connection) waitForRoom() error {
	var stalled *time.Timer
	for {
		switch {
		case c.closed:
			return errClosed
		case c.lost:
			return c.why
		case !c.full():
			return nil
		case c.why != nil && !c.heard():
			return errFull
		}
		if stalled == nil {
			stalled = time.NewTimer(c.opts.Stall)
			defer stalled.Stop()
		}
		c.mu.Unlock()
		late := false
		select {
		case <-c.room:
			stalled.Reset(c.opts.Stall)
		case <-stalled.C:
			late = true
		}
		c.mu.Lock()
		if late {
			c.lose(fmt.Errorf("the client took nothing of what waits for it for %v", c.opts.Stall))
			if !c.lost {
				return errFull // it had ended already
			}
		}
	}
}

// heard reports whether any stream has a reader. The lock is held.
func (c *connection) heard() bool {
	if c.main.reader != nil {
		return true
	}
	for _, s := range c.sessions {
		if s.reader != nil {
			return true
		}
	}
	return false
}

// wait counts events that wait to be sent. The lock is held.
func (c *connection) wait(s *stream, events, bytes int) {
	c.waiting += events
	c.bytes += bytes
	s.unsent += bytes
}

// full reports whether too much waits to be sent. Of streams that are not
// opened yet that may be much, for a client may ask for a history before it
// listens; one that listens takes what there is, or is slow. The lock is held.
func (c *connection) full() bool {
	if c.bytes >= c.opts.MaxBufferedBytes || c.waiting >= c.opts.MaxBuffered {
		return true
	}
	if c.bytes < c.opts.MaxUnreadBytes {
		return false
	}
	unread := 0
	if c.main.reader != nil {
		unread = c.main.unsent
	}
	for _, s := range c.sessions {
		if s.reader != nil {
			unread += s.unsent
		}
	}
	return unread >= c.opts.MaxUnreadBytes
}

// keep counts events that were sent and are kept. The lock is held.
func (c *connection) keep(s *stream, bytes int) {
	s.kept += bytes
	c.kept += bytes
}

// trim drops what was sent long ago, and the oldest of what is too much of one
// stream; the last event is kept however long it is. The lock is held.
func (c *connection) trim(s *stream, now time.Time) {
	n := 0
	for n < s.next {
		old := now.Sub(s.events[n].at) > keepFor
		much := s.kept > c.opts.KeptBytes || s.next-n > c.opts.KeptEvents
		if !old && (!much || n == s.next-1) {
			break
		}
		n++
	}
	c.dropSent(s, n)
}

// trimOldest drops what was sent first of what all streams keep, as long as
// that is too much; the last event of the stream that was just sent one is
// kept. The lock is held.
func (c *connection) trimOldest(now *stream) {
	for c.kept > c.opts.KeptOfAll {
		var oldest *stream
		look := func(s *stream) {
			if s.next > 0 && (s != now || s.next > 1) && (oldest == nil || s.events[0].id < oldest.events[0].id) {
				oldest = s
			}
		}
		look(c.main)
		for _, s := range c.sessions {
			look(s)
		}
		if oldest == nil {
			return
		}
		c.dropSent(oldest, 1)
	}
}

// dropSent drops the first events of a stream, which were sent. The lock is
// held.
func (c *connection) dropSent(s *stream, n int) {
	for i := range n {
		c.keep(s, -len(s.events[i].data))
		s.floor = s.events[i].id
		s.events[i] = event{}
	}
	s.next -= n
	if s.events = s.events[n:]; len(s.events) == 0 {
		s.events, s.block = nil, nil
	}
}

// trimAll trims every stream.
func (c *connection) trimAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.trim(c.main, now)
	for _, s := range c.sessions {
		c.trim(s, now)
	}
}

// Short events share blocks of memory, larger ones the longer a stream keeps
// some. With one for each they would take a third more, and leave holes among
// what lasts longer when they go. As events go in the order they came in, a
// stream holds on to one block in vain at most.
const (
	shortEvent = 1 << 10
	leastBlock = 1 << 10
	mostBlock  = 8 << 10
)

// store returns what is kept of an event's data: a copy if it is short. The
// lock is held.
func (s *stream) store(data []byte) []byte {
	if len(data) > shortEvent {
		return data
	}
	if cap(s.block)-len(s.block) < len(data) {
		s.block = make([]byte, 0, min(max(leastBlock, 2*cap(s.block)), mostBlock))
	}
	n := len(s.block)
	s.block = append(s.block, data...)
	return s.block[n:len(s.block):len(s.block)]
}
