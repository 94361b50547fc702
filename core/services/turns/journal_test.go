package turns_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// storeFault is a way in which an append goes wrong.
var errFull = domain.Errorf(domain.StoreUnavailable, "The disk is full")

// The n-th append fails, for every n of a turn with calls of every kind: the
// answer is a success only if everything is stored, the client sees every call
// end, and the session goes on.
func TestJournal_EachAppendFails(t *testing.T) {
	for _, applied := range []bool{false, true} {
		for _, forGood := range []bool{false, true} {
			if applied && forGood {
				continue
			}
			for n := 1; ; n++ {
				var total int
				t.Run(fmt.Sprintf("append %d fails, for good %v, applied all the same %v", n, forGood, applied), func(t *testing.T) {
					look, change := reader("look"), editor("change")
					bubble(t, []ports.Tool{look, change}, func(w *world) {
						w.model.play(wants("first", "look", "look", "change", "update_plan"), says("second"))
						w.client.answer = choose("allow-always")
						w.store.hook(func(_ context.Context, i int, _ []domain.Record) (bool, error) {
							if i == n || (forGood && i > n) {
								return applied, errFull
							}
							return false, nil
						})
						r := w.begin("go")
						<-r.done
						total = w.store.appends
						failedAppend(w, r, change, n <= total)
					})
				})
				if n > total {
					break
				}
			}
		}
	}
}

// An end that cannot be journalled is the turn's error, and the observer hears
// of it once.
func TestJournal_FailedEndIsObservedOnce(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(says("hello"))
		w.store.hook(func(_ context.Context, _ int, recs []domain.Record) (bool, error) {
			if _, ends := recs[len(recs)-1].(domain.TurnFinished); ends {
				return false, errFull
			}
			return false, nil
		})
		r := w.begin("go")
		<-r.done
		if !errors.Is(r.err, errFull) {
			t.Fatalf("the turn ended with %v, want %v", r.err, errFull)
		}
		w.observer.mu.Lock()
		defer w.observer.mu.Unlock()
		var heard []domain.Event
		for _, ev := range w.observer.events {
			switch ev := ev.(type) {
			case domain.Trouble:
				heard = append(heard, ev)
			case domain.TurnDone:
				if errors.Is(ev.Err, errFull) {
					heard = append(heard, ev)
				}
			}
		}
		if len(heard) != 1 {
			t.Errorf("the observer heard of it %d times: %+v", len(heard), heard)
		}
	})
}

func failedAppend(w *world, r *running, change *tool, broken bool) {
	t := w.t
	if err := wholeStory(w.client.log()); err != nil {
		t.Errorf("the client: %v\n%s", err, show(w.client.log()))
	}
	switch {
	case !broken && r.err != nil:
		t.Errorf("nothing failed and the answer is %v", r.err)
	case broken && r.err == nil:
		t.Errorf("an append failed and the answer is %v", r.outcome.Stop)
	case broken && !domain.HasCode(r.err, domain.StoreUnavailable) && !domain.HasCode(r.err, domain.Conflict):
		t.Errorf("the error is %v", r.err)
	}
	if broken && change.ran() > 0 {
		recs := w.records()
		began := false
		for _, rec := range recs {
			if b, ok := rec.(domain.CallBegan); ok && b.Call.Name == "change" {
				began = true
			}
		}
		if !began {
			t.Error("a call had its effect and its intent is not in the journal")
		}
	}
	told := len(w.client.log())
	time.Sleep(10 * time.Second)
	if late := w.client.log()[told:]; len(late) > 0 {
		t.Errorf("told after the answer: %s", show(late))
	}
	w.store.hook(nil)
	event, err := w.sessions.Event(w.client, w.id, domain.ClientEvent{Type: "still here"})
	if err == nil {
		err = event(w.t.Context())
	}
	if err != nil {
		t.Errorf("an event after the failure: %v", err)
	}
	w.model.play(says("fresh"))
	w.begin("next").want(domain.StopEndTurn)
	checkJournal(w)
	w.model.play(wants("more", "look"), says("fresh"))
	w.begin("and again").want(domain.StopEndTurn)
	checkJournal(w)
}

// A cancelled turn is answered as cancelled even when its end cannot be
// stored; what is missing is closed before the next turn.
func TestJournal_FailsDuringACancel(t *testing.T) {
	change := editor("change")
	change.run = takes(time.Hour)
	bubble(t, []ports.Tool{change}, func(w *world) {
		w.model.play(wants("some text", "change"))
		r := w.begin("go")
		synctest.Wait()
		w.store.hook(func(context.Context, int, []domain.Record) (bool, error) { return false, errFull })
		w.stop()
		r.want(domain.StopCancelled)
		if err := wholeStory(w.client.log()); err != nil {
			t.Error(err)
		}
		w.store.hook(nil)
		w.model.play(says("fresh"))
		w.begin("next").want(domain.StopEndTurn)
		checkJournal(w)
	})
}

// Another process wrote to the journal: the turn fails, nothing is merged, and
// the next one goes on from what is there.
func TestJournal_MovedOn(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.begin("one").want(domain.StopEndTurn)
		at := domain.Seq(len(w.records()))
		if _, err := w.store.Store.Append(w.t.Context(), w.id, at, domain.ClientEvent{Type: "foreign"}); err != nil {
			t.Fatal(err)
		}
		r := w.begin("two")
		<-r.done
		if !domain.HasCode(r.err, domain.Conflict) || count[domain.UserSaid](w.records()) != 1 {
			t.Errorf("error %v, journal %+v", r.err, w.records())
		}
		w.begin("three").want(domain.StopEndTurn)
		w.check()
	})
}

// A turn that a crash interrupted is settled once, when the session is read
// the next time, and the model is told.
func TestJournal_InterruptedTurnIsSettledOnce(t *testing.T) {
	look, change := reader("look"), editor("change")
	var whole []domain.Record
	bubble(t, []ports.Tool{look, change}, func(w *world) {
		w.client.answer = choose("allow-always")
		w.model.play(wants("first", "look", "look", "change", "change"), wants("second", "look"), says("third"))
		w.begin("go").want(domain.StopEndTurn)
		whole = w.records()
	})
	for n := range whole {
		bubble(t, []ports.Tool{look, change}, func(w *world) {
			ctx := w.t.Context()
			row := domain.Session{ID: "crashed", Key: "k", Agent: "default", Cwd: "/project"}
			if err := w.store.Create(ctx, row); err != nil {
				t.Fatal(err)
			}
			if _, err := w.store.Store.Append(ctx, row.ID, 0, whole[:n]...); err != nil {
				t.Fatal(err)
			}
			w.id = row.ID
			for round := range 3 {
				open, err := w.sessions.Open(w.client, domain.OpenSession{ID: row.ID, Replay: true})
				if err != nil {
					t.Fatal(err)
				}
				from := len(w.client.log())
				if _, err := open(ctx); err != nil {
					t.Fatal(err)
				}
				if err := wholeStory(w.client.log()[from:]); err != nil {
					t.Errorf("load %d of the first %d records: %v", round, n, err)
				}
				end, err := w.sessions.Close(w.client, row.ID)
				if err != nil {
					t.Fatal(err)
				}
				if err := end(ctx); err != nil {
					t.Fatal(err)
				}
			}
			want := n
			if settled := fold(whole[:n]).Settle(); len(settled) > 0 {
				want += len(settled)
			}
			if got := len(w.records()); got != want {
				t.Errorf("after three loads of %d records the journal holds %d, want %d", n, got, want)
			}
			open, err := w.sessions.Open(w.client, domain.OpenSession{ID: row.ID})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := open(ctx); err != nil {
				t.Fatal(err)
			}
			w.model.play(says("fresh"))
			w.begin("next").want(domain.StopEndTurn)
			reqs := w.model.seen()
			if err := answered(reqs[len(reqs)-1].Messages); err != nil {
				t.Errorf("from %d records: %v", n, err)
			}
			checkJournal(w)
		})
	}
}

func fold(recs []domain.Record) *domain.Conversation {
	conv := domain.NewConversation(0)
	for i, r := range recs {
		conv.Add(domain.Entry{Seq: domain.Seq(i + 1), Record: r})
	}
	return conv
}

// answered demands one output for each call, directly behind its reply.
func answered(msgs []domain.ModelMessage) error {
	owed := map[domain.CallID]bool{}
	for i, m := range msgs {
		if out, ok := m.(domain.ToolOutput); ok {
			if !owed[out.Call.ID] {
				return fmt.Errorf("message %d answers %s, which is not waiting", i, out.Call.ID)
			}
			delete(owed, out.Call.ID)
			continue
		}
		if len(owed) > 0 {
			return fmt.Errorf("message %d comes before the outputs of %v", i, owed)
		}
		if reply, ok := m.(domain.ModelReply); ok {
			for _, c := range reply.Calls {
				owed[c.ID] = true
			}
		}
	}
	if len(owed) > 0 {
		return fmt.Errorf("without output: %v", owed)
	}
	return nil
}

// What a client tells of the session between turns reaches the model with the
// next prompt, if it is meant for it.
func TestJournal_EventsBetweenTurns(t *testing.T) {
	bubble(t, nil, func(w *world) {
		event := func(typ string, forModel bool) {
			t.Helper()
			store, err := w.sessions.Event(w.client, w.id, domain.ClientEvent{Type: typ, Payload: []byte(`{"a":1}`), ForModel: forModel})
			if err != nil {
				t.Fatal(err)
			}
			if err := store(w.t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		event("opened", true)
		event("scrolled", false)
		w.begin("one").want(domain.StopEndTurn)
		w.model.play(func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			event("during", true)
			says("ok")(ctx, req, yield)
		})
		w.begin("two").want(domain.StopEndTurn)
		w.begin("three").want(domain.StopEndTurn)
		var said []string
		for _, m := range w.model.seen()[2].Messages {
			if in, ok := m.(domain.UserInput); ok {
				said = append(said, domain.PromptText(in.Blocks))
			}
		}
		want := []string{"[client event opened] {\"a\":1}\n\none", "two", "[client event during] {\"a\":1}\n\nthree"}
		if fmt.Sprint(said) != fmt.Sprint(want) {
			t.Errorf("the model reads %q, want %q", said, want)
		}
		w.check()
	})
}
