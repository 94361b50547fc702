package ws_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
	"github.com/berth-dev/berth/adapters/ws"
)

// piped is an answer whose connection is a pipe in memory.
type piped struct {
	http.ResponseWriter
	conn net.Conn
	wait <-chan struct{} // before the connection is taken over
}

// pipe opens a WebSocket over one, with a header of a link if that is not "".
// It is ready when wait is closed, if that is not nil.
func pipe(t *testing.T, h http.Handler, link string, wait <-chan struct{}) *wire {
	t.Helper()
	theirs, ours := net.Pipe()
	r := httptest.NewRequest(http.MethodGet, "/acp", nil)
	r.Host = "localhost"
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
		tether.Header: link,
	} {
		r.Header.Set(name, value)
	}
	go h.ServeHTTP(piped{httptest.NewRecorder(), ours, wait}, r) // ends with the upgrade
	w := &wire{t, theirs, bufio.NewReader(theirs)}
	if wait != nil {
		return w
	}
	if answer, err := http.ReadResponse(w.r, nil); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade: %v %v", answer, err)
	}
	return w
}

// Hijack gives the pipe away.
func (p piped) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if p.wait != nil {
		<-p.wait
	}
	return p.conn, bufio.NewReadWriter(bufio.NewReader(p.conn), bufio.NewWriter(p.conn)), nil
}

// drip reads little at a time.
type drip struct {
	io.Reader
	pause time.Duration
}

func (d drip) Read(p []byte) (int, error) {
	time.Sleep(d.pause) // of the bubble
	return d.Reader.Read(p[:min(len(p), 8<<10)])
}

// TestConn_SlowLine: a message may take minutes as long as it gets on, though
// no ping comes through meanwhile.
func TestConn_SlowLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		message := strings.Repeat("x", 1<<20)
		wrote := make(chan error, 1)
		h := ws.NewHandler(ws.HandlerConfig{
			NewID: func() string { return "c" },
			Serve: func(_ context.Context, c *ws.Conn, _ ws.Peer) {
				go func() { wrote <- c.Write([]byte(message)) }() // ends with the connection
				for {
					if _, err := c.Read(); err != nil {
						return
					}
				}
			},
		})
		w := pipe(t, ws.NewGuard(ws.GuardConfig{NewID: func() string { return "r" }}).Protect(h, http.MethodGet), "", nil)
		theirs := w.conn
		began := time.Now()
		w.r = bufio.NewReader(drip{theirs, 3 * time.Second})
		op, payload, err := w.next()
		if op != opText || payload != message || err != nil {
			t.Errorf("after %v: read %d, %d bytes, %v", time.Since(began), op, len(payload), err)
		}
		w.r = bufio.NewReader(theirs)
		go func() { _, _ = io.Copy(io.Discard, w.r) }() // ends with the pipe
		if err := <-wrote; err != nil {
			t.Errorf("Write: %v", err)
		}
		w.send(closing(1000))
		if err := h.Close(context.Background(), nil); err != nil {
			t.Error(err)
		}
		_ = theirs.Close()
	})
}

// TestConn_PingBehindASlowMessage: a ping is answered behind the message that
// is under way, however long that takes, and the answer has its own time.
func TestConn_PingBehindASlowMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrote := make(chan error, 2)
		message := strings.Repeat("x", 8<<10)
		h, protected := overPipes(ws.HandlerConfig{
			Conn: ws.Config{WriteTimeout: 10 * time.Second},
			Serve: func(_ context.Context, c *ws.Conn, _ ws.Peer) {
				go func() { // ends with the connection
					wrote <- c.Write([]byte(message))
					time.Sleep(10 * time.Second)
					wrote <- c.Write([]byte("more"))
				}()
				for {
					if _, err := c.Read(); err != nil {
						return
					}
				}
			},
		})
		w := pipe(t, protected, "", nil)
		synctest.Wait() // the message is under way
		w.send(frame(fin|opPing, "first"), frame(fin|opPing, "second"))
		time.Sleep(9900 * time.Millisecond)
		if op, payload, err := w.next(); op != opText || payload != message || err != nil {
			t.Errorf("read %d, %d bytes, %v", op, len(payload), err)
		}
		time.Sleep(5 * time.Second) // the answer is not read either
		if op, payload, err := w.next(); op != opPong || payload != "second" || err != nil {
			t.Errorf("the ping is answered %d %q, %v", op, payload, err)
		}
		if op, payload, err := w.next(); op != opText || payload != "more" || err != nil {
			t.Errorf("and then came %d %q, %v", op, payload, err)
		}
		for range 2 {
			if err := <-wrote; err != nil {
				t.Errorf("Write: %v", err)
			}
		}
		w.send(closing(1000))
		_ = w.story()
		_ = w.conn.Close()
		if err := h.Close(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestConn_GoneWithNothingLeft: who waits for the end of a connection waits for
// the work beside the reader and the writer, too.
func TestConn_GoneWithNothingLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := make(chan *ws.Conn, 1)
		h, protected := overPipes(ws.HandlerConfig{Serve: func(_ context.Context, c *ws.Conn, _ ws.Peer) {
			conns <- c
			<-c.Gone()
		}})
		w := pipe(t, protected, "", nil)
		c := <-conns
		done, ok := ws.Beside(c)
		if !ok {
			t.Fatal("the connection is over")
		}
		go func() { _ = w.story(); _ = w.conn.Close() }() // ends with the pipe
		_ = c.Close()
		time.Sleep(time.Minute)
		select {
		case <-c.Gone():
			t.Error("the connection is gone while something of it is at work")
		default:
		}
		done()
		<-c.Gone()
		if _, ok := ws.Beside(c); ok {
			t.Error("something began behind its end")
		}
		if err := h.Close(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestLasting_SocketOnItsWay: a link that ends while its client comes back
// waits for the new socket, too, before it is nothing more.
func TestLasting_SocketOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := ws.NewHandler(ws.HandlerConfig{
			Park: time.Hour, NewID: func() string { return "c" },
			Serve: func(ctx context.Context, _ *ws.Conn, _ ws.Peer) { <-ctx.Done() },
		})
		g := ws.NewGuard(ws.GuardConfig{NewID: func() string { return "r" }})
		protected := g.Protect(h, http.MethodGet)
		first := pipe(t, protected, tether.Ask("", 0), nil)
		go func() { _ = first.story() }() // ends with the pipe
		synctest.Wait()
		come := make(chan struct{})
		second := pipe(t, protected, tether.Ask("c", 0), come)
		synctest.Wait()
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- h.Close(t.Context(), nil) }() // ends when the test reads it
		time.Sleep(time.Minute)                             // of the bubble
		if n := g.Count(); n != 1 {
			t.Errorf("%d connections count while a socket is on its way", n)
		}
		close(come)
		if answer, err := http.ReadResponse(second.r, nil); err != nil || answer.Header.Get(tether.Header) != tether.AnswerResumed(0) {
			t.Errorf("coming back is answered %v, %v", answer, err)
		}
		_ = second.story()
		_, _ = first.conn.Close(), second.conn.Close()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if n := g.Count(); n != 0 {
			t.Errorf("%d connections count at the end", n)
		}
	})
}
