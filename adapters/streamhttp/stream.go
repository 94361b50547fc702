package streamhttp

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// keepFor is how long an event that was sent is kept for a client that lost
// its stream: longer than such a client needs to notice.
const keepFor = 2 * time.Minute

// batchBytes is how much is sent in one write, if there is as much.
const batchBytes = 64 << 10

// event is a message on a stream. Numbers are unique in the connection and
// grow along a stream.
type event struct {
	id   uint64
	at   time.Time
	data []byte
	call string // the id of a request of ours
	held bool   // to be moved to the main stream when what is before it has left
}

// stream is what one GET listens to: first the events that were sent and are
// kept, then, from next on, those that wait. It belongs to its connection's
// lock.
type stream struct {
	name   string // the session; empty for the connection's own
	events []event
	next   int
	kept   int    // bytes of the events that were sent
	unsent int    // bytes of those that wait
	floor  uint64 // no event after this one was dropped
	used   bool   // it had an event
	block  []byte // what is left of the memory that the newest short event is in
	reader *reader
}

// reader is a GET that listens.
type reader struct {
	wake    chan struct{}   // something happened
	out     chan struct{}   // closed when the reader has to go
	gone    chan struct{}   // closed when it went
	writing bool            // what was taken last may not be sent yet
	sent    time.Time       // when it was
	apart   bool            // the stream has a connection of the network for itself
	until   func(time.Time) // bounds the write that is under way or comes next
	left    bool
}

func newReader(apart bool, until func(time.Time)) *reader {
	return &reader{wake: make(chan struct{}, 1), out: make(chan struct{}), gone: make(chan struct{}), apart: apart, until: until}
}

// expel makes a reader go. Its connection's lock is held.
func (r *reader) expel() {
	select {
	case <-r.out:
		return
	default:
		close(r.out)
	}
	if !r.left { // afterwards the response is not ours any more
		r.until(time.Now())
	}
}

// put appends an event. Of short data it keeps a copy, other data becomes the
// stream's. The lock is held.
func (c *connection) put(s *stream, e event) {
	c.events++
	e.id = c.events
	e.data = s.store(e.data)
	s.used = true
	s.events = append(s.events, e)
	c.wait(s, 1, len(e.data))
	if s.reader != nil {
		signal(s.reader.wake)
	}
}

// settles returns how long an answer on the main stream still has to wait for
// what this reader was sent. On one connection of the network what was sent
// first is read first; of two, nothing says which the client reads first, so
// that the second is given a start.
func (r *reader) settles(now time.Time, settle time.Duration) time.Duration {
	if !r.apart {
		return 0
	}
	return max(0, settle-now.Sub(r.sent))
}

// take appends what the reader is to write to buf. With nothing to write, over
// says that the reader has to go, and wait, if it is not zero, when to ask
// again.
func (c *connection) take(s *stream, r *reader, buf []byte) (out []byte, over bool, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.reader != r || c.lost {
		return buf, true, 0
	}
	now := time.Now()
	if r.writing {
		r.sent = now
	}
	for s.next < len(s.events) && wait == 0 {
		e := s.events[s.next]
		if e.held {
			if len(buf) > 0 {
				break
			}
			if wait = r.settles(now, c.opts.Settle); wait == 0 {
				c.release(s, s.next)
			}
			continue
		}
		if len(buf) > 0 && len(buf)+len(e.data) > batchBytes {
			break
		}
		buf = appendEvent(buf, e)
		s.next++
		c.keep(s, len(e.data))
		c.wait(s, -1, -len(e.data))
	}
	if r.writing = len(buf) > 0; r.writing {
		c.trim(s, now)
		c.trimOldest(s)
		signal(c.room)
	}
	return buf, !r.writing && wait == 0 && c.closed, wait
}

func appendEvent(buf []byte, e event) []byte {
	buf = append(buf, "id: "...)
	buf = strconv.AppendUint(buf, e.id, 10)
	buf = append(buf, "\ndata: "...)
	buf = append(buf, e.data...)
	return append(buf, "\n\n"...)
}

// release moves a held event to the main stream. The lock is held.
func (c *connection) release(s *stream, i int) {
	e := s.events[i]
	c.drop(s, i)
	e.held = false
	c.put(c.main, e)
}

// releaseHeld moves all of them. The lock is held.
func (c *connection) releaseHeld(s *stream) {
	for i := s.next; i < len(s.events); {
		if s.events[i].held {
			c.release(s, i)
		} else {
			i++
		}
	}
}

// drop takes an event out of the middle. The lock is held.
func (c *connection) drop(s *stream, i int) {
	n := len(s.events[i].data)
	if i < s.next {
		s.next--
		c.keep(s, -n)
	} else {
		c.wait(s, -1, -n)
		signal(c.room)
	}
	s.events = slices.Delete(s.events, i, i+1)
}

// session returns the stream of a session, or nil if there are too many. The
// lock is held.
func (c *connection) session(name string) *stream {
	if s := c.sessions[name]; s != nil {
		return s
	}
	if len(c.sessions) >= c.opts.MaxStreams && !c.evict() {
		return nil
	}
	s := &stream{name: name, floor: c.events}
	c.sessions[name] = s
	return s
}

// evict forgets a stream that nobody needs now. The lock is held.
func (c *connection) evict() bool {
	for name, s := range c.sessions {
		if s.reader == nil && s.next == len(s.events) {
			c.keep(s, -s.kept)
			delete(c.sessions, name)
			return true
		}
	}
	return false
}

// join makes r the reader of a stream. after is the last event it has seen,
// nil if it does not say; a reader that says takes the place of another. busy
// is the reader that is in the way.
func (c *connection) join(name string, r *reader, after *uint64) (s *stream, busy *reader, bad *refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil || c.closed {
		return nil, nil, unknownConnection()
	}
	if s = c.main; name != "" {
		s = c.session(name)
	}
	switch {
	case s == nil:
		return nil, nil, &refusal{http.StatusTooManyRequests, "Too many session streams are open on this connection."}
	case after != nil && *after > c.events:
		return nil, nil, &refusal{http.StatusBadRequest, "Last-Event-ID names an event that was never sent."}
	case after != nil && *after < s.floor:
		return nil, nil, &refusal{http.StatusGone, "Events after this Last-Event-ID are not kept any more; open the stream without it and load the session."}
	case after != nil:
		if s.reader != nil {
			s.reader.expel()
		}
		c.rewind(s, *after)
	case s.reader != nil:
		return nil, s.reader, nil
	}
	s.reader, c.listened = r, true
	if len(s.events) > s.next {
		signal(r.wake)
	}
	return s, nil, nil
}

// rewind has every event after the given one sent again. The lock is held.
func (c *connection) rewind(s *stream, after uint64) {
	for s.next > 0 && s.events[s.next-1].id > after {
		s.next--
		n := len(s.events[s.next].data)
		c.keep(s, -n)
		c.wait(s, 1, n)
	}
}

// part ends what join began.
func (c *connection) part(s *stream, r *reader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.left = true
	close(r.gone)
	if s.reader != r {
		return
	}
	s.reader = nil
	c.releaseHeld(s)
	if s != c.main && !s.used {
		delete(c.sessions, s.name)
	}
	signal(c.room)
}

// readers calls f for every reader. The lock is held.
func (c *connection) readers(f func(*reader)) {
	if c.main.reader != nil {
		f(c.main.reader)
	}
	for _, s := range c.sessions {
		if s.reader != nil {
			f(s.reader)
		}
	}
}

// cutReaders ends every reader at once. The lock is held.
func (c *connection) cutReaders() {
	c.readers(func(r *reader) { r.expel() })
}

// finishReaders has every reader send what there is and go. The lock is held.
func (c *connection) finishReaders() {
	for _, s := range c.sessions {
		c.releaseHeld(s)
	}
	c.readers(func(r *reader) {
		r.until(c.closedAt.Add(c.opts.Flush))
		signal(r.wake)
	})
}
