package streamhttp

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// outlet is where the events of a stream go.
type outlet interface {
	// write sends some bytes at once.
	write(b []byte) error
	// left is closed when the client has gone.
	left() <-chan struct{}
}

// answer is the outlet of a request whose handler stays.
type answer struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	ctx context.Context //nolint:containedctx // of the request
}

func (a *answer) write(b []byte) error {
	if _, err := a.w.Write(b); err != nil {
		return err
	}
	return a.rc.Flush()
}

func (a *answer) left() <-chan struct{} { return a.ctx.Done() }

// line is the outlet of a stream that has a connection of the network for
// itself and was taken from the server, whose buffers and deep stack a client
// that only listens would hold for nothing.
type line struct {
	conn    net.Conn
	chunked bool
	broken  bool // a write failed, and nothing may follow what it sent of it
	over    chan struct{}
	reading sync.WaitGroup
}

// mostSaid is how many bytes a client may send on a connection that is a
// stream: it may hope to put a request behind it, which is never answered.
const mostSaid = 16 << 10

// farewell is how long the end of an answer may take.
const farewell = time.Second

// takeOver takes the network connection of a stream from the server and sends
// the head of the answer; nil where that cannot be done.
func takeOver(w http.ResponseWriter, r *http.Request) *line {
	if r.ProtoMajor != 1 {
		return nil
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil
	}
	l := &line{conn: conn, chunked: r.ProtoMinor > 0, over: make(chan struct{})}
	l.reading.Go(func() { // ends with the connection; close joins it
		defer close(l.over)
		var some [64]byte
		for said := 0; said < mostSaid; {
			n, err := conn.Read(some[:])
			if said += n; err != nil {
				return
			}
		}
	})
	return l
}

// begin sends the head of the answer.
func (l *line) begin(head http.Header) error {
	head.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	head.Set("Connection", "close")
	if l.chunked {
		head.Set("Transfer-Encoding", "chunked")
	}
	buf := &headBuffer{b: []byte("HTTP/1.1 200 OK\r\n")}
	if err := head.Write(buf); err != nil {
		return err
	}
	_, err := l.conn.Write(append(buf.b, "\r\n"...))
	l.broken = err != nil
	return err
}

// headBuffer gathers the head.
type headBuffer struct{ b []byte }

func (h *headBuffer) Write(p []byte) (int, error) {
	h.b = append(h.b, p...)
	return len(p), nil
}

func (l *line) write(b []byte) error {
	parts := net.Buffers{b}
	if l.chunked {
		parts = net.Buffers{append(strconv.AppendInt(make([]byte, 0, 16), int64(len(b)), 16), "\r\n"...), b, []byte("\r\n")}
	}
	_, err := parts.WriteTo(l.conn)
	l.broken = err != nil
	return err
}

func (l *line) left() <-chan struct{} { return l.over }

// close ends the answer, if it is whole so far, and the connection.
func (l *line) close() {
	if l.chunked && !l.broken {
		_ = l.conn.SetWriteDeadline(time.Now().Add(farewell))
		_, _ = l.conn.Write([]byte("0\r\n\r\n")) // who has gone does not need it
	}
	_ = l.conn.Close()
	l.reading.Wait()
}
