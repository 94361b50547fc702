package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// ending is a way in which a session ends, and what its turns must see.
type ending struct {
	name    string
	cause   error // nil lets turns finish
	how     string
	deletes bool
	run     func(w *world, id domain.SessionID) error
}

func endings() []ending {
	return []ending{
		{"close", domain.SessionClosed, "close", false, func(w *world, id domain.SessionID) error { return w.end(w.svc.Close, w.client, id) }},
		{"stop", nil, "stop", false, func(w *world, id domain.SessionID) error { return w.end(w.svc.Stop, w.client, id) }},
		{"delete", domain.SessionClosed, "delete", true, func(w *world, id domain.SessionID) error { return w.end(w.svc.Delete, w.client, id) }},
		{"detach", domain.Disconnected, "disconnect", false, func(w *world, _ domain.SessionID) error {
			start := time.Now()
			w.svc.Detach(w.client, domain.Disconnected)
			if took := time.Since(start); took != 0 {
				w.t.Errorf("detach blocked for %v", took)
			}
			return nil
		}},
		{"shutdown", domain.ProcessEnding, "shutdown", false, func(w *world, _ domain.SessionID) error {
			return w.svc.Shutdown(context.Background(), domain.ProcessEnding)
		}},
	}
}

// Every ending in every state: the session is free at the end, its turns saw
// the cause or finished, and no prompt was taken meanwhile.
func TestEnd_InEveryState(t *testing.T) {
	for _, e := range endings() {
		for _, state := range []string{"opening", "idle", "busy", "queued", "closing", "stopping", "set aside"} {
			t.Run(e.name+" while "+state, func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) { endIn(t, w, e, state) })
			})
		}
	}
}

func endIn(t *testing.T, w *world, e ending, state string) {
	id := w.fresh()
	var turns []<-chan error
	busy := func(n int) {
		for range n {
			_, ended := w.begin(id, time.Second)
			turns = append(turns, ended)
		}
		synctest.Wait()
	}
	cause := e.cause
	var opened chan error
	switch state {
	case "opening":
		w.close(id)
		w.tools.hooks(func(context.Context, domain.Session) error { time.Sleep(time.Second); return nil }, nil)
		run, err := w.svc.Open(w.client, domain.OpenSession{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		opened = make(chan error, 1)
		go func() { _, err := run(context.Background()); opened <- err }()
		synctest.Wait()
	case "busy":
		busy(1)
	case "queued":
		busy(3)
	case "closing", "stopping":
		busy(2)
		first := w.svc.Stop
		if state == "closing" {
			first, cause = w.svc.Close, domain.SessionClosed
		}
		run, err := first(w.client, id)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := run(context.Background()); err != nil {
				t.Errorf("the first ending: %v", err)
			}
		}()
	case "set aside":
		time.Sleep(idleTimeout + time.Second)
		if w.leased(id) {
			t.Fatal("the session is still in memory")
		}
	}
	if err := e.run(w, id); err != nil {
		t.Errorf("%s: %v", e.name, err)
	}
	if _, err := w.tryAdmit(id, true); err == nil {
		t.Error("a prompt was taken after the end")
	}
	for _, ended := range turns {
		if err := <-ended; (cause == nil) != (err == nil) || (cause != nil && !errors.Is(err, cause)) {
			t.Errorf("a turn ended with %v, the cause is %v", err, cause)
		}
	}
	if opened != nil {
		if err := <-opened; !domain.HasCode(err, domain.SessionNotFound) {
			t.Errorf("the open ended with %v", err)
		}
	}
	time.Sleep(time.Minute)
	if w.leased(id) || w.tools.left() != 0 {
		t.Errorf("leased %v, %d toolsets", w.leased(id), w.tools.left())
	}
	if _, err := w.memory.Load(t.Context(), id); (err != nil) != e.deletes {
		t.Errorf("the row: %v", err)
	}
	if e.name == "shutdown" {
		return
	}
	w.tools.hooks(nil, nil)
	_, err := w.load(w.client, domain.OpenSession{ID: id})
	if e.deletes {
		w.wantCode(err, domain.SessionNotFound)
		return
	}
	if err != nil {
		t.Fatalf("it does not open again: %v", err)
	}
	w.says(id, whole(1)...)
}

func TestEnd_Twice(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		_, ended := w.begin(id, time.Minute)
		synctest.Wait()
		first, err := w.svc.Close(w.client, id)
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.svc.Close(w.client, id)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for _, run := range []func(context.Context) error{first, second} {
			group.Go(func() {
				if err := run(context.Background()); err != nil {
					t.Errorf("close: %v", err)
				}
				if w.tools.left() != 0 {
					t.Error("a close answered before the session was free")
				}
			})
		}
		group.Wait()
		<-ended
		w.wantCode(w.end(w.svc.Close, w.client, id), domain.SessionNotFound)
		if got := w.observer.life(); got != "+new -close" {
			t.Errorf("life %q", got)
		}
	})
}

// A close whose request is cancelled leaves the session to its last turn, and
// not to nobody.
func TestEnd_TheCloserGivesUp(t *testing.T) {
	for name, end := range map[string]func(*world) func(ports.Client, domain.SessionID) (func(context.Context) error, error){
		"stop": func(w *world) func(ports.Client, domain.SessionID) (func(context.Context) error, error) {
			return w.svc.Stop
		},
		"delete": func(w *world) func(ports.Client, domain.SessionID) (func(context.Context) error, error) {
			return w.svc.Delete
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				id := w.fresh()
				turn := w.admit(id)
				run, err := end(w)(w.client, id)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(context.Background())
				cancel(domain.RequestCancelled)
				if err := run(ctx); !errors.Is(err, domain.RequestCancelled) {
					t.Errorf("the close ended with %v", err)
				}
				turn.ticket.Done(nil)
				synctest.Wait()
				if w.leased(id) || w.tools.left() != 0 {
					t.Errorf("leased %v, %d toolsets", w.leased(id), w.tools.left())
				}
				if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
					t.Errorf("it does not open again: %v", err)
				}
			})
		})
	}
}

// What hangs while a session is freed holds its close up for a second and
// nobody else at all.
func TestEnd_ToolsAndStoreThatHang(t *testing.T) {
	cases := map[string]func(*world, chan struct{}){
		"tools": func(w *world, release chan struct{}) {
			w.tools.hooks(nil, func() error { <-release; return nil })
		},
		"lease": func(w *world, release chan struct{}) {
			w.store.before(func(ctx context.Context, m string) error {
				if m == "release" {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return nil
			})
		},
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				release := make(chan struct{})
				id, other := w.fresh(), w.fresh()
				set(w, release)
				start := time.Now()
				if err := w.end(w.svc.Close, w.client, id); err != nil {
					t.Errorf("close: %v", err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("the close took %v", took)
				}
				w.says(other, whole(1)...)
				if w.observer.troubles() == "" {
					t.Error("the observer saw nothing")
				}
				w.store.before(nil)
				w.tools.hooks(nil, nil)
				close(release)
				synctest.Wait()
				if err := w.memory.Release(t.Context(), id); err != nil { // the lease went with the store that hung
					t.Error(err)
				}
			})
		})
	}
}

func TestEnd_ToolThatPanics(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.tools.hooks(nil, func() error { panic("boom") })
		w.close(id)
		w.fresh()
		time.Sleep(idleTimeout + time.Second) // also on the timer's goroutine
		w.tools.hooks(nil, nil)
		if w.tools.left() != 0 {
			t.Errorf("%d toolsets are left", w.tools.left())
		}
	})
}

// A detach frees what the client had, at once for idle sessions and after the
// last turn for busy ones, and nobody else's.
func TestDetach(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		idle, busy := w.fresh(), w.fresh()
		other := &client{}
		opened, err := w.svc.New(t.Context(), other, in("/project"))
		if err != nil {
			t.Fatal(err)
		}
		turn := w.admit(busy)
		w.svc.Detach(w.client, domain.Disconnected)
		synctest.Wait()
		if w.leased(idle) || !w.leased(busy) || !errors.Is(context.Cause(turn.ctx), domain.Disconnected) {
			t.Errorf("idle leased %v, busy leased %v, cause %v", w.leased(idle), w.leased(busy), context.Cause(turn.ctx))
		}
		if err := turn.ticket.Live.Client().Send(t.Context(), busy, domain.TurnStarted{}); err != nil {
			t.Errorf("the turn cannot tell its end: %v", err)
		}
		turn.ticket.Done(nil)
		synctest.Wait()
		if w.leased(busy) {
			t.Error("the last turn did not free its session")
		}
		if !w.leased(opened.Session.ID) {
			t.Error("another client's session was freed")
		}
		if err := turn.ticket.Live.Client().Send(t.Context(), busy, domain.TurnStarted{}); !errors.Is(err, domain.Disconnected) {
			t.Errorf("after the end an update gives %v", err)
		}
		// What was in flight and opened a session after the detach is freed by
		// the second one.
		late := w.fresh()
		w.svc.Detach(w.client, domain.Disconnected)
		synctest.Wait()
		if w.leased(late) {
			t.Error("the second detach freed nothing")
		}
		w.svc.Detach(other, domain.Disconnected)
	})
}

func TestShutdown(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		first, second := w.fresh(), w.fresh()
		_, ended := w.begin(first, time.Hour)
		synctest.Wait()
		if err := w.svc.Shutdown(t.Context(), domain.ProcessEnding); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, domain.ProcessEnding) {
			t.Errorf("the turn ended with %v", err)
		}
		if w.leased(first) || w.leased(second) || w.tools.left() != 0 {
			t.Error("something is left after the shutdown")
		}
		_, err := w.svc.New(t.Context(), w.client, in("/project"))
		w.wantCode(err, domain.ShuttingDown)
		_, err = w.svc.Open(w.client, domain.OpenSession{ID: first})
		w.wantCode(err, domain.ShuttingDown)
		_, err = w.tryAdmit(first, true)
		w.wantCode(err, domain.ShuttingDown)
	})
}

// A shutdown waits for what a turn left running, as long as the kill ladder
// takes, and not longer than its context.
func TestShutdown_WaitsForStrays(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		stray := func(id domain.SessionID, lasts time.Duration) {
			gone := make(chan struct{})
			turn := w.admit(id)
			if _, err := turn.ticket.Live.Hold(t.Context()); err != nil {
				t.Fatal(err)
			}
			go func() {
				time.Sleep(lasts)
				turn.ticket.Live.Drop()
				close(gone)
			}()
			turn.ticket.Done(gone)
		}
		stray(w.fresh(), 500*time.Millisecond)
		start := time.Now()
		if err := w.svc.Shutdown(t.Context(), domain.ProcessEnding); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 500*time.Millisecond || w.tools.left() != 0 {
			t.Errorf("it took %v and %d toolsets are open", took, w.tools.left())
		}
	})
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn := w.admit(id) // nobody plays it
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := w.svc.Shutdown(ctx, domain.ProcessEnding); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a shutdown with a turn that hangs: %v", err)
		}
		turn.ticket.Done(nil)
	})
}

// The next turn waits for a stray at most two seconds, once.
func TestStray(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		for _, lasts := range []time.Duration{time.Second, time.Hour} {
			gone := make(chan struct{})
			w.admit(id).ticket.Done(gone)
			time.AfterFunc(lasts, func() { close(gone) })
			for i, want := range []time.Duration{min(lasts, 2*time.Second), 0} {
				start := time.Now()
				w.says(id)
				if took := time.Since(start); took != want {
					t.Errorf("a stray of %v: turn %d waited %v, want %v", lasts, i+1, took, want)
				}
			}
			w.admit(id).ticket.Done(gone)
			next := w.admit(id)
			w.svc.Cancel(w.client, id, domain.CancelledByClient)
			if err := next.run(0); lasts == time.Hour && !errors.Is(err, domain.CancelledByClient) {
				t.Errorf("a turn that is cancelled while it waits: %v", err)
			}
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestEvent(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		store, err := w.svc.Event(w.client, id, domain.ClientEvent{Type: "x"})
		if err != nil {
			t.Fatal(err)
		}
		late, err := w.svc.Event(w.client, id, domain.ClientEvent{Type: "late"})
		if err != nil {
			t.Fatal(err)
		}
		if err := store(t.Context()); err != nil {
			t.Error(err)
		}
		w.close(id)
		w.wantCode(late(t.Context()), domain.SessionNotFound)
		_, err = w.svc.Event(w.client, id, domain.ClientEvent{})
		w.wantCode(err, domain.SessionNotFound)
		var got []string
		for e, err := range w.memory.Records(t.Context(), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%+v", e.Record))
		}
		if len(got) != 1 {
			t.Errorf("the journal holds %v", got)
		}
	})
}
