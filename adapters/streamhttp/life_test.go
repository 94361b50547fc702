package streamhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/streamhttp"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/core/domain"
)

// wantLost wants Read to say that the connection is lost, and why.
func (s *served) wantLost(t testing.TB, why string) {
	t.Helper()
	if _, err := s.readEnd(t); err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), why) {
		t.Errorf("Read: %v; want the loss because of %q", err, why)
	}
	if err := s.frames.Write([]byte(update("s1", "x"))); err == nil {
		t.Errorf("a lost connection took a message")
	}
}

// gone wants the connection to be unknown.
func (r *rig) gone(id string) {
	r.t.Helper()
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		if a := r.do(method, call("1", "x", "{}"), "Acp-Connection-Id", id); a.status != http.StatusNotFound {
			r.t.Errorf("%s: %d %s", method, a.status, a.body)
		}
	}
	if a := r.do(http.MethodGet, "", "Acp-Connection-Id", id, "Accept", "text/event-stream"); a.status != http.StatusNotFound {
		r.t.Errorf("GET: %d %s", a.status, a.body)
	}
}

// TestAway: a client that has listened and does nothing more is away at once,
// long before its connection is lost, and one that comes back is there.
func TestAway(t *testing.T) {
	bubble(t, "a stream that ends", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		var told []bool
		server.peer.OnAway(func(away bool) { told = append(told, away) })
		want := func(step string, list ...bool) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(told, list) {
				t.Errorf("%s: told %v, want %v", step, told, list)
			}
		}
		r.post(id, "", call("1", "a", "{}"))
		want("it never listened")
		main, one := r.listen(id, ""), r.listen(id, "s1")
		main.close()
		want("it listens to another stream")
		one.close()
		want("it listens to none", true)
		main = r.listen(id, "")
		want("it is back", true, false)
		main.close()
		want("it is gone again", true, false, true)
		r.post(id, "", call("2", "b", "{}"))
		want("a message, and gone", true, false, true, false, true)
		time.Sleep(time.Minute)
		want("lost", true, false, true, false, true)
		r.gone(id)
	})
}

func TestEnd(t *testing.T) {
	bubble(t, "DELETE ends in order", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main, one := r.listen(id, ""), r.listen(id, "s1")
		r.post(id, "", call("1", "last", "{}"))
		if a := r.do(http.MethodDelete, "", "Acp-Connection-Id", id); a.status != http.StatusAccepted {
			t.Fatalf("DELETE: %d %s", a.status, a.body)
		}
		r.gone(id)
		if got := server.read(t); got != call("1", "last", "{}") {
			t.Errorf("read %s", got)
		}
		if _, err := server.readEnd(t); !errors.Is(err, io.EOF) {
			t.Errorf("Read: %v, want io.EOF", err)
		}
		// What is answered now still comes to those who listen.
		server.write(t, result("1", "{}"), update("s1", "a"))
		main.want(result("1", "{}"))
		if err := server.frames.Close(); err != nil {
			t.Error(err)
		}
		main.want("end")
		one.want(update("s1", "a"), "end")
	})
	for name, takes := range map[string]time.Duration{"soon": 300 * time.Millisecond, "late": time.Hour} {
		bubble(t, "DELETE waits for a server that ends "+name, func(t *testing.T) {
			r := newBubble(t, func(o *streamhttp.Options) { o.Farewell = time.Second })
			id, server := r.open()
			time.AfterFunc(takes, func() { close(server.done) })
			start := time.Now()
			if a := r.do(http.MethodDelete, "", "Acp-Connection-Id", id); a.status != http.StatusAccepted || time.Since(start) != min(takes, time.Second) {
				t.Errorf("got %d after %v", a.status, time.Since(start))
			}
		})
	}
	bubble(t, "DELETE without anybody who listens", func(t *testing.T) {
		r := newBubble(t, func(o *streamhttp.Options) { o.MaxBuffered = 2 })
		id, server := r.open()
		r.do(http.MethodDelete, "", "Acp-Connection-Id", id)
		server.write(t, update("s1", "a"), update("s1", "b"))
		if err := server.frames.Write([]byte(update("s1", "c"))); err == nil {
			t.Error("more was written than there is room for")
		}
	})
	bubble(t, "the server ends", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main := r.listen(id, "")
		server.write(t, result("1", "{}"))
		if server.frames.Close() != nil || server.frames.Close() != nil {
			t.Error("Close failed")
		}
		main.want(result("1", "{}"), "end")
		r.gone(id)
		if _, err := server.readEnd(t); err == nil {
			t.Error("Read goes on")
		}
		if server.frames.Write([]byte("{}")) == nil {
			t.Error("Write goes on")
		}
	})
	bubble(t, "the server ends and a reader takes nothing", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		one := r.listen(id, "s1")
		server.write(t, update("s1", repeat(1<<20)))
		synctest.Wait()
		start := time.Now()
		_ = server.frames.Close()
		time.Sleep(6 * time.Second)
		for one.line() != "end" {
		}
		if d := time.Since(start); d > 7*time.Second {
			t.Errorf("the stream took %v to end", d)
		}
	})
	bubble(t, "the gateway ends", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main := r.listen(id, "")
		if err := r.h.Close(t.Context(), domain.ProcessEnding); err != nil {
			t.Error(err)
		}
		if !errors.Is(context.Cause(server.ctx), domain.ProcessEnding) {
			t.Errorf("the server was told %v", context.Cause(server.ctx))
		}
		main.want("end")
		r.gone(id)
		if a := r.do(http.MethodPost, initialize); a.status != http.StatusServiceUnavailable || a.head.Get("Retry-After") == "" {
			t.Errorf("a new connection: %d %v", a.status, a.head)
		}
	})
	bubble(t, "the token is revoked", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main := r.listen(id, "")
		r.keys.mu.Lock()
		delete(r.keys.good, annsToken)
		r.keys.mu.Unlock()
		r.guard.Revoke(func(p ws.Principal) bool { return p.Name != "ann" })
		main.want("end")
		if !errors.Is(context.Cause(server.ctx), ws.ErrRevoked) {
			t.Errorf("the server was told %v", context.Cause(server.ctx))
		}
		if a := r.do(http.MethodPost, "{}", "Acp-Connection-Id", id); a.status != http.StatusUnauthorized {
			t.Errorf("POST: %d", a.status)
		}
	})
}

func TestLost(t *testing.T) {
	bubble(t, "nobody ever listens", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		start := time.Now()
		server.wantLost(t, "no stream open for 1m0s")
		if d := time.Since(start); d != time.Minute {
			t.Errorf("it took %v", d)
		}
		r.gone(id)
	})
	bubble(t, "nobody listens any more", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		one := r.listen(id, "s1")
		go func() {
			for one.line() != "end" {
			}
		}()
		time.Sleep(time.Hour)
		r.post(id, "", call("1", "x", "{}")) // still there
		one.close()
		time.Sleep(9 * time.Second)
		r.post(id, "", call("2", "x", "{}")) // a sign of life
		time.Sleep(9 * time.Second)
		server.write(t, update("s1", "a"))
		time.Sleep(2 * time.Second)
		if got := server.read(t); got != call("1", "x", "{}") {
			t.Errorf("read %s", got)
		}
		server.read(t)
		server.wantLost(t, "no stream open for 10s")
		r.gone(id)
	})
	bubble(t, "a reader takes nothing", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main, one := r.listen(id, ""), r.listen(id, "s1")
		go func() {
			for main.line() != "end" {
			}
		}()
		start := time.Now()
		server.write(t, update("s1", repeat(1<<20)))
		server.wantLost(t, "a stream took nothing for 1m0s")
		if d := time.Since(start); d != time.Minute {
			t.Errorf("it took %v", d)
		}
		one.close()
		r.gone(id)
	})
	bubble(t, "too much waits", func(t *testing.T) {
		r := newBubble(t, func(o *streamhttp.Options) { o.MaxBufferedBytes = 1000 })
		id, server := r.open()
		main := r.listen(id, "")
		go func() {
			for main.line() != "end" {
			}
		}()
		server.write(t, update("s1", repeat(2000)))
		start := time.Now()
		err := server.frames.Write([]byte(update("s1", "b")))
		if d := time.Since(start); err == nil || d != time.Minute {
			t.Errorf("Write: %v after %v", err, d)
		}
		server.wantLost(t, "took nothing")
		r.gone(id)
	})
	for name, limit := range map[string]func(*streamhttp.Options){
		"bytes":    func(o *streamhttp.Options) { o.MaxBufferedBytes = 1000 },
		"messages": func(o *streamhttp.Options) { o.MaxBuffered = 3 },
	} {
		bubble(t, "a slow reader slows its server down: "+name, func(t *testing.T) {
			r := newBubble(t, limit)
			id, server := r.open()
			wrote := make(chan int, 100)
			go func() {
				for i := range 20 {
					if server.frames.Write([]byte(update("s1", repeat(400)))) != nil {
						return
					}
					wrote <- i
				}
				close(wrote)
			}()
			time.Sleep(50 * time.Second)
			if n := len(wrote); n > 4 {
				t.Errorf("%d messages were taken", n)
			}
			one := r.listen(id, "s1")
			for range 20 {
				one.want(update("s1", repeat(400)))
			}
			if _, ok := <-wrote; !ok {
				t.Error("nothing was written")
			}
		})
	}
	bubble(t, "a body that stops coming", func(t *testing.T) {
		r := newBubble(t)
		id, _ := r.open()
		body, feed := io.Pipe()
		req := r.request(http.MethodPost, "", "Acp-Connection-Id", id)
		req.Body, req.ContentLength = body, 100
		start := time.Now()
		go func() { _, _ = feed.Write([]byte(`{"jsonrpc"`)) }()
		res, err := r.http.Do(req)
		_ = feed.Close()
		if err == nil {
			defer res.Body.Close()
		}
		if d := time.Since(start); err != nil || res.StatusCode != http.StatusRequestTimeout || d != time.Minute {
			t.Errorf("got %v, %v after %v", res, err, d)
		}
	})
}

func TestOpen(t *testing.T) {
	bubble(t, "the peer", func(t *testing.T) {
		r := newBubble(t)
		r.url += "?agent=%20coder%20&token=" + annsToken
		_, server := r.open()
		if p := server.peer; p.Agent != "coder" || p.Principal.Name != "ann" || p.Connection != "c1" || p.Request != "r" || p.Protocol != "" {
			t.Errorf("got %+v", p)
		}
	})
	bubble(t, "a refused initialize", func(t *testing.T) {
		r := newBubble(t)
		got := make(chan answer, 1)
		go func() { got <- r.do(http.MethodPost, initialize) }()
		server := r.serve()
		server.read(t)
		refused := `{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}`
		server.write(t, refused)
		if a := <-got; a.status != http.StatusOK || a.body != refused || a.head.Get("Acp-Connection-Id") == "" {
			t.Errorf("got %d %s", a.status, a.body)
		}
	})
	bubble(t, "the server ends without an answer", func(t *testing.T) {
		r := newBubble(t, func(o *streamhttp.Options) {
			o.Serve = func(context.Context, jsonrpc.Frames, ws.Peer) {}
		})
		if a := r.do(http.MethodPost, initialize); a.status != http.StatusInternalServerError || !strings.Contains(a.body, `"id":0,"error"`) {
			t.Errorf("got %d %s", a.status, a.body)
		}
	})
	bubble(t, "the client goes before the answer", func(t *testing.T) {
		r := newBubble(t)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := r.http.Do(r.request(http.MethodPost, initialize).WithContext(ctx))
			failed <- err
		}()
		server := r.serve()
		server.read(t)
		cancel()
		if err := <-failed; err == nil {
			t.Error("the request succeeded")
		}
		if _, err := server.readEnd(t); !errors.Is(err, io.EOF) {
			t.Errorf("Read: %v", err)
		}
	})
	bubble(t, "too many connections", func(t *testing.T) {
		r := newBubble(t)
		var ids []string
		for range 4 {
			id, _ := r.open()
			ids = append(ids, id)
		}
		if a := r.do(http.MethodPost, initialize); a.status != http.StatusTooManyRequests || a.head.Get("Retry-After") == "" {
			t.Errorf("a fifth: %d", a.status)
		}
		bobs, _ := r.open("Authorization", "Bearer "+bobsToken)
		if a := r.do(http.MethodDelete, "", "Acp-Connection-Id", ids[0]); a.status != http.StatusAccepted {
			t.Errorf("DELETE: %d", a.status)
		}
		if bobs == "" {
			t.Error("another token found no place")
		}
	})
}
