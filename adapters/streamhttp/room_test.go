package streamhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/streamhttp"
)

// taken reports whether a message is taken without waiting.
func (s *served) taken(frame string) bool {
	wrote := make(chan error, 1)
	go func() { wrote <- s.frames.Write([]byte(frame)) }() // ends with the connection
	synctest.Wait()
	select {
	case err := <-wrote:
		return err == nil
	default:
		return false
	}
}

// TestRoom is what counts as not yet sent.
func TestRoom(t *testing.T) {
	few := func(o *streamhttp.Options) { o.MaxBuffered = 3 }
	fill := func(t *testing.T, server *served) {
		t.Helper()
		for i := range 3 {
			if !server.taken(update("s1", fmt.Sprint("new ", i))) {
				t.Fatalf("no room for message %d of 3", i+1)
			}
		}
		if server.taken(update("s1", "one too many")) {
			t.Error("there is room for a fourth")
		}
	}
	bubble(t, "what is sent again waits again", func(t *testing.T) {
		r := newBubble(t, few)
		id, server := r.open()
		r.listen(id, "") // so that somebody is there
		one := r.listen(id, "s1")
		for i := range 3 {
			server.write(t, update("s1", fmt.Sprint(i)))
			one.want(update("s1", fmt.Sprint(i)))
		}
		for range 5 {
			one.close()
			one = r.listen(id, "s1", "Last-Event-ID", "0")
			one.want(update("s1", "0"), update("s1", "1"), update("s1", "2"))
		}
		one.close()
		synctest.Wait()
		fill(t, server)
	})
	bubble(t, "a client that listens and takes nothing has less", func(t *testing.T) {
		r := newBubble(t, func(o *streamhttp.Options) { o.MaxUnreadBytes = 150_000 })
		id, server := r.open()
		piece := update("s1", repeat(100_000))
		for range 5 {
			if !server.taken(piece) {
				t.Fatal("no room for what it has not asked for yet")
			}
		}
		one := r.listen(id, "s1")
		for range 5 {
			one.want(piece)
		}
		for i := range 3 { // one is on its way, two wait
			if !server.taken(piece) {
				t.Fatalf("no room for message %d of 3", i+1)
			}
		}
		if server.taken(piece) {
			t.Error("there is room for a fourth")
		}
		for range 4 {
			one.want(piece)
		}
		r.listen(id, "")
		other := update("s2", repeat(100_000))
		for range 5 {
			if !server.taken(other) {
				t.Fatal("no room for another session, whose stream is not opened")
			}
		}
	})
	bubble(t, "a stream that nobody opens has a bound", func(t *testing.T) {
		r := newBubble(t)
		_, server := r.open()
		piece := update("s1", repeat(1<<20))
		for i := range 16 {
			if !server.taken(piece) {
				t.Fatalf("no room for MiB %d of 16", i+1)
			}
		}
		if server.taken(piece) {
			t.Error("there is room for more")
		}
	})
	bubble(t, "a request that was withdrawn does not", func(t *testing.T) {
		r := newBubble(t, few)
		id, server := r.open()
		r.listen(id, "")
		for i := range 2 {
			server.write(t, call(fmt.Sprintf(`"out-%d"`, i), "session/request_permission", `{"sessionId":"s1"}`))
		}
		for i := range 2 {
			server.write(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"out-%d"}}`, i))
		}
		fill(t, server)
	})
	bubble(t, "a client that takes something now and then is not lost", func(t *testing.T) {
		r := newBubble(t, func(o *streamhttp.Options) { o.MaxBufferedBytes = 1 << 20 })
		id, server := r.open()
		main, one := r.listen(id, ""), r.listen(id, "s1")
		go func() { // ends with the stream
			for main.line() != "end" {
			}
		}()
		piece := repeat(100_000)
		for range 9 {
			server.write(t, update("s1", piece))
		}
		server.write(t, update("s2", repeat(1<<20)))
		wrote := make(chan error, 1)
		go func() { wrote <- server.frames.Write([]byte(update("s1", "last"))) }() // ends with room
		for range 9 {
			time.Sleep(40 * time.Second)
			one.want(update("s1", piece))
		}
		two := r.listen(id, "s2")
		go func() { // ends with the stream
			for two.line() != "end" {
			}
		}()
		if err := <-wrote; err != nil {
			t.Fatalf("Write: %v", err)
		}
		one.want(update("s1", "last"))
	})
}

// TestAnswerTwice: a request of ours is known until it is answered, and no
// longer.
func TestAnswerTwice(t *testing.T) {
	bubble(t, "in its session, and then anywhere", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		server.write(t, call(`"out-1"`, "session/request_permission", `{"sessionId":"s1"}`))
		answer := result(`"out-1"`, "{}")
		if a := r.do(http.MethodPost, answer, "Acp-Connection-Id", id); a.status != http.StatusBadRequest {
			t.Errorf("outside its session: %d", a.status)
		}
		r.post(id, "s1", answer)
		r.post(id, "", answer)
	})
}

// TestClosed is what becomes of what was written when the server ends.
func TestClosed(t *testing.T) {
	bubble(t, "an answer behind a history comes", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main, one := r.listen(id, ""), r.listen(id, "s1")
		r.post(id, "s1", call("1", "session/load", `{"sessionId":"s1"}`))
		server.write(t, update("s1", repeat(100_000)), update("s1", repeat(100_000)), result("1", "{}"))
		if err := server.frames.Close(); err != nil {
			t.Fatal(err)
		}
		main.want(result("1", "{}"), "end")
		one.want(update("s1", repeat(100_000)), update("s1", repeat(100_000)), "end")
	})
	bubble(t, "a stream that takes its time is not waited for", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		one := r.listen(id, "s1")
		server.write(t, update("s1", repeat(100_000)), update("s1", repeat(200_000)))
		if err := server.frames.Close(); err != nil {
			t.Fatal(err)
		}
		one.want(update("s1", repeat(100_000)))
		time.Sleep(10 * time.Second) // twice what it may take
		if got := one.next(); got != "end" {
			t.Errorf("got %d bytes after the end", len(got))
		}
	})
}

// A request that was never taken leaves nothing: an answer with its id is that
// to no request, and goes where those go.
func TestNotTaken(t *testing.T) {
	bubble(t, "a client that gives its request up", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main, one := r.listen(id, ""), r.listen(id, "s1")
		for i := range 16 { // the inbox
			r.post(id, "", call(fmt.Sprint(100+i), "a", "{}"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan error, 1)
		go func() { // ends with ctx
			req := r.request(http.MethodPost, call("7", "session/prompt", `{"sessionId":"s1"}`), "Acp-Connection-Id", id, "Acp-Session-Id", "s1")
			res, err := r.http.Do(req.WithContext(ctx))
			if err == nil {
				_ = res.Body.Close()
			}
			given <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-given; err == nil {
			t.Fatal("there is room for a message more")
		}
		synctest.Wait()
		server.write(t, result("7", "{}"))
		synctest.Wait()
		one.quiet()
		main.want(result("7", "{}"))
	})
}
