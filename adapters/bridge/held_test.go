package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/bridge"
)

// back brings the gateway that comes after a cut to where it has agreed.
func (r *rig) back() *socket {
	r.t.Helper()
	g := <-r.dialed
	want(r.t, g, fmt.Sprintf(helloAgain, 1))
	write(r.t, g, `{"jsonrpc":"2.0","id":"bridge-1",`+offer)
	return g
}

// answered has a request of the editor's pass and be answered.
func (r *rig) answered(g *socket, request, answer string) {
	r.t.Helper()
	r.say(request)
	want(r.t, g, request)
	write(r.t, g, answer)
	want(r.t, r.editor, answer)
}

// TestHeld is what a connection has, and so what the one after it is given.
func TestHeld(t *testing.T) {
	const signIn = `{"jsonrpc":"2.0","id":%s,"method":"authenticate","params":{"methodId":"key"}}`
	done := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id) }
	t.Run("that it is signed in", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.answered(g, fmt.Sprintf(signIn, "5"), done(5))
			g.Cut()
			g = r.back()
			want(t, g, fmt.Sprintf(signIn, `"bridge-2"`))
			write(t, g, `{"jsonrpc":"2.0","id":"bridge-2","result":{}}`)
			want(t, g, fmt.Sprintf(reload, 3))
		})
	})
	t.Run("not any more after logout", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.answered(g, fmt.Sprintf(signIn, "5"), done(5))
			r.answered(g, `{"jsonrpc":"2.0","id":6,"method":"logout"}`, done(6))
			g.Cut()
			want(t, r.back(), fmt.Sprintf(reload, 2))
		})
	})
	for _, method := range []string{"session/close", "session/stop", "session/delete"} {
		t.Run("no session after "+method, func(t *testing.T) {
			bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
				g := r.open()
				r.answered(g, `{"jsonrpc":"2.0","id":5,"method":"`+method+`","params":{"sessionId":"s"}}`, done(5))
				g.Cut()
				silent(t, r.back())
			})
		})
	}
	t.Run("what the gateway can do now", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			g.Cut()
			g = <-r.dialed
			want(t, g, fmt.Sprintf(helloAgain, 1))
			write(t, g, `{"jsonrpc":"2.0","id":"bridge-1","result":{"protocolVersion":1}}`)
			got, _ := r.editor.Read()
			if !strings.Contains(string(got), "cannot load sessions") {
				t.Errorf("the prompt was answered %s", got)
			}
			silent(t, g)
		})
	})
	t.Run("a question by its new name is withdrawn by it", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			const withdrawn = `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"%s"}}`
			g := r.open()
			write(t, g, question(`"q1"`, "c1"))
			want(t, r.editor, question(`"q1"`, "c1"))
			g.Cut()
			g = r.back()
			want(t, r.editor, fmt.Sprintf(withdrawn, "q1"))
			want(t, g, fmt.Sprintf(reload, 2))
			write(t, g, `{"jsonrpc":"2.0","id":"bridge-2","result":{}}`, question(`"q1"`, "c1"), fmt.Sprintf(withdrawn, "q1"))
			want(t, r.editor, question(`"again-1"`, "c1"))
			want(t, r.editor, fmt.Sprintf(withdrawn, "again-1"))
		})
	})
}

// TestSameID says that two requests of one id are not open at a time.
func TestSameID(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		g := r.open()
		r.say(prompt)
		want(t, g, prompt)
		r.say(`{"jsonrpc":"2.0","id":2,"method":"session/list"}`)
		want(t, r.editor, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"A request with this id is still running","data":{"reason":"DUPLICATE_ID"}}}`)
		silent(t, g)
	})
}

// TestLimits is how long what is waited for.
func TestLimits(t *testing.T) {
	t.Run("an outage counts from when it began", func(t *testing.T) {
		bubble(t, bridge.Config{LostLimit: time.Minute}, func(t *testing.T, r *rig) {
			g := r.open()
			time.Sleep(time.Hour)
			r.refusing(errors.New("not now"))
			g.Cut()
			time.Sleep(50 * time.Second)
			r.refusing(nil)
			want(t, r.back(), fmt.Sprintf(reload, 2))
		})
	})
	t.Run("a gateway that does not answer when its client is back", func(t *testing.T) {
		bubble(t, bridge.Config{LostLimit: time.Hour}, func(t *testing.T, r *rig) {
			r.open().Cut()
			dead := <-r.dialed
			want(t, dead, fmt.Sprintf(helloAgain, 1))
			began := time.Now()
			g := <-r.dialed
			if d := time.Since(began); d < 2*time.Minute || d > 3*time.Minute {
				t.Errorf("it was given up after %v", d)
			}
			want(t, g, fmt.Sprintf(helloAgain, 2))
		})
	})
	t.Run("what was sent makes room", func(t *testing.T) {
		bubble(t, bridge.Config{LostLimit: time.Hour}, func(t *testing.T, r *rig) {
			g := r.open()
			big := `{"jsonrpc":"2.0","method":"x","params":{"a":"` + strings.Repeat("x", 100<<10) + `"}}`
			for range 20 {
				r.say(big)
				want(t, g, big)
			}
			r.refusing(errors.New("not now"))
			g.Cut()
			synctest.Wait()
			for range 10 {
				r.say(`{"jsonrpc":"2.0","method":"x"}`)
			}
			synctest.Wait()
			if n := len(r.editor.out); n != 0 {
				t.Errorf("%d small messages of the editor are not read, though next to nothing waits", n)
			}
		})
	})
}

// TestGivenUp says that nothing is said to the next gateway before what was
// being written to the one before is given up: it could still arrive there, and
// be taken for what never did.
func TestGivenUp(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		g := r.open()
		stuck := make(chan struct{})
		g.peer.stuck = stuck
		r.say(prompt)
		synctest.Wait()
		g.Cut()
		time.Sleep(time.Second)
		if len(r.dialed) > 0 {
			t.Errorf("the next gateway is dialled while a frame is on its way to the one before")
		}
		close(stuck)
		want(t, r.back(), fmt.Sprintf(reload, 2))
	})
}

// TestGoodbye says that Run waits until the gateway has heard of the end, for
// a moment.
func TestGoodbye(t *testing.T) {
	for _, tt := range []struct {
		name        string
		takes, want time.Duration
	}{{"soon", 300 * time.Millisecond, 300 * time.Millisecond}, {"never", time.Hour, time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				editor, theirs := newSocket(64)
				ours, g := newSocket(64)
				gone := make(chan struct{})
				b := bridge.New(theirs, bridge.Config{Dial: func(context.Context, string, string) (bridge.Dialled, error) {
					return bridge.Dialled{Frames: ours, Connection: "c", Gone: gone}, nil
				}})
				done := make(chan error, 1)
				go func() { done <- b.Run(context.Background()) }() // ends with the editor
				write(t, editor, hello)
				want(t, g, hello)
				write(t, g, welcome)
				want(t, editor, welcome)
				began := time.Now()
				_ = editor.Close()
				synctest.Wait()
				timer := time.AfterFunc(tt.takes, func() { close(gone) })
				defer timer.Stop()
				_ = g.Close()
				if err := <-done; err != nil {
					t.Errorf("Run: %v", err)
				}
				if d := time.Since(began); d != tt.want {
					t.Errorf("it ended after %v, want %v", d, tt.want)
				}
			})
		})
	}
}

// TestEnding is a gateway that finishes its turns to end: what it takes no more
// waits for the next one, and the editor sees a pause.
func TestEnding(t *testing.T) {
	ending := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32800,"message":"The agent is shutting down","data":{"reason":"SHUTTING_DOWN"}}}`, id)
	}
	const (
		list   = `{"jsonrpc":"2.0","id":9,"method":"session/list","params":{}}`
		listed = `{"jsonrpc":"2.0","id":9,"result":{"sessions":[]}}`
		cancel = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`
		done   = `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`
	)
	later := strings.ReplaceAll(newSession, `"id":1`, `"id":3`)
	next := func(r *rig) *socket {
		r.t.Helper()
		g := r.back()
		want(r.t, g, fmt.Sprintf(reload, 2))
		write(r.t, g, `{"jsonrpc":"2.0","id":"bridge-2","result":{}}`)
		return g
	}
	t.Run("prompts and new sessions wait", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			write(t, g, ending(2))
			r.say(later)
			want(t, g, later)
			write(t, g, ending(3))
			silent(t, r.editor)
			r.answered(g, list, listed) // what it still answers passes
			g.Cut()
			g = next(r)
			want(t, g, prompt)
			want(t, g, later)
			write(t, g, done)
			want(t, r.editor, done)
		})
	})
	t.Run("one that was cancelled meanwhile is answered", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			write(t, g, ending(2))
			silent(t, r.editor)
			r.say(cancel)
			want(t, g, cancel)
			g.Cut()
			g = next(r)
			want(t, g, prompt)
			want(t, g, cancel)
		})
	})
	t.Run("a session that it does not bring back waits", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			g.Cut()
			g = r.back()
			want(t, g, fmt.Sprintf(reload, 2))
			write(t, g, strings.ReplaceAll(ending(2), `"id":2`, `"id":"bridge-2"`))
			g = <-r.dialed
			want(t, g, fmt.Sprintf(helloAgain, 3))
			write(t, g, `{"jsonrpc":"2.0","id":"bridge-3",`+offer)
			want(t, g, fmt.Sprintf(reload, 4))
			write(t, g, `{"jsonrpc":"2.0","id":"bridge-4","result":{}}`)
			want(t, g, `{"jsonrpc":"2.0","id":2,"method":"_berth/session/await","params":{"sessionId":"s"}}`)
			write(t, g, done)
			want(t, r.editor, done)
		})
	})
	t.Run("a cancel is for what it names", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			const other, withdrawn = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"u"}}`,
				`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":9}}`
			g := r.open()
			r.say(prompt)
			r.say(list)
			want(t, g, prompt)
			want(t, g, list)
			write(t, g, ending(2), ending(9))
			silent(t, r.editor)
			r.say(other)
			r.say(withdrawn)
			want(t, g, other)
			want(t, g, withdrawn)
			g.Cut()
			g = next(r)
			want(t, g, prompt)
			want(t, g, list)
			want(t, g, withdrawn)
			silent(t, g)
		})
	})
	t.Run("a session that is loaded waits", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			const (
				load  = `{"jsonrpc":"2.0","id":4,"method":"session/load","params":{"sessionId":"u","cwd":"/w","mcpServers":[]}}`
				other = `"sessionId":"u"`
			)
			of := func(frame string) string { return strings.Replace(frame, `"sessionId":"s"`, other, 1) }
			g := r.open()
			r.say(load)
			want(t, g, load)
			write(t, g, of(said("m1", "hi")), ending(4)) // some of the history had come
			want(t, r.editor, of(said("m1", "hi")))
			silent(t, r.editor)
			g.Cut()
			g = next(r)
			want(t, g, load)
			const loaded = `{"jsonrpc":"2.0","id":4,"result":{}}`
			write(t, g, of(said("m1", "hi")), of(chunk("m2", "ho")), loaded)
			want(t, r.editor, of(chunk("m2", "ho"))) // and comes once
			want(t, r.editor, loaded)
		})
	})
	for _, method := range []string{"session/resume", "session/list", "_berth/session/observe"} {
		t.Run(method+" waits", func(t *testing.T) {
			bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
				asks := `{"jsonrpc":"2.0","id":9,"method":"` + method + `","params":{"sessionId":"u"}}`
				g := r.open()
				r.say(asks)
				want(t, g, asks)
				write(t, g, ending(9))
				silent(t, r.editor)
				g.Cut()
				want(t, next(r), asks)
			})
		})
	}
	t.Run("what may not be done twice is told", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.answered(g, `{"jsonrpc":"2.0","id":9,"method":"session/fork","params":{"sessionId":"s"}}`, ending(9))
		})
	})
}
