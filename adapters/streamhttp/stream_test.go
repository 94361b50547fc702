package streamhttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/streamhttp"
)

// bubble runs a test over pipes in fake time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

// TestStreams is where messages go, and in what order.
func TestStreams(t *testing.T) {
	bubble(t, "each to its own", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main, one, two := r.listen(id, ""), r.listen(id, "s1"), r.listen(id, "s2")
		r.post(id, "", call("1", "session/new", "{}"))
		r.post(id, "s1", call("2", "session/prompt", `{"sessionId":"s1"}`))
		r.post(id, "s2", call(`"3"`, "session/prompt", `{"sessionId":"s2"}`))
		ask := call(`"zc-out-1"`, "session/request_permission", `{"sessionId":"s1"}`)
		note := `{"jsonrpc":"2.0","method":"_berth/notice","params":{}}`
		server.write(t, result("1", `{"sessionId":"s1"}`), update("s1", "a"), update("s2", "b"), ask,
			result(`"3"`, "{}"), note, result("2", "{}"), result("77", "{}"))
		main.want(result("1", `{"sessionId":"s1"}`), note, result("77", "{}"))
		one.want(update("s1", "a"), ask, result("2", "{}"))
		two.want(update("s2", "b"), result(`"3"`, "{}"))
	})
	bubble(t, "what comes early waits", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		server.write(t, update("s1", "a"), update("s1", "b"), result("1", "{}"))
		r.listen(id, "s1").want(update("s1", "a"), update("s1", "b"))
		r.listen(id, "").want(result("1", "{}"))
	})
	bubble(t, "of two requests with one id the later is answered first", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		r.post(id, "s1", call("1", "session/prompt", `{"sessionId":"s1"}`))
		r.post(id, "", call("1", "session/list", `{}`))
		server.write(t, result("1", `"refused"`), result("1", `"done"`))
		r.listen(id, "").want(result("1", `"refused"`))
		r.listen(id, "s1").want(result("1", `"done"`))
	})
	bubble(t, "lines end with events", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		server.write(t, "{\"jsonrpc\":\"2.0\",\r\n\"id\":1,\r\"result\":\n\"a b\"}")
		r.listen(id, "").want(result("1", `"a b"`))
		if err := server.frames.Write([]byte("a\nb")); err == nil {
			t.Error("a frame that is no JSON was written on two lines")
		}
	})
	for _, method := range []string{"session/load", "session/resume"} {
		bubble(t, "the answer of "+method+" follows the history", func(t *testing.T) {
			r := newBubble(t)
			id, server := r.open()
			main, one := r.listen(id, ""), r.listen(id, "s1")
			r.post(id, "s1", call("1", method, `{"sessionId":"s1"}`))
			server.read(t)
			server.write(t, update("s1", repeat(100_000)), update("s1", repeat(100_000)), result("1", "{}"), update("s1", "live"))
			synctest.Wait()
			main.quiet()
			one.want(update("s1", repeat(100_000)))
			synctest.Wait()
			main.quiet()
			one.want(update("s1", repeat(100_000)))
			start := time.Now()
			main.want(result("1", "{}"))
			one.want(update("s1", "live"))
			if d := time.Since(start); d != 50*time.Millisecond {
				t.Errorf("it followed after %v", d)
			}
			// Where all was read long ago there is nothing to follow.
			time.Sleep(time.Second)
			r.post(id, "s1", call("2", method, `{"sessionId":"s1"}`))
			start = time.Now()
			server.write(t, result("2", "{}"))
			main.want(result("2", "{}"))
			if d := time.Since(start); d != 0 {
				t.Errorf("the second answer took %v", d)
			}
		})
	}
	bubble(t, "the answer of load does not wait for a stream that is not there", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main := r.listen(id, "")
		r.post(id, "s1", call("1", "session/load", `{"sessionId":"s1"}`))
		server.write(t, update("s1", "a"), result("1", "{}"))
		main.want(result("1", "{}"))
		r.listen(id, "s1").want(update("s1", "a"))
	})
	bubble(t, "nor for one that goes", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main, one := r.listen(id, ""), r.listen(id, "s1")
		r.post(id, "s1", call("1", "session/load", `{"sessionId":"s1"}`))
		server.write(t, update("s1", repeat(100_000)), update("s1", repeat(100_000)), result("1", "{}"))
		synctest.Wait()
		main.quiet()
		one.close()
		main.want(result("1", "{}"))
		r.listen(id, "s1").want(update("s1", repeat(100_000)))
	})
	bubble(t, "a request withdrawn before it was sent is never sent", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		main := r.listen(id, "")
		ask := func(n int) string {
			return call(fmt.Sprintf(`"zc-out-%d"`, n), "session/request_permission", `{"sessionId":"s1"}`)
		}
		withdraw := func(n int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"zc-out-%d"}}`, n)
		}
		server.write(t, ask(1), ask(2), withdraw(1), withdraw(9))
		main.want(withdraw(9))
		one := r.listen(id, "s1")
		one.want(ask(2))
		server.write(t, withdraw(2))
		main.want(withdraw(2))
		// A reader that comes back is not asked again.
		server.write(t, update("s1", "a"))
		one.want(update("s1", "a"))
		one.close()
		r.listen(id, "s1", "Last-Event-ID", "0").want(update("s1", "a"))
	})
	bubble(t, "a silent stream says that it is alive", func(t *testing.T) {
		r := newBubble(t)
		id, _ := r.open()
		main := r.listen(id, "")
		for range 3 {
			start := time.Now()
			if got := main.line(); got != ":" || time.Since(start) != 15*time.Second {
				t.Fatalf("got %q after %v", got, time.Since(start))
			}
		}
	})
	bubble(t, "too many streams", func(t *testing.T) {
		r := newBubble(t, func(o *streamhttp.Options) { o.MaxStreams = 2 })
		id, server := r.open()
		server.write(t, update("s1", "a"))
		one := r.listen(id, "s1")
		one.want(update("s1", "a"))
		two := r.listen(id, "s2")
		a := r.do(http.MethodGet, "", "Accept", "text/event-stream", "Acp-Connection-Id", id, "Acp-Session-Id", "s3")
		if a.status != http.StatusTooManyRequests {
			t.Errorf("a third stream: %d %s", a.status, a.body)
		}
		one.close()
		synctest.Wait()
		r.listen(id, "s3") // in the place of one that holds nothing new
		server.write(t, update("s4", "lost"))
		if got := two.next(); got != "end" {
			t.Errorf("got %s", got)
		}
		if _, err := server.readEnd(t); err == nil || !strings.Contains(err.Error(), "2 session streams") {
			t.Errorf("Read: %v", err)
		}
	})
}

// TestResume is Last-Event-ID.
func TestResume(t *testing.T) {
	few := func(o *streamhttp.Options) { o.KeptEvents = 3 }
	bubble(t, "a stream that broke loses nothing", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		one := r.listen(id, "s1")
		server.write(t, update("s1", "a"), update("s2", "elsewhere"), update("s1", "b"), update("s1", "c"))
		one.want(update("s1", "a"))
		seen := one.last
		one.close() // b and c may have been on the way
		server.write(t, update("s1", "d"))
		again := r.listen(id, "s1", "Last-Event-ID", seen)
		again.want(update("s1", "b"), update("s1", "c"), update("s1", "d"))
		server.write(t, update("s1", "e"))
		again.want(update("s1", "e"))
		again.close()
		all := r.listen(id, "s1", "Last-Event-ID", "0")
		for _, text := range []string{"a", "b", "c", "d", "e"} {
			all.want(update("s1", text))
		}
	})
	bubble(t, "without it only what was not sent comes", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		one := r.listen(id, "s1")
		server.write(t, update("s1", "a"))
		one.want(update("s1", "a"))
		one.close()
		synctest.Wait()
		server.write(t, update("s1", "b"))
		r.listen(id, "s1").want(update("s1", "b"))
	})
	bubble(t, "a reader that hangs makes way", func(t *testing.T) {
		r := newBubble(t)
		id, server := r.open()
		one := r.listen(id, "s1")
		server.write(t, update("s1", "a"), update("s1", repeat(1<<20)))
		one.want(update("s1", "a"))
		synctest.Wait() // the server is stuck in a write
		r.listen(id, "s1", "Last-Event-ID", one.last).want(update("s1", repeat(1<<20)))
		if got := one.next(); got != "end" {
			t.Errorf("the old reader got %.80s", got)
		}
	})
	bubble(t, "what is not kept is said to be gone", func(t *testing.T) {
		r := newBubble(t, few)
		id, server := r.open()
		main := r.listen(id, "")
		one := r.listen(id, "s1")
		for i := range 6 {
			server.write(t, update("s1", fmt.Sprint(i)))
			one.want(update("s1", fmt.Sprint(i)))
		}
		one.close()
		a := r.do(http.MethodGet, "", "Accept", "text/event-stream", "Acp-Connection-Id", id, "Acp-Session-Id", "s1", "Last-Event-ID", "2")
		if a.status != http.StatusGone || !strings.Contains(a.body, "load") {
			t.Errorf("got %d %s", a.status, a.body)
		}
		again := r.listen(id, "s1", "Last-Event-ID", "3")
		again.want(update("s1", "3"), update("s1", "4"), update("s1", "5"))
		go func() { // the beats of the main stream look after all streams
			for main.line() != "end" {
			}
		}()
		again.close()
		time.Sleep(5 * time.Minute)
		a = r.do(http.MethodGet, "", "Accept", "text/event-stream", "Acp-Connection-Id", id, "Acp-Session-Id", "s1", "Last-Event-ID", "5")
		if a.status != http.StatusGone {
			t.Errorf("minutes later: %d %s", a.status, a.body)
		}
		r.listen(id, "s1", "Last-Event-ID", "6") // nothing is missing
	})
	bubble(t, "however long the last event is, it is kept", func(t *testing.T) {
		r := newBubble(t, func(o *streamhttp.Options) { o.KeptBytes = 10 })
		id, server := r.open()
		one := r.listen(id, "s1")
		server.write(t, update("s1", "a"), update("s1", "b"))
		one.want(update("s1", "a"), update("s1", "b"))
		one.close()
		r.listen(id, "s1", "Last-Event-ID", "1").want(update("s1", "b"))
	})
	bubble(t, "all streams together keep no more than so much, of what was sent last", func(t *testing.T) {
		r := newBubble(t, func(o *streamhttp.Options) { o.KeptOfAll = 350_000 })
		id, server := r.open()
		gone := func(session, after string) {
			t.Helper()
			a := r.do(http.MethodGet, "", "Accept", "text/event-stream", "Acp-Connection-Id", id, "Acp-Session-Id", session, "Last-Event-ID", after)
			if a.status != http.StatusGone {
				t.Errorf("%s after %s: %d", session, after, a.status)
			}
		}
		piece := repeat(100_000)
		streams := map[string]*sse{}
		for _, name := range []string{"", "s1", "s2", "s3"} {
			streams[name] = r.listen(id, name)
		}
		for _, name := range []string{"s1", "s2", "s3", "s3", "s2"} { // events 1 to 5
			server.write(t, update(name, piece))
			streams[name].want(update(name, piece))
		}
		for _, s := range streams {
			s.close()
		}
		synctest.Wait()
		gone("s1", "0")
		gone("s2", "0")
		r.listen(id, "s1", "Last-Event-ID", "1") // nothing is missing
		r.listen(id, "s2", "Last-Event-ID", "2").want(update("s2", piece))
		r.listen(id, "s3", "Last-Event-ID", "0").want(update("s3", piece), update("s3", piece))
		server.write(t, update("s2", repeat(400_000)))
		r.listen(id, "s2", "Last-Event-ID", "5").want(update("s2", repeat(400_000))) // however long it is
		synctest.Wait()
		gone("s3", "0")
	})
	bubble(t, "a reader that is about to go is waited for", func(t *testing.T) {
		r := newBubble(t)
		id, _ := r.open()
		one := r.listen(id, "s1")
		time.AfterFunc(100*time.Millisecond, one.cancel)
		start := time.Now()
		r.listen(id, "s1")
		if d := time.Since(start); d != 100*time.Millisecond {
			t.Errorf("it took %v", d)
		}
	})
}
