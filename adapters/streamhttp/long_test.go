package streamhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// TestLongBodies: of the long messages of a connection few are read at a time,
// and short ones pass them.
func TestLongBodies(t *testing.T) {
	bubble(t, "they wait for each other", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		answers := make(chan string, 3)
		var bodies []*io.PipeWriter
		send := func(name string) {
			in, out := io.Pipe()
			bodies = append(bodies, out)
			go func() {
				req := r.request(http.MethodPost, "", "Acp-Connection-Id", id)
				req.Body, req.ContentLength = in, -1
				res, err := r.http.Do(req)
				if err != nil {
					answers <- err.Error()
					return
				}
				defer res.Body.Close()
				answers <- name + " " + res.Status
			}()
			go func() { _, _ = io.WriteString(out, call("1", name, "{}")[:10]) }()
			synctest.Wait()
		}
		finish := func(n int, name string) {
			t.Helper()
			_, _ = io.WriteString(bodies[n], call("1", name, "{}")[10:])
			_ = bodies[n].Close()
		}
		send("one")
		send("two")
		send("three") // nobody reads it yet
		r.post(id, "", call("2", "short", "{}"))
		if got := server.read(t); got != call("2", "short", "{}") {
			t.Errorf("read %s", got)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			finish(2, "three")
		}()
		synctest.Wait()
		select {
		case got := <-answers:
			t.Errorf("a third one was read: %s", got)
		default:
		}
		finish(0, "one")
		if got := server.read(t); got != call("1", "one", "{}") {
			t.Errorf("read %s", got)
		}
		<-done
		if got := server.read(t); got != call("1", "three", "{}") {
			t.Errorf("read %s", got)
		}
		finish(1, "two")
		if got := server.read(t); got != call("1", "two", "{}") {
			t.Errorf("read %s", got)
		}
		for range 3 {
			if got := <-answers; !strings.HasSuffix(got, "202 Accepted") {
				t.Errorf("answered %s", got)
			}
		}
	})
	bubble(t, "a connection that is over", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		for range 2 {
			in, out := io.Pipe()
			defer out.Close()
			go func() {
				req := r.request(http.MethodPost, "", "Acp-Connection-Id", id)
				req.Body, req.ContentLength = in, -1
				if res, err := r.http.Do(req); err == nil {
					_ = res.Body.Close()
				}
			}()
		}
		synctest.Wait()
		got := make(chan answer, 1)
		go func() { got <- r.do(http.MethodPost, `"`+strings.Repeat("x", 100<<10)+`"`, "Acp-Connection-Id", id) }()
		synctest.Wait()
		_ = server.frames.Close()
		if a := <-got; a.status != http.StatusNotFound {
			t.Errorf("answered %d %s", a.status, a.body)
		}
	})
	t.Run("the first message is a short one", func(t *testing.T) {
		r := newRig(t)
		if a := r.do(http.MethodPost, `"`+strings.Repeat("x", 1<<20)+`"`); a.status != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, `"limit":1048576`) {
			t.Errorf("answered %d %s", a.status, a.body)
		}
	})
}
