package sessions_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/services/sessions"
)

// A drain takes nothing new, lets what was admitted finish, and says when it
// has; what the clients have stays theirs.
func TestDrain_WaitsForWhatWasAdmitted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, other := w.fresh(), w.fresh()
		_, first := w.begin(id, 2*time.Second)
		second := w.admit(id) // waits behind it
		queued := make(chan error, 1)
		go func() { queued <- second.run(3 * time.Second) }()
		start, drained := time.Now(), make(chan error, 1)
		go func() { drained <- w.svc.Drain(t.Context()) }()
		synctest.Wait()

		_, err := w.tryAdmit(other, true)
		w.wantCode(err, domain.ShuttingDown)
		_, err = w.svc.New(t.Context(), w.client, in("/project"))
		w.wantCode(err, domain.ShuttingDown)
		_, err = w.load(&client{}, domain.OpenSession{ID: other, Dirs: domain.Directories{Cwd: "/project"}})
		w.wantCode(err, domain.ShuttingDown)
		if n := w.svc.Stats(); n != (sessions.Stats{Busy: 1, Idle: 1, Running: 1, Queued: 1}) {
			t.Errorf("in the drain: %+v", n)
		}

		if err := <-drained; err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("drained after %v with %v", time.Since(start), err)
		}
		if err := errors.Join(<-first, <-queued); err != nil {
			t.Errorf("the turns ended with %v", err)
		}
		if n := w.svc.Stats(); n != (sessions.Stats{Idle: 2}) {
			t.Errorf("after the drain: %+v", n)
		}
		if err := w.svc.Drain(t.Context()); err != nil {
			t.Errorf("a second drain: %v", err)
		}
	})
}

// A drain that takes too long ends with its context; the turns go on until
// they are cancelled.
func TestDrain_Limit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id := w.fresh()
		_, turn := w.begin(id, time.Hour)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, domain.ProcessEnding)
		defer cancel()
		if err := w.svc.Drain(ctx); !errors.Is(err, domain.ProcessEnding) {
			t.Errorf("drain ended with %v", err)
		}
		if n := w.svc.Stats(); n.Running != 1 {
			t.Errorf("%+v", n)
		}
		if err := w.svc.Shutdown(t.Context(), domain.ProcessEnding); err != nil {
			t.Fatal(err)
		}
		if err := <-turn; !errors.Is(err, domain.ProcessEnding) {
			t.Errorf("the turn ended with %v", err)
		}
		if err := w.svc.Drain(t.Context()); err != nil {
			t.Errorf("a drain after all: %v", err)
		}
	})
}

func TestDrain_NothingToWaitFor(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.fresh()
		if err := w.svc.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStats_SetAside(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.fresh()
		if n := w.svc.Stats(); n != (sessions.Stats{Idle: 1}) {
			t.Errorf("at first: %+v", n)
		}
		time.Sleep(idleTimeout + time.Second)
		if n := w.svc.Stats(); n != (sessions.Stats{SetAside: 1}) {
			t.Errorf("after a while: %+v", n)
		}
	})
}

// A session without a client is detached, whatever it does, until somebody
// comes or the grace is over; one whose client is only absent is not.
func TestStats_Detached(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		want := func(when string, want sessions.Stats) {
			t.Helper()
			synctest.Wait()
			if n := w.svc.Stats(); n != want {
				t.Errorf("%s: %+v, want %+v", when, n, want)
			}
		}
		busy := w.fresh()
		w.fresh()
		w.begin(busy, time.Hour)
		w.begin(busy, time.Hour)
		w.svc.Absent(w.client, true)
		want("absent", sessions.Stats{Busy: 1, Idle: 1, Running: 1, Queued: 1})
		w.svc.Lose(w.client)
		want("lost", sessions.Stats{Detached: 2, Running: 1, Queued: 1})
		c := &client{}
		if _, err := w.load(c, domain.OpenSession{ID: busy}); err != nil {
			t.Fatal(err)
		}
		want("one is taken", sessions.Stats{Busy: 1, Detached: 1, Running: 1, Queued: 1})
		w.svc.Lose(c)
		time.Sleep(grace - time.Minute)
		want("lost again", sessions.Stats{Detached: 2, Running: 1, Queued: 1})
		time.Sleep(2 * time.Minute)
		want("after the grace", sessions.Stats{})
	})
}
