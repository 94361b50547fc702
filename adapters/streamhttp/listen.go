package streamhttp

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/ws"
)

// keepAlive is the comment that says that a stream is alive.
const keepAlive = ":\n\n"

// get opens a stream of events.
func (h *Handler) get(w http.ResponseWriter, r *http.Request, pass *ws.Pass) {
	if r.Header.Get("Upgrade") != "" {
		w.Header().Set("Upgrade", "websocket")
		refuse(w, http.StatusUpgradeRequired, "This is no proper upgrade to a WebSocket.")
		return
	}
	if r.ContentLength != 0 {
		refuse(w, http.StatusBadRequest, "GET has no body.")
		return
	}
	if !takesEvents(r) {
		refuse(w, http.StatusNotAcceptable, "A stream needs Accept: text/event-stream.")
		return
	}
	c, bad := h.find(r, pass)
	if bad != nil {
		bad.write(w)
		return
	}
	taken := false // by a goroutine that goes on
	defer func() {
		if !taken {
			c.leave()
		}
	}()
	session, bad := header(r, HeaderSession)
	var after *uint64
	if bad == nil {
		after, bad = lastEvent(r)
	}
	if bad != nil {
		bad.write(w)
		return
	}
	rc := http.NewResponseController(w)
	reader := newReader(r.ProtoMajor < 2, func(t time.Time) { _ = rc.SetWriteDeadline(t) }) // a transport without deadlines does not stall
	s, bad := c.seat(r, session, reader, after)
	if bad != nil {
		bad.write(w)
		return
	}
	defer func() {
		if !taken {
			c.part(s, reader)
		}
	}()
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache, no-transform")
	head.Set("X-Accel-Buffering", "no") // proxies pass on what there is
	if taken = h.apart(w, r, c, s, reader); taken {
		return
	}
	_ = rc.SetReadDeadline(time.Time{}) // no deadline where there is none to take away
	w.WriteHeader(http.StatusOK)
	c.listen(&answer{w, rc, r.Context()}, s, reader)
}

// apart serves a stream that has a connection of the network for itself from a
// goroutine of its own, so that the server can let go of all it has of the
// request. It reports false where that cannot be done.
func (h *Handler) apart(w http.ResponseWriter, r *http.Request, c *connection, s *stream, me *reader) bool {
	c.mu.Lock()
	open := !c.closed && !c.lost
	if open {
		h.serving.Add(1) // the connection is served yet, so nobody has stopped waiting
	}
	c.mu.Unlock()
	if !open {
		return false
	}
	head := w.Header().Clone()
	l := takeOver(w, r)
	if l == nil {
		h.serving.Done()
		return false
	}
	c.mu.Lock()
	me.until = func(t time.Time) { _ = l.conn.SetWriteDeadline(t) } // see get
	c.mu.Unlock()
	go func() { // ends with the client, the connection or another reader; Close joins it
		defer h.serving.Done()
		defer c.leave()
		defer c.part(s, me)
		defer l.close()
		if c.mayWrite(me, time.Now()) && l.begin(head) == nil {
			c.listen(l, s, me)
		}
	}()
	return true
}

// takesEvents reports whether the request asks for events by name.
func takesEvents(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(line, ",") {
			media, params, _ := strings.Cut(part, ";")
			if strings.EqualFold(strings.TrimSpace(media), "text/event-stream") && !excluded(params) {
				return true
			}
		}
	}
	return false
}

// excluded reports whether a media range has the weight zero.
func excluded(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return err == nil && q == 0
		}
	}
	return false
}

// lastEvent returns the number of the last event the client has seen, nil if
// it does not say.
func lastEvent(r *http.Request) (*uint64, *refusal) {
	v, bad := header(r, headerLastEvent)
	if bad != nil || v == "" {
		return nil, bad
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, "Last-Event-ID is the id of an event of this stream."}
	}
	return &n, nil
}

// seat makes the reader the one of its stream. One that is still there may be
// about to go: its end of a broken network was not noticed yet.
func (c *connection) seat(r *http.Request, session string, me *reader, after *uint64) (*stream, *refusal) {
	patience := time.NewTimer(c.opts.Handover)
	defer patience.Stop()
	for {
		s, busy, bad := c.join(session, me, after)
		if busy == nil {
			return s, bad
		}
		select {
		case <-busy.gone:
		case <-r.Context().Done():
			return nil, &refusal{http.StatusRequestTimeout, "The request was given up."}
		case <-patience.C:
			return nil, &refusal{http.StatusConflict, "This stream has a reader already."}
		}
	}
}

// listen writes events until the client, the connection or another reader
// ends that.
func (c *connection) listen(to outlet, s *stream, me *reader) {
	if !c.send(to, s, me, []byte(keepAlive)) {
		return
	}
	beat := time.NewTimer(c.opts.KeepAlive)
	defer beat.Stop()
	var buf []byte
	for {
		var over bool
		var wait time.Duration
		if buf, over, wait = c.take(s, me, buf[:0]); over {
			return
		}
		if len(buf) == 0 {
			var again <-chan time.Time
			if wait > 0 {
				again = time.After(wait)
			}
			select {
			case <-again:
				continue
			case <-me.wake:
				continue
			case <-me.out:
				return
			case <-to.left():
				return
			case <-beat.C:
				buf = []byte(keepAlive) // the one before may be large
				c.trimAll()
			}
		}
		if !c.send(to, s, me, buf) {
			return
		}
		beat.Reset(c.opts.KeepAlive)
		if cap(buf) > batchBytes {
			buf = nil
		}
	}
}

// send writes some bytes. A client that does not take them in time is lost.
func (c *connection) send(to outlet, s *stream, me *reader, b []byte) bool {
	start := time.Now()
	if !c.mayWrite(me, start) {
		return false
	}
	if to.write(b) == nil {
		return true
	}
	if time.Since(start) >= c.opts.Stall {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s.reader == me {
			c.lose(fmt.Errorf("a stream took nothing for %v", c.opts.Stall))
		}
	}
	return false
}

// mayWrite sets until when a write may take. It reports false if the reader
// has to go.
func (c *connection) mayWrite(me *reader, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-me.out:
		return false
	default:
	}
	limit := now.Add(c.opts.Stall)
	if c.closed {
		limit = c.closedAt.Add(c.opts.Flush)
	}
	me.until(limit)
	return true
}
