package turns_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// answerLimit is the promise: a cancel is answered this soon, whatever hangs.
const answerLimit = 250 * time.Millisecond

// slowly is a turn that is somewhere else each millisecond: it thinks, speaks,
// asks for three readers and an editor, waits for the person, runs, speaks
// again. It takes about 60 ms.
func slowly(w *world, look, change *tool) {
	gap := 3 * time.Millisecond
	look.run = func(ctx context.Context, progress func(domain.ToolProgress)) (domain.ToolResult, error) {
		progress(domain.ToolProgress{Title: "reading"})
		return domain.ToolResult{Text: "read"}, pause(ctx, gap)
	}
	change.prepare = func(ctx context.Context, _ domain.ToolCall) error { return pause(ctx, gap) }
	change.run = takes(gap)
	w.client.answer = func(ctx context.Context, r domain.PermissionRequest) (domain.Decision, error) {
		if err := pause(ctx, gap); err != nil {
			return domain.Decision{}, err
		}
		return domain.Decision{Outcome: domain.Selected, Option: "allow-once"}, nil
	}
	w.store.hook(func(ctx context.Context, _ int, _ []domain.Record) (bool, error) { return false, pause(ctx, gap) })
	between := func(s step) step {
		return func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			s(ctx, req, func(ev domain.ModelEvent, err error) bool {
				if perr := pause(ctx, gap); perr != nil && err == nil {
					return yield(nil, perr) && false
				}
				return yield(ev, err)
			})
		}
	}
	w.model.play(between(wants("first ", "look", "look", "look", "change")), between(says("second")))
}

// Cancel at each half millisecond of a turn, and at the same instant as
// everything that happens in it.
func TestCancel_AtEveryMoment(t *testing.T) {
	stops := map[domain.Stop]int{}
	for at := time.Duration(0); at < 80*time.Millisecond; at += time.Millisecond / 2 {
		look, change := reader("look"), editor("change")
		bubble(t, []ports.Tool{look, change}, func(w *world) {
			slowly(w, look, change)
			r := w.begin("go")
			time.Sleep(at)
			cancelled := time.Now()
			was := r.ended()
			found := w.stop()
			stop := r.wait()
			stops[stop]++
			switch {
			case was && (stop != domain.StopEndTurn || found):
				t.Errorf("at %v: the turn had ended with %v, a cancel found %v", at, stop, found)
			case !was && stop != domain.StopCancelled && at < 50*time.Millisecond:
				t.Errorf("at %v: a running turn ended with %v", at, stop)
			case r.at.Sub(cancelled) > answerLimit:
				t.Errorf("at %v: the answer took %v", at, r.at.Sub(cancelled))
			}
			time.Sleep(2 * time.Second) // nothing may follow on its own
			w.check()
			after(w)
		})
	}
	if stops[domain.StopCancelled] < 80 || stops[domain.StopEndTurn] < 5 {
		t.Errorf("the moments miss the turn: %v", stops)
	}
}

// after demands that a session is as fresh as before: the next prompt ends by
// itself, at once.
func after(w *world) {
	w.t.Helper()
	w.store.hook(nil)
	w.client.setSend(nil)
	w.model.play(says("fresh"))
	start := time.Now()
	r := w.begin("next")
	r.want(domain.StopEndTurn)
	if took := r.at.Sub(start); took > 0 {
		w.t.Errorf("the next prompt took %v", took)
	}
	w.check()
}

// The session ends at every moment of a turn: the prompts are answered, and
// nothing is left of it.
func TestCancel_SessionEndsAtEveryMoment(t *testing.T) {
	ways := map[string]func(*world) error{
		"close": func(w *world) error {
			end, err := w.sessions.Close(w.client, w.id)
			if err != nil {
				return err
			}
			return end(w.t.Context())
		},
		"delete": func(w *world) error {
			end, err := w.sessions.Delete(w.client, w.id)
			if err != nil {
				return err
			}
			return end(w.t.Context())
		},
		"detach": func(w *world) error {
			w.client.gone()
			w.sessions.Detach(w.client, domain.Disconnected)
			return nil
		},
		"shutdown": func(w *world) error { return w.sessions.Shutdown(w.t.Context(), domain.ProcessEnding) },
	}
	for name, end := range ways {
		for at := time.Duration(0); at < 80*time.Millisecond; at += time.Millisecond {
			look, change := reader("look"), editor("change")
			bubble(t, []ports.Tool{look, change}, func(w *world) {
				slowly(w, look, change)
				first, queued := w.begin("go"), w.begin("waits")
				time.Sleep(at)
				ended := time.Now()
				was := first.ended()
				if err := end(w); err != nil {
					t.Errorf("%s at %v: %v", name, at, err)
				}
				if stop := first.wait(); !was && stop != domain.StopCancelled && at < 50*time.Millisecond {
					t.Errorf("%s at %v: a running turn ended with %v", name, at, stop)
				}
				if stop := queued.wait(); stop != domain.StopCancelled && at < 50*time.Millisecond {
					t.Errorf("%s at %v: a waiting turn ended with %v", name, at, stop)
				}
				if took := queued.at.Sub(ended); took > answerLimit {
					t.Errorf("%s at %v: the answers took %v", name, at, took)
				}
				time.Sleep(10 * time.Second)
				if w.box.left() != 0 {
					t.Errorf("%s at %v: tools are left open", name, at)
				}
				if name == "delete" {
					return
				}
				checkJournal(w)
				if err := w.store.Store.(*memory.Store).Other().Acquire(w.t.Context(), w.id); err != nil {
					t.Errorf("%s at %v: the lease was kept: %v", name, at, err)
				}
			})
		}
	}
}

func TestCancel_BeforeTheTaskRuns(t *testing.T) {
	bubble(t, nil, func(w *world) {
		run, err := w.engine.Begin(w.t.Context(), w.client, w.id, domain.Prompt{Blocks: []domain.Block{domain.Text{Text: "go"}}})
		if err != nil {
			t.Fatal(err)
		}
		if !w.stop() {
			t.Error("a cancel right behind the prompt was lost")
		}
		outcome, err := run()
		if err != nil || outcome.Stop != domain.StopCancelled {
			t.Errorf("outcome %+v, %v", outcome, err)
		}
		if n := len(w.model.seen()); n != 0 {
			t.Errorf("the model was asked %d times after the cancel", n)
		}
		if n := count[domain.UserSaid](w.records()); n != 1 {
			t.Errorf("%d prompts are in the journal: what the user said must be there on load", n)
		}
		after(w)
	})
}

func TestCancel_WithNothingRunningDoesNothing(t *testing.T) {
	bubble(t, nil, func(w *world) {
		if w.stop() {
			t.Error("an idle session had something to cancel")
		}
		w.begin("one").want(domain.StopEndTurn)
		if w.stop() {
			t.Error("a turn that was answered had something to cancel")
		}
		for range 10 {
			w.begin("more").want(domain.StopEndTurn)
		}
		if w.engine.Cancel(&client{}, w.id, domain.CancelledByClient) || w.engine.Cancel(w.client, "other", domain.CancelledByClient) {
			t.Error("a cancel reached a session that is not the client's")
		}
		w.check()
	})
}

func TestCancel_ByTheRequestsContext(t *testing.T) {
	for _, cause := range []error{domain.RequestCancelled, domain.Disconnected, domain.ProcessEnding, nil, fmt.Errorf("read: %w", domain.Disconnected)} {
		bubble(t, nil, func(w *world) {
			w.model.play(hang(domain.TextDelta{Text: "half"}))
			r := w.begin("go")
			synctest.Wait()
			r.cancel(cause)
			r.want(domain.StopCancelled)
			if r.outcome.Text != "half" {
				t.Errorf("the text so far is %q", r.outcome.Text)
			}
			w.check()
			after(w)
		})
	}
}

// hang yields events and then waits for the end of its context.
func hang(evs ...domain.ModelEvent) step {
	return func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		for _, ev := range evs {
			if !yield(ev, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(nil, fmt.Errorf("library: use of closed connection"))
	}
}

// The answer of a cancelled turn is a result whatever a library says on abort.
func TestCancel_WinsOverTheErrorItCauses(t *testing.T) {
	change := editor("change")
	change.run = func(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
		<-ctx.Done()
		return domain.ToolResult{}, domain.Errorf(domain.Internal, "signal: killed")
	}
	for name, steps := range map[string][]step{"model": {hang()}, "tool": {wants("", "change")}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, []ports.Tool{change}, func(w *world) {
				w.model.play(steps...)
				r := w.begin("go")
				synctest.Wait()
				w.stop()
				r.want(domain.StopCancelled)
				w.check()
				after(w)
			})
		})
	}
}

// stuck is a place where a turn can hang, and whether what hangs there heeds
// its context. Everything that ignores it waits for release.
type stuck struct {
	name string
	set  func(w *world, block func(context.Context) error)
	// told is set where the client had seen something before.
	told string
	// store is set where the store itself hangs: the next prompt cannot be
	// served before it answers.
	store bool
}

func stuckPlaces(look, change *tool) []stuck {
	blockAppend := func(n int) func(*world, func(context.Context) error) {
		return func(w *world, block func(context.Context) error) {
			w.model.play(wants("some text", "change"), says("done"))
			w.store.hook(func(ctx context.Context, i int, _ []domain.Record) (bool, error) {
				if i == n {
					return false, block(ctx)
				}
				return false, nil
			})
		}
	}
	onUpdate := func(match func(domain.Update) bool) func(*world, func(context.Context) error) {
		return func(w *world, block func(context.Context) error) {
			w.model.play(wants("some text", "change"), says("done"))
			var hung atomic.Bool
			w.client.setSend(func(ctx context.Context, u domain.Update) error {
				if match(u) && hung.CompareAndSwap(false, true) {
					_ = block(ctx)
					return errors.New("the update was dropped")
				}
				return nil
			})
		}
	}
	return []stuck{
		{"opening the model", func(w *world, block func(context.Context) error) { w.models.onOpen = block }, "", false},
		{"model before the first byte", func(w *world, block func(context.Context) error) {
			w.model.play(func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
				yield(nil, block(ctx))
			})
		}, "", false},
		{"model mid-stream", func(w *world, block func(context.Context) error) {
			w.model.play(func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
				if yield(domain.TextDelta{Text: "some "}, nil) && yield(domain.TextDelta{Text: "text"}, nil) {
					yield(nil, block(ctx))
				}
			})
		}, "some text", false},
		{"model after its finish", func(w *world, block func(context.Context) error) {
			w.model.play(func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
				if yield(domain.TextDelta{Text: "some text"}, nil) && yield(domain.Finish{Reason: domain.FinishStop}, nil) {
					_ = block(ctx)
				}
			})
		}, "some text", false},
		{"preparing a call", func(w *world, block func(context.Context) error) {
			change.prepare = func(ctx context.Context, _ domain.ToolCall) error { return block(ctx) }
			w.model.play(wants("some text", "change"), says("done"))
		}, "some text", false},
		{"permission", func(w *world, block func(context.Context) error) {
			w.client.answer = func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
				return domain.Decision{Outcome: domain.Selected, Option: "allow-once"}, block(ctx)
			}
			w.model.play(wants("some text", "change"), says("done"))
		}, "some text", false},
		{"tool", func(w *world, block func(context.Context) error) {
			change.run = func(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
				return domain.ToolResult{Text: "ok"}, block(ctx)
			}
			w.model.play(wants("some text", "change", "change"), says("done"))
		}, "some text", false},
		{"one of parallel tools", func(w *world, block func(context.Context) error) {
			n := 0
			look.run = func(ctx context.Context, _ func(domain.ToolProgress)) (domain.ToolResult, error) {
				look.mu.Lock()
				n++
				mine := n
				look.mu.Unlock()
				if mine == 2 {
					return domain.ToolResult{Text: "ok"}, block(ctx)
				}
				return domain.ToolResult{Text: "ok"}, pause(ctx, time.Second)
			}
			w.model.play(wants("some text", "look", "look", "look", "look", "look", "look"), says("done"))
		}, "some text", false},
		{"client at the turn's start", onUpdate(func(u domain.Update) bool { _, ok := u.(domain.TurnStarted); return ok }), "", false},
		{"client at a text", onUpdate(func(u domain.Update) bool { _, ok := u.(domain.AgentText); return ok }), "", false},
		{"client at an announcement", onUpdate(func(u domain.Update) bool { _, ok := u.(domain.CallOpened); return ok }), "some text", false},
		{"client at a status", onUpdate(func(u domain.Update) bool {
			c, ok := u.(domain.CallChanged)
			return ok && c.Status == domain.CallInProgress
		}), "some text", false},
		{"client at a call's end", onUpdate(func(u domain.Update) bool {
			c, ok := u.(domain.CallChanged)
			return ok && c.Status == domain.CallCompleted
		}), "some text", false},
		{"store at the prompt", blockAppend(1), "", true},
		{"store at the intent", blockAppend(2), "some text", true},
		{"store at the permission", blockAppend(3), "some text", true},
		{"store at the result", blockAppend(4), "some text", true},
	}
}

func TestCancel_WhateverHangs(t *testing.T) {
	for i := range stuckPlaces(reader("x"), editor("x")) {
		for _, heeds := range []bool{true, false} {
			look, change := reader("look"), editor("change")
			place := stuckPlaces(look, change)[i]
			name := place.name + ", ignoring its context"
			if heeds {
				name = place.name + ", heeding its context"
			}
			t.Run(name, func(t *testing.T) {
				bubble(t, []ports.Tool{look, change}, func(w *world) {
					h := &hanging{release: make(chan struct{}), heeds: heeds}
					place.set(w, h.block)
					hangs(w, place, h)
				})
			})
		}
	}
}

// hanging blocks whoever comes, until it is over.
type hanging struct {
	release chan struct{} // closed to let those go that ignore their context
	heeds   bool
	over    atomic.Bool
}

func (h *hanging) block(ctx context.Context) error {
	switch {
	case h.over.Load():
		return nil
	case h.heeds:
		<-ctx.Done()
		return context.Cause(ctx)
	}
	<-h.release
	return nil
}

func hangs(w *world, place stuck, h *hanging) {
	t := w.t
	r := w.begin("go")
	time.Sleep(10 * time.Second)
	if r.ended() {
		t.Fatalf("nothing hangs: %v, %v", r.outcome, r.err)
	}
	cancelled := time.Now()
	w.stop()
	r.want(domain.StopCancelled)
	if took := r.at.Sub(cancelled); took > answerLimit {
		t.Errorf("the answer took %v", took)
	}
	if r.outcome.Text != place.told {
		t.Errorf("the answer's text is %q, shown was %q", r.outcome.Text, place.told)
	}
	client := strings.HasPrefix(place.name, "client")
	told := w.client.log()
	if err := wholeStory(told); err != nil && (h.heeds || !client) { // a client that takes nothing is told nothing
		t.Errorf("when the answer went: %v\n%s", err, show(told))
	}
	// The next prompt waits for what was left behind, at most two seconds.
	h.over.Store(true)
	w.model.play(says("fresh"))
	start := time.Now()
	next := w.begin("next")
	if place.store && !h.heeds {
		time.Sleep(10 * time.Second)
		if next.ended() {
			t.Error("a prompt was answered while the store hangs")
		}
		start = time.Now()
		close(h.release)
	}
	next.want(domain.StopEndTurn)
	limit := 2 * time.Second
	if place.store {
		limit = 5 * time.Second // the journal has that long to take the end of the turn
	}
	if took := next.at.Sub(start); took > limit {
		t.Errorf("the next prompt took %v", took)
	}
	// Once the wait is over, later prompts do not wait again.
	start = time.Now()
	again := w.begin("again")
	again.want(domain.StopEndTurn)
	if took := again.at.Sub(start); took != 0 {
		t.Errorf("the prompt after the next took %v", took)
	}
	before := len(w.client.log())
	if !h.heeds && !place.store {
		close(h.release)
	}
	time.Sleep(10 * time.Second)
	if late := w.client.log()[before:]; len(late) > 0 {
		t.Errorf("told after all answers: %s", show(late))
	}
	if !place.store && (!client || (h.heeds && place.name == "client at a call's end")) {
		w.check()
		return
	}
	checkJournal(w)
}

// checkJournal is the half of check that holds although a client or a store
// hung: the journal is closed, valid and a whole story.
func checkJournal(w *world) {
	w.t.Helper()
	recs := w.records()
	conv := domain.NewConversation(0)
	var replayed []domain.Update
	for i, r := range recs {
		conv.Add(domain.Entry{Seq: domain.Seq(i + 1), Record: r})
		replayed = append(replayed, domain.Replay(r)...)
	}
	if open := conv.Settle(); len(open) > 0 {
		w.t.Errorf("the journal is left open: %+v", open)
	}
	if err := wholeStory(replayed); err != nil {
		w.t.Errorf("replay: %v\n%s", err, show(replayed))
	}
	if err := eachEndsOnce(recs); err != nil {
		w.t.Error(err)
	}
}

func TestCancel_TellsTheObserverWhichToolHangs(t *testing.T) {
	change := editor("change")
	release := make(chan struct{})
	bubble(t, []ports.Tool{change}, func(w *world) {
		release = make(chan struct{})
		change.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
			<-release
			return domain.ToolResult{Text: "late"}, nil
		}
		w.model.play(wants("", "change"))
		r := w.begin("go")
		synctest.Wait()
		w.stop()
		r.want(domain.StopCancelled)
		if got := strings.Join(w.observer.troubles(), "\n"); !strings.Contains(got, "change (call ") {
			t.Errorf("the observer saw %s", got)
		}
		close(release)
		synctest.Wait()
		w.check()
		if got := strings.Join(w.observer.troubles(), "\n"); strings.Contains(got, "journal") {
			t.Errorf("the late end of the work is taken for a fault of the journal: %s", got)
		}
	})
}

// A store that is slower than the answer to a cancel may be keeps what was shown
// and how the turn ended all the same, and that is no trouble.
func TestCancel_ASlowStoreHasTheEnd(t *testing.T) {
	for _, slow := range []time.Duration{150 * time.Millisecond, 220 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		t.Run(slow.String(), func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				w.model.play(func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
					if yield(domain.TextDelta{Text: "shown"}, nil) {
						<-ctx.Done()
						yield(nil, context.Cause(ctx))
					}
				})
				r := w.begin("go")
				synctest.Wait()
				w.store.hook(func(ctx context.Context, _ int, _ []domain.Record) (bool, error) {
					done := time.NewTimer(slow)
					defer done.Stop()
					select {
					case <-done.C:
						return true, nil
					case <-ctx.Done():
						return false, context.Cause(ctx)
					}
				})
				cancelled := time.Now()
				w.stop()
				r.want(domain.StopCancelled)
				if took := r.at.Sub(cancelled); took > answerLimit {
					t.Errorf("the answer took %v", took)
				}
				time.Sleep(10 * time.Second)
				recs := w.records()
				end, ok := recs[len(recs)-1].(domain.TurnFinished)
				if !ok || end.Stop != domain.StopCancelled || !strings.Contains(fmt.Sprint(recs), "shown") {
					t.Errorf("the journal ends with %#v of %v", recs[len(recs)-1], recs)
				}
				if got := w.observer.troubles(); len(got) > 0 {
					t.Errorf("troubles: %q", got)
				}
				w.check()
			})
		})
	}
}

// Work that goes on after it was given up reaches nobody: not the client, not
// the journal, not the answer.
func TestCancel_LateWorkIsNotHeard(t *testing.T) {
	change := editor("change")
	bubble(t, []ports.Tool{change}, func(w *world) {
		release := make(chan struct{})
		w.model.play(func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			if yield(domain.TextDelta{Text: "early"}, nil) {
				<-release
				if yield(domain.TextDelta{Text: "late"}, nil) && yield(domain.CallRequested{Call: domain.ModelCall{Name: "change", Args: []byte("{}")}}, nil) {
					yield(domain.Finish{Reason: domain.FinishCalls}, nil)
				}
			}
		})
		r := w.begin("go")
		synctest.Wait()
		w.stop()
		r.want(domain.StopCancelled)
		records := len(w.records())
		close(release)
		synctest.Wait()
		if change.ran() != 0 || len(w.records()) != records || strings.Contains(show(w.client.log()), "late") {
			t.Errorf("late work: ran %d, %d new records, told:\n%s", change.ran(), len(w.records())-records, show(w.client.log()))
		}
		if got := w.observer.troubles(); len(got) > 0 {
			t.Errorf("what was given up is taken for a fault: %q", got)
		}
		w.check()
		after(w)
	})
}

// A turn that is stored has ended: a client that does not take the last
// update, and a cancel after that, do not change how.
func TestCancel_AfterTheEndWasStored(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		bubble(t, nil, func(w *world) {
			h := &hanging{release: make(chan struct{}), heeds: heeds}
			w.client.setSend(func(ctx context.Context, u domain.Update) error {
				if _, ok := u.(domain.TurnEnded); ok {
					return h.block(ctx)
				}
				return nil
			})
			r := w.begin("go")
			time.Sleep(time.Second)
			cancelled := time.Now()
			w.stop()
			r.want(domain.StopEndTurn)
			if took := r.at.Sub(cancelled); took > answerLimit || r.outcome.Text != "hello" {
				t.Errorf("the answer took %v and says %q", took, r.outcome.Text)
			}
			h.over.Store(true)
			close(h.release)
			w.begin("next").want(domain.StopEndTurn)
			checkJournal(w)
			if end, ok := w.records()[3].(domain.TurnFinished); !ok || end.Stop != domain.StopEndTurn {
				t.Errorf("the journal says %+v", w.records()[3])
			}
		})
	}
}

// A tool that is left behind and returns after its session was closed brings
// nobody down and takes nothing from the session that is open again.
func TestCancel_ToolReturnsAfterItsSessionWasClosed(t *testing.T) {
	change := editor("change")
	bubble(t, []ports.Tool{change}, func(w *world) {
		release := make(chan struct{})
		change.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
			<-release
			return domain.ToolResult{Text: "late"}, nil
		}
		w.model.play(wants("", "change"))
		r := w.begin("go")
		synctest.Wait()
		end, err := w.sessions.Close(w.client, w.id)
		if err != nil {
			t.Fatal(err)
		}
		if err := end(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		r.want(domain.StopCancelled)
		open, err := w.sessions.Open(w.client, domain.OpenSession{ID: w.id})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := open(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		// The lease is still ours: another process may not have it.
		if err := w.store.Store.(*memory.Store).Other().Acquire(w.t.Context(), w.id); !domain.HasCode(err, domain.SessionActive) {
			t.Errorf("another process takes the session: %v", err)
		}
		change.run = nil
		after(w)
	})
}

// A cancel covers the prompts that wait, and none that comes later.
func TestCancel_CoversTheQueue(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(hang(domain.TextDelta{Text: "a"}), says("ok"))
		one, two, three := w.begin("one"), w.begin("two"), w.begin("three")
		synctest.Wait()
		if !w.stop() {
			t.Error("nothing was found")
		}
		four := w.begin("four")
		one.want(domain.StopCancelled)
		two.want(domain.StopCancelled)
		three.want(domain.StopCancelled)
		four.want(domain.StopEndTurn)
		if n := len(w.model.seen()); n != 2 {
			t.Errorf("the model was asked %d times, for the first and the last prompt", n)
		}
		w.check()
	})
}

func TestQueue(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			if pause(ctx, time.Second) == nil {
				says("ok")(ctx, req, yield)
			}
		})
		one := w.begin("one")
		_, err := w.tryBlocks(domain.Prompt{Blocks: []domain.Block{domain.Text{Text: "no queue"}}})
		if !domain.HasCode(err, domain.SessionBusy) {
			t.Errorf("a prompt that does not queue gets %v", err)
		}
		two, three := w.begin("two"), w.begin("three")
		if _, err := w.tryBegin("four"); !domain.HasCode(err, domain.SessionBusy) {
			t.Errorf("a prompt beyond the limit of two gets %v", err)
		}
		start := time.Now()
		for i, r := range []*running{one, two, three} {
			r.want(domain.StopEndTurn)
			if took := r.at.Sub(start); took != time.Duration(i+1)*time.Second {
				t.Errorf("prompt %d was answered after %v", i+1, took)
			}
		}
		w.check()
		// One that is cancelled while it waits makes room and disturbs nobody.
		one, two, three = w.begin("one"), w.begin("two"), w.begin("three")
		synctest.Wait()
		two.cancel(domain.RequestCancelled)
		two.want(domain.StopCancelled)
		four := w.begin("four")
		one.want(domain.StopEndTurn)
		three.want(domain.StopEndTurn)
		four.want(domain.StopEndTurn)
		w.check()
	})
}

// When the answer is out, the session takes the next prompt.
func TestQueue_PlaceIsFreeBeforeTheAnswer(t *testing.T) {
	bubble(t, nil, func(w *world) {
		for range 50 {
			run, err := w.engine.Begin(w.t.Context(), w.client, w.id, domain.Prompt{Blocks: []domain.Block{domain.Text{Text: "go"}}})
			if err != nil {
				t.Fatalf("an idle session refuses: %v", err)
			}
			if _, err := run(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Random cancels, closes of requests and prompts against a turn that is slow
// everywhere; only what must always hold is checked.
func TestCancel_RandomWalk(t *testing.T) {
	for seed := range uint64(60) {
		look, change := reader("look"), editor("change")
		bubble(t, []ports.Tool{look, change}, func(w *world) {
			slowly(w, look, change)
			rng := rand.New(rand.NewPCG(seed, 7))
			for range 30 {
				time.Sleep(time.Duration(rng.IntN(40)) * time.Millisecond / 2)
				switch rng.IntN(5) {
				case 0:
					w.stop()
				case 1:
					if n := len(w.turns); n > 0 {
						w.turns[rng.IntN(n)].cancel(domain.RequestCancelled)
					}
				case 2, 3, 4:
					if _, err := w.tryBegin("go"); err != nil && !domain.HasCode(err, domain.SessionBusy) {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
			}
			for _, r := range w.turns {
				<-r.done
				if r.err != nil {
					t.Errorf("seed %d: a prompt failed: %v", seed, r.err)
				}
			}
			w.check()
			after(w)
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
