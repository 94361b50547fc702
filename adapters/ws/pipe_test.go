package ws_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
	"github.com/berth-dev/berth/adapters/ws"
)

// overPipes is a handler whose connections are pipes, in a bubble.
func overPipes(cfg ws.HandlerConfig) (h *ws.Handler, protected http.Handler) {
	cfg.NewID = func() string { return "c" }
	h = ws.NewHandler(cfg)
	g := ws.NewGuard(ws.GuardConfig{NewID: func() string { return "r" }})
	return h, g.Protect(h, http.MethodGet)
}

// reads serves a connection by reading it.
func reads(got chan<- string) func(context.Context, *ws.Conn, ws.Peer) {
	return func(ctx context.Context, _ *ws.Conn, p ws.Peer) {
		stop := context.AfterFunc(ctx, func() { _ = p.Frames.Close() })
		defer stop()
		for {
			m, err := p.Frames.Read()
			if err != nil {
				close(got)
				return
			}
			got <- string(m)
		}
	}
}

// TestConn_PeerCloses: one that has said that it sends no more is not waited
// for, though it leaves its end open.
func TestConn_PeerCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan time.Time, 1)
		h, protected := overPipes(ws.HandlerConfig{Serve: func(_ context.Context, c *ws.Conn, _ ws.Peer) {
			_, _ = c.Read()
			<-c.Gone()
			gone <- time.Now()
		}})
		w := pipe(t, protected, "", nil)
		began := time.Now()
		w.send(closing(1000))
		if op, _, err := w.next(); op != opClose || err != nil {
			t.Errorf("it answered %d, %v", op, err)
		}
		if d := (<-gone).Sub(began); d != 0 {
			t.Errorf("it took %v", d)
		}
		if err := h.Close(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestConn_SavedControlFrames: who was silent for long may not send more
// control frames at once than others.
func TestConn_SavedControlFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, protected := overPipes(ws.HandlerConfig{Conn: ws.Config{PingInterval: 24 * time.Hour}, Serve: reads(make(chan string))})
		w := pipe(t, protected, "", nil)
		time.Sleep(time.Hour)
		go func() { // ends with the pipe
			for range 100 {
				if _, err := w.conn.Write(frame(fin|opPong, "")); err != nil {
					return
				}
			}
		}()
		if story := w.story(); len(story) == 0 || story[0] != "close 1008" {
			t.Errorf("it answered %v", story)
		}
		_ = w.conn.Close()
		if err := h.Close(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestLasting_TakenUp: the conversation has begun, so what comes first on
// another socket is not judged as its beginning; and one that remembers more
// than was sent is told so.
func TestLasting_TakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(chan string, 10)
		first := func(m []byte) (bool, error) {
			if string(m) != "hello" {
				return false, errors.New("hello comes first")
			}
			return false, nil
		}
		h, protected := overPipes(ws.HandlerConfig{Park: time.Hour, Conn: ws.Config{First: first}, Serve: reads(got)})
		one := pipe(t, protected, tether.Ask("", 0), nil)
		one.send(frame(fin|opText, "hello"))
		synctest.Wait()
		_ = one.conn.Close()
		synctest.Wait()
		two := pipe(t, protected, tether.Ask("c", 99), nil)
		if story := two.story(); len(story) != 1 || story[0] != "close 1013" {
			t.Errorf("for one who knows more than was sent: %v", story)
		}
		_ = two.conn.Close()
		synctest.Wait()
		three := pipe(t, protected, tether.Ask("c", 0), nil)
		three.send(frame(fin|opText, "more"))
		synctest.Wait()
		if a, b := <-got, <-got; a != "hello" || b != "more" {
			t.Errorf("read %q and %q", a, b)
		}
		go func() { _ = three.story() }() // ends with the pipe
		if err := h.Close(t.Context(), nil); err != nil {
			t.Error(err)
		}
		_ = three.conn.Close()
	})
}

// TestGuard_RevokedMeanwhile: a token that is taken away while its request is
// being answered opens nothing.
func TestGuard_RevokedMeanwhile(t *testing.T) {
	var g *ws.Guard
	open := func(revoke bool) (status int) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = "localhost"
		r.Header.Set("Authorization", "Bearer "+goodToken)
		g.Protect(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			pass, _ := ws.PassOf(r.Context())
			if revoke {
				g.Revoke(func(ws.Principal) bool { return false })
			}
			var done func()
			if done, status, _ = pass.Open(func() {}); done != nil {
				done()
			}
		}), http.MethodGet).ServeHTTP(httptest.NewRecorder(), r)
		return status
	}
	g = newGuard()
	if status := open(false); status != 0 {
		t.Errorf("a token that is good: %d", status)
	}
	if status := open(true); status != http.StatusServiceUnavailable {
		t.Errorf("one that was revoked: %d", status)
	}
}
