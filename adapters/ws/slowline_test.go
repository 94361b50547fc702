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

	"github.com/berth-dev/berth/adapters/ws"
)

// piped is an answer whose connection is a pipe in memory.
type piped struct {
	http.ResponseWriter
	conn net.Conn
}

func (p piped) Hijack() (net.Conn, *bufio.ReadWriter, error) {
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
		theirs, ours := net.Pipe()
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
		g := ws.NewGuard(ws.GuardConfig{NewID: func() string { return "r" }})
		r := httptest.NewRequest(http.MethodGet, "/acp", nil)
		r.Host = "localhost"
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
		} {
			r.Header.Set(name, value)
		}
		go g.Protect(h, http.MethodGet).ServeHTTP(piped{httptest.NewRecorder(), ours}, r) // ends with the upgrade
		w := &wire{t, theirs, bufio.NewReader(theirs)}
		if answer, err := http.ReadResponse(w.r, nil); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatalf("the upgrade: %v %v", answer, err)
		}
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
