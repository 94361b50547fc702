package turns_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// trickles says pieces of thought and text with pauses between them.
func trickles(rng *rand.Rand, pieces int, longest time.Duration) step {
	return func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		for i := range pieces {
			if err := pause(ctx, time.Duration(rng.Int64N(int64(longest)))); err != nil {
				yield(nil, err)
				return
			}
			var ev domain.ModelEvent = domain.TextDelta{Text: fmt.Sprintf("word%d ", i)}
			if rng.IntN(4) == 0 {
				ev = domain.ThoughtDelta{Text: fmt.Sprintf("thought%d ", i)}
			}
			if !yield(ev, nil) {
				return
			}
		}
		yield(domain.Finish{Reason: domain.FinishStop}, nil)
	}
}

// left is what a process that dies now leaves of the replies, as the next one
// reads it.
func (w *world) left() string {
	recs := w.records()
	conv := domain.NewConversation(0)
	for i, r := range recs {
		conv.Add(domain.Entry{Seq: domain.Seq(i + 1), Record: r})
	}
	var ups []domain.Update
	for _, r := range append(recs, conv.Settle()...) {
		if _, ok := r.(domain.AssistantSaid); ok {
			ups = append(ups, domain.Replay(r)...)
		}
	}
	return spoken(ups)
}

// shownWords is what the client was shown of replies.
func (w *world) shownWords() string { return spoken(w.client.log()) }

// spoken joins what a reader is shown of replies: the message of each piece and
// its text.
func spoken(ups []domain.Update) string {
	var b strings.Builder
	var last domain.MessageID
	add := func(id domain.MessageID, text string) {
		if id != last {
			fmt.Fprintf(&b, "\n%s: ", id)
			last = id
		}
		b.WriteString(text)
	}
	for _, u := range ups {
		switch u := u.(type) {
		case domain.AgentText:
			add(u.ID, u.Text)
		case domain.AgentThought:
			add(u.ID, u.Text)
		}
	}
	return b.String()
}

// Whenever a process dies, what its user had read a moment before is there: all
// of it, in its order, and nothing twice.
func TestKeep_OfAReplyThatComesSlowly(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				rng := rand.New(rand.NewPCG(seed, 1))
				longest := []time.Duration{50 * time.Millisecond, time.Second, 5 * time.Second}[rng.IntN(3)]
				if rng.IntN(2) == 0 {
					lags := rand.New(rand.NewPCG(seed, 2)) // the store's alone
					w.store.lag = func() time.Duration { return time.Duration(lags.Int64N(int64(3 * time.Second))) }
				}
				w.model.play(trickles(rng, 40, longest))
				r := w.begin("go")
				before := []string{}
				for !r.ended() && !t.Failed() {
					time.Sleep(100 * time.Millisecond)
					synctest.Wait()
					now, left := w.shownWords(), w.left()
					before = append(before, now)
					if !strings.HasPrefix(now, left) {
						t.Errorf("left is %q, shown was %q", left, now)
					}
					// A second until it is kept, while one lasts that began before,
					// and for how long the store takes for each.
					if due := len(before) - 1 - 82; due >= 0 && !strings.HasPrefix(left, before[due]) {
						t.Errorf("left is %q, shown was %q some time before", left, before[due])
					}
				}
				r.want(domain.StopEndTurn)
				if left, now := w.left(), w.shownWords(); left != now {
					t.Errorf("at the end there is %q of %q", left, now)
				}
				w.check()
			})
		})
	}
}

// With a store that answers at once it is a second.
func TestKeep_WithinASecond(t *testing.T) {
	bubble(t, nil, func(w *world) {
		hang := make(chan struct{})
		w.model.play(func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			for _, ev := range []domain.ModelEvent{domain.ThoughtDelta{Text: "hm"}, domain.TextDelta{Text: "hello"}} {
				if !yield(ev, nil) {
					return
				}
			}
			<-hang
			yield(domain.Finish{Reason: domain.FinishStop}, nil)
		})
		r := w.begin("go")
		time.Sleep(time.Second - time.Millisecond)
		synctest.Wait()
		if n := count[domain.Streamed](w.records()); n != 0 {
			t.Errorf("%d parts are kept of a reply that may still be quick", n)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if left, now := w.left(), w.shownWords(); left != now || now == "" {
			t.Errorf("left is %q of %q", left, now)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := count[domain.Streamed](w.records()); n != 1 {
			t.Errorf("%d parts are kept of what came at once", n)
		}
		close(hang)
		r.want(domain.StopEndTurn)
		w.check()
	})
}

// A quick reply is journalled once.
func TestKeep_NothingOfAQuickReply(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(trickles(rand.New(rand.NewPCG(1, 1)), 9, 100*time.Millisecond))
		w.begin("go").want(domain.StopEndTurn)
		if n := count[domain.Streamed](w.records()); n != 0 {
			t.Errorf("%d parts are kept", n)
		}
	})
}

// A store that cannot keep a part does not harm the turn; the operator hears of
// it once.
func TestKeep_AStoreThatFails(t *testing.T) {
	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprintf("applied all the same %t", applied), func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				w.store.hook(func(_ context.Context, _ int, recs []domain.Record) (bool, error) {
					if _, part := recs[0].(domain.Streamed); part {
						return applied, errFull
					}
					return false, nil
				})
				w.model.play(trickles(rand.New(rand.NewPCG(3, 1)), 40, time.Second))
				w.begin("go").want(domain.StopEndTurn)
				w.check()
				w.observer.mu.Lock()
				defer w.observer.mu.Unlock()
				heard := 0
				for _, ev := range w.observer.events {
					if _, ok := ev.(domain.Trouble); ok {
						heard++
					}
				}
				if heard != 1 {
					t.Errorf("the operator heard of it %d times", heard)
				}
			})
		})
	}
}

// A store that hangs while it keeps a part does not hold up a cancel, and the
// journal is whole afterwards.
func TestKeep_AStoreThatHangs(t *testing.T) {
	bubble(t, nil, func(w *world) {
		keeping := make(chan struct{})
		w.store.hook(func(ctx context.Context, _ int, recs []domain.Record) (bool, error) {
			if _, part := recs[0].(domain.Streamed); part {
				close(keeping)
				<-ctx.Done()
				return false, context.Cause(ctx)
			}
			return false, nil
		})
		w.model.play(trickles(rand.New(rand.NewPCG(3, 1)), 4000, time.Second))
		r := w.begin("go")
		<-keeping
		at := time.Now()
		if !w.stop() {
			t.Fatal("there is nothing to cancel")
		}
		r.want(domain.StopCancelled)
		if took := r.at.Sub(at); took > 250*time.Millisecond {
			t.Errorf("the cancel took %v", took)
		}
		w.store.hook(nil)
		w.model.play(says("fresh"))
		w.begin("next").want(domain.StopEndTurn)
		checkJournal(w)
	})
}
