package sessions_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func TestIdle_LeavesMemoryAndComesBackUnseen(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, append(whole(1), domain.PermissionGiven{Turn: "t1", Rules: []domain.Rule{{Allow: true, Tool: "x", Scope: "/"}}})...)
		for range 3 {
			time.Sleep(idleTimeout - time.Second)
			if !w.leased(id) {
				t.Fatal("it left too early")
			}
			time.Sleep(2 * time.Second)
			if w.leased(id) || w.tools.left() != 0 {
				t.Fatalf("leased %v, %d toolsets after the idle time", w.leased(id), w.tools.left())
			}
			turn := w.admit(id)
			if err := turn.ticket.Wait(turn.ctx); err != nil {
				t.Fatal(err)
			}
			view, err := turn.ticket.Live.Hold(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rules, err := turn.ticket.Live.Rules(t.Context())
			if err != nil || len(rules) != 1 || !w.leased(id) || w.tools.left() != 2 || view.Total.Input != 5 {
				t.Errorf("it came back as %+v with rules %v, %v", view, rules, err)
			}
			time.Sleep(3 * idleTimeout) // a turn keeps it in memory
			if !w.leased(id) {
				t.Error("it left memory during a turn")
			}
			turn.ticket.Live.Drop()
			turn.ticket.Done(nil)
		}
		if n := len(w.client.log()); n != 0 {
			t.Errorf("the client was told %d things", n)
		}
		if got, want := w.observer.life(), "+new -idle +restore -idle +restore -idle +restore"; got != want {
			t.Errorf("life %q, want %q", got, want)
		}
	})
}

func TestIdle_AnEventBringsItBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		time.Sleep(idleTimeout + time.Second)
		store, err := w.svc.Event(w.client, id, domain.ClientEvent{Type: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if err := store(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !w.leased(id) {
			t.Error("it was written without the lease")
		}
		time.Sleep(idleTimeout + time.Second)
		if w.leased(id) {
			t.Error("after an event it never leaves again")
		}
	})
}

func TestIdle_LoadBringsItBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, whole(1)...)
		time.Sleep(idleTimeout + time.Second)
		if _, err := w.load(w.client, domain.OpenSession{ID: id, Replay: true}); err != nil {
			t.Fatal(err)
		}
		if len(w.client.log()) == 0 {
			t.Error("nothing was replayed")
		}
		w.says(id, whole(2)...)
	})
}

// Another process may take a session that was set aside; then the next prompt
// is told, and nothing is merged.
func TestIdle_AnotherProcessTookIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.says(id, whole(1)...)
		time.Sleep(idleTimeout + time.Second)
		second := w.process(w.memory.Other())
		run, err := second.Open(w.client, domain.OpenSession{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run(t.Context()); err != nil {
			t.Fatalf("another process cannot have it: %v", err)
		}
		w.wantCode(w.admit(id).run(0, whole(2)...), domain.SessionActive)
		if err := second.Shutdown(t.Context(), domain.ProcessEnding); err != nil {
			t.Fatal(err)
		}
		w.says(id, whole(2)...)
	})
}

// A session that another process deleted is not found; its place is usable up
// to the close.
func TestIdle_AnotherProcessDeletedIt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		time.Sleep(idleTimeout + time.Second)
		if err := w.memory.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.wantCode(w.admit(id).run(0), domain.SessionNotFound)
		w.close(id)
	})
}

func TestIdle_WithoutADurableStoreNothingLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.durable.Store(false)
		opened := w.open(in("/project"))
		id := opened.Session.ID
		if len(opened.Notes) != 1 {
			t.Errorf("the person is told %v", opened.Notes)
		}
		w.says(id, whole(1)...)
		time.Sleep(10 * idleTimeout)
		if !w.leased(id) || w.svc.Durable() {
			t.Error("it left memory although nothing could bring it back")
		}
	})
}

// The question whether the store is durable may wait for the store: it must
// not be asked where prompts are admitted.
func TestIdle_ASlowStoreDoesNotHoldAdmissionUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		w.store.before(func(context.Context, string) error { time.Sleep(time.Minute); return nil })
		start := time.Now()
		if _, err := w.svc.Event(w.client, id, domain.ClientEvent{}); err != nil {
			t.Fatal(err)
		}
		w.admit(id).ticket.Done(nil)
		w.svc.Cancel(w.client, id, domain.CancelledByClient)
		if _, err := w.svc.Close(w.client, id); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("admission took %v", took)
		}
		w.store.before(nil)
		w.svc.Detach(w.client, domain.Disconnected)
	})
}

// What a turn left running keeps the session in memory; it leaves after that.
func TestIdle_WaitsForAStray(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		gone := make(chan struct{})
		turn := w.admit(id)
		if _, err := turn.ticket.Live.Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		turn.ticket.Done(gone)
		time.Sleep(idleTimeout + time.Second)
		if !w.leased(id) {
			t.Error("it left memory under a tool that still runs")
		}
		turn.ticket.Live.Drop()
		close(gone)
		time.Sleep(idleTimeout + time.Second)
		if w.leased(id) {
			t.Error("it never left memory after that")
		}
	})
}

// A prompt at the very moment at which the session is set aside is served.
func TestIdle_RacesWithAPrompt(t *testing.T) {
	for range 50 {
		bubble(t, func(t *testing.T, w *world) {
			id := w.fresh()
			w.store.before(func(context.Context, string) error { time.Sleep(time.Millisecond); return nil })
			time.Sleep(idleTimeout - 2*time.Millisecond)
			for i := range 5 {
				time.Sleep(time.Millisecond)
				_, ended := w.begin(id, 0)
				if err := <-ended; err != nil {
					t.Errorf("prompt %d: %v", i, err)
				}
			}
			synctest.Wait()
			w.store.before(nil)
		})
	}
}

// A session that was closed while a tool hangs, and is open again, keeps its
// lease when the tool returns at last.
func TestLease_SurvivesTheOldOwner(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn := w.admit(id)
		if _, err := turn.ticket.Live.Hold(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		turn.ticket.Done(gone)
		w.close(id)
		if _, err := w.load(w.client, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		turn.ticket.Live.Drop()
		close(gone)
		synctest.Wait()
		if !w.leased(id) || w.tools.left() != 2 {
			t.Errorf("leased %v, %d toolsets", w.leased(id), w.tools.left())
		}
		if err := turn.ticket.Live.Append(t.Context(), nil, domain.TitleSet{Title: "late"}); !domain.HasCode(err, domain.SessionNotFound) {
			t.Errorf("the old owner writes: %v", err)
		}
		w.says(id, whole(1)...)
	})
}
