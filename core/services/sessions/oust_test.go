package sessions_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// takesNothing is what a client does whose connection is stuck.
func takesNothing(ctx context.Context, _ domain.Update) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// record tells an update as a turn does, with what is recorded held up as well.
func (u *turn) record(up domain.Update) error {
	f := u.ticket.Live.Feed()
	if err := f.Recording.Acquire(u.ctx); err != nil {
		return err
	}
	defer f.Recording.Release()
	if err := f.Sending.Acquire(u.ctx); err != nil {
		return err
	}
	defer f.Sending.Release()
	return f.Tell(u.ctx, up)
}

// A session can be taken at once from a client that takes nothing of what it is
// told, with all of it; the turn goes on.
func TestTakeover_FromWhoIsStuck(t *testing.T) {
	for _, waited := range []time.Duration{0, grace} {
		for _, replay := range []bool{false, true} {
			for _, unanswered := range []bool{false, true} {
				if unanswered && waited == 0 {
					continue // nobody comes while a turn runs but by taking it over
				}
				t.Run(fmt.Sprintf("waited for %v, replay %v, not answered yet %v", waited, replay, unanswered), func(t *testing.T) {
					bubble(t, func(t *testing.T, w *world) {
						w.config.Grace = waited
						w.svc = w.process(w.store)
						id := w.fresh()
						turn, _ := w.begin(id, time.Hour)
						synctest.Wait()
						if err := turn.record(domain.AgentText{ID: "m", Text: "one "}); err != nil {
							t.Fatal(err)
						}
						if unanswered { // its answer is stuck as well
							w.svc.Lose(w.client)
							w.client = &client{}
							if _, err := w.load(w.client, domain.OpenSession{ID: id, Answered: make(chan struct{})}); err != nil {
								t.Fatal(err)
							}
						}
						w.client.mu.Lock()
						w.client.onSend = takesNothing
						w.client.mu.Unlock()
						told := make(chan error, 1)
						go func() { told <- turn.record(domain.AgentText{ID: "m", Text: "two "}) }()
						synctest.Wait()
						other, at := &client{}, time.Now()
						if _, err := w.load(other, domain.OpenSession{ID: id, Takeover: true, Replay: replay}); err != nil {
							t.Fatal(err)
						}
						if took := time.Since(at); took > 500*time.Millisecond {
							t.Errorf("it took %v", took)
						}
						if err := <-told; err != nil {
							t.Errorf("the turn was told %v", err)
						}
						if err := turn.record(domain.AgentText{ID: "m", Text: "three"}); err != nil {
							t.Errorf("and afterwards %v", err)
						}
						want := "two  three"
						if replay {
							want = "one two  three"
						}
						if got := texts(other.log()); got != want {
							t.Errorf("the one who took it was told %q, want %q", got, want)
						}
						if _, err := w.tryAdmit(id, true); !domain.HasCode(err, domain.SessionNotFound) {
							t.Errorf("a prompt of the one before gets %v", err)
						}
						w.svc.Cancel(other, id, domain.CancelledByClient)
					})
				})
			}
		}
	}
}

// What is on its way to one who takes nothing is given up with all of it,
// whoever sent it: a tool may, while a turn does.
func TestTakeover_FromWhoIsStuckTwice(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn, _ := w.begin(id, time.Hour)
		synctest.Wait()
		w.client.mu.Lock()
		w.client.onSend = takesNothing
		w.client.mu.Unlock()
		told := make(chan error, 3)
		send := func(within context.Context) {
			told <- turn.ticket.Live.Client().Send(within, id, domain.Notice{Title: "by the way"})
		}
		tool, cancel := context.WithCancel(turn.ctx)
		defer cancel()
		go send(tool)
		synctest.Wait()
		go func() { told <- turn.record(domain.AgentText{ID: "m", Text: "one"}) }()
		synctest.Wait()
		go send(tool) // behind what the turn tells, which is under way
		synctest.Wait()
		at := time.Now()
		other := &client{}
		if _, err := w.load(other, domain.OpenSession{ID: id, Takeover: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if took := time.Since(at); took > 500*time.Millisecond || len(told) != cap(told) {
			t.Errorf("it took %v, and %d of %d are over", took, len(told), cap(told))
		}
		w.svc.Cancel(other, id, domain.CancelledByClient)
	})
}

// One that is slow is told to the end, and then that it lost the session.
func TestTakeover_FromWhoIsSlow(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn, _ := w.begin(id, time.Hour)
		synctest.Wait()
		w.client.mu.Lock()
		w.client.onSend = func(ctx context.Context, _ domain.Update) error {
			select {
			case <-time.After(200 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		w.client.mu.Unlock()
		told := make(chan error, 1)
		go func() { told <- turn.record(domain.AgentText{ID: "m", Text: "one"}) }()
		synctest.Wait()
		other := &client{}
		if _, err := w.load(other, domain.OpenSession{ID: id, Takeover: true}); err != nil {
			t.Fatal(err)
		}
		if err := <-told; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		log := w.client.log()
		if texts(log) != "one" || texts(other.log()) != "" {
			t.Errorf("they were told %q and %q", texts(log), texts(other.log()))
		}
		if n, ok := log[len(log)-1].(domain.Notice); !ok || n.Reason != domain.SessionTaken {
			t.Errorf("the last thing it was told is %+v", log[len(log)-1])
		}
		w.svc.Cancel(other, id, domain.CancelledByClient)
	})
}

// One that was dropped for somebody who then did not come is told, and the
// session waits for whoever opens it.
func TestTakeover_FromWhoIsStuckForNobody(t *testing.T) {
	patient(t, func(t *testing.T, w *world) {
		id := w.fresh()
		turn, _ := w.begin(id, time.Hour)
		synctest.Wait()
		stuck := true // until its context ends
		w.client.mu.Lock()
		w.client.onSend = func(ctx context.Context, u domain.Update) error {
			if stuck {
				stuck = false
				return takesNothing(ctx, u)
			}
			return nil
		}
		w.client.mu.Unlock()
		f := turn.ticket.Live.Feed()
		if err := f.Recording.Acquire(turn.ctx); err != nil { // a store that takes its time
			t.Fatal(err)
		}
		told := make(chan error, 1)
		go func() {
			if err := f.Sending.Acquire(turn.ctx); err != nil {
				told <- err
				return
			}
			defer f.Sending.Release()
			told <- f.Tell(turn.ctx, domain.AgentText{ID: "m", Text: "one"})
		}()
		synctest.Wait()
		run, err := w.svc.Open(&client{}, domain.OpenSession{ID: id, Takeover: true})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := run(ctx); err == nil {
			t.Fatal("it was opened")
		}
		f.Recording.Release()
		if err := <-told; err != nil {
			t.Errorf("the turn was told %v", err)
		}
		synctest.Wait()
		log := w.client.log()
		if len(log) == 0 {
			t.Fatal("the one before was not told of it")
		}
		if n, ok := log[len(log)-1].(domain.Notice); !ok || n.Reason != domain.SessionTaken {
			t.Errorf("the one before was told %+v", log)
		}
		if n := w.svc.Stats(); n.Detached != 1 {
			t.Errorf("the session is not waited for: %+v", n)
		}
		other := &client{}
		if _, err := w.load(other, domain.OpenSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		if got := texts(other.log()); got != "one" {
			t.Errorf("who came was told %q", got)
		}
		w.svc.Cancel(other, id, domain.CancelledByClient)
	})
}
