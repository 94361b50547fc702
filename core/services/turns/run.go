package turns

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

const (
	// joinLimit is how long after a cancel the turn waits for its own work
	// before it answers without it. With the limits that follow it keeps a
	// cancel's answer under 250 ms.
	joinLimit = 200 * time.Millisecond
	// lastWordsLimit bounds what is still told of a turn that was given up, and
	// how long its answer waits for the journal to have its end.
	lastWordsLimit = 30 * time.Millisecond
	// noticeLimit is how long a client that is in the middle of taking an
	// update may need to notice that its context has ended.
	noticeLimit = 10 * time.Millisecond
	// settleLimit bounds what is still written after a cancel.
	settleLimit = 5 * time.Second
)

var (
	errNoOutcome = errors.New("the turn ended without an outcome")
	errTooLate   = errors.New("the journal did not take the end of a cancelled turn in time")
)

// run is the task of the prompt: it starts the work and sees it to its end. When
// nobody waits for the answer any more, somebody else does that.
func (t *turn) run() (domain.TurnOutcome, error) {
	start := t.e.p.Clock()
	t.e.p.Observer.Observe(t.ctx, domain.TurnBegan{Session: t.sid, Turn: t.id, Trace: t.prompt.Trace, Prompt: t.prompt.Blocks})
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer t.endWriting(nil)
		t.work()
	}()
	select {
	case <-done:
	case <-t.ctx.Done():
	case <-t.ticket.Left():
		t.ticket.Continue(func() { _, _ = t.see(start, done) })
		return domain.TurnOutcome{}, domain.Disconnected
	}
	return t.see(start, done)
}

// see waits for the work, gives it up when it hangs after a cancel, and gives
// up the turn's place.
func (t *turn) see(start time.Time, done <-chan struct{}) (domain.TurnOutcome, error) {
	defer t.cancel(nil)
	var stray <-chan struct{}
	select {
	case <-done:
	case <-t.ctx.Done():
		stray = t.joinOrGiveUp(done)
	}
	if stray == nil {
		t.emit.seal()
		t.endTelling(nil)
	}
	t.mu.Lock()
	if !t.decided {
		t.decided, t.err = true, errNoOutcome // only if a tool or a model ended our goroutine
	}
	outcome, err := t.outcome, t.err
	event := domain.TurnDone{
		Session: t.sid, Turn: t.id, Stop: outcome.Stop, Cause: context.Cause(t.ctx), Err: err,
		Duration: t.e.p.Clock().Sub(start), Usage: t.usage, Requests: t.requests, Calls: t.calls,
		Agent: t.agent, Waited: after(start, t.placed), FirstText: after(start, t.spokeAt), Text: outcome.Text,
	}
	t.mu.Unlock()
	t.e.p.Observer.Observe(t.ctx, event)
	if stray != nil {
		t.live.Abandon(t.emit.feed.Load())
	}
	t.ticket.Ended(outcome, err)
	t.ticket.Done(stray)
	return outcome, err
}

// after is how long after start something happened; 0 when it did not.
func after(start, at time.Time) time.Duration {
	if at.IsZero() {
		return 0
	}
	return at.Sub(start)
}

// joinOrGiveUp waits for the work to end after a cancel. Work that hangs is
// given up: nothing of it reaches the client any more, and what is returned
// closes when it has ended after all. Otherwise it returns nil.
func (t *turn) joinOrGiveUp(done <-chan struct{}) <-chan struct{} {
	late := time.AfterFunc(settleLimit, func() { t.endWriting(errTooLate) })
	limit := time.NewTimer(joinLimit)
	defer limit.Stop()
	select {
	case <-done:
		late.Stop()
		return nil
	case <-limit.C:
	}
	t.emit.leave()
	t.endTelling(context.Cause(t.ctx))
	t.decide(domain.StopCancelled, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), lastWordsLimit)
	said, stray := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stray)
		defer late.Stop()
		t.lastWords(ctx)
		close(said)
		<-done
	}()
	select {
	case <-said:
	case <-ctx.Done():
		grace := time.NewTimer(noticeLimit)
		defer grace.Stop()
		select {
		case <-said:
		case <-grace.C:
		}
	}
	cancel()
	return stray
}

// leftBehind is how a call ends that did not stop when its turn was cancelled.
const leftBehind = "Cancelled; it did not stop in time and was left behind. It may or may not have taken effect."

// lastWords ends a turn whose work hangs: open calls are reported failed, and
// the journal gets what the user saw and the turn's end. A store that is too
// slow for the answer is given the time that the turn's own records have; the
// next turn may begin meanwhile, and then the journal needs no end any more.
func (t *turn) lastWords(ctx context.Context) {
	err := t.isolate("last words", func() error {
		for _, c := range t.emit.closeAll(ctx, leftBehind) {
			if c.end != nil {
				continue
			}
			t.e.trouble(ctx, t.sid, "turns: call outlived its turn",
				fmt.Errorf("%s (call %s) did not stop: %w", c.tool, c.id, context.Cause(t.ctx)))
		}
		writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
		defer cancel()
		_, err := t.live.End(writing, nil, t.id, t.closing)
		return err
	})
	if err != nil {
		t.e.trouble(ctx, t.sid, "turns: journal the end of a turn that was given up", err)
	}
}

// closing is what the journal still needs of a turn that was given up.
func (t *turn) closing(calls []domain.CallID) []domain.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	var recs []domain.Record
	if said, ok := t.partial.seen(); ok {
		recs = append(recs, said)
	}
	for _, id := range calls {
		recs = append(recs, callFailed(t.id, id, leftBehind))
	}
	return append(recs, domain.TurnFinished{Turn: t.id, Stop: domain.StopCancelled, Usage: t.usage})
}

// callFailed is the end of a call whose own result nobody has.
func callFailed(turn domain.TurnID, id domain.CallID, text string) domain.CallFinished {
	return domain.CallFinished{Turn: turn, Call: id, Failed: true, Interrupted: true, Text: text}
}

// decide sets the turn's outcome, once: the first decision stands.
func (t *turn) decide(stop domain.Stop, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.decided {
		return
	}
	text := t.final
	if stop == domain.StopCancelled {
		text = t.said()
	}
	t.decided, t.err = true, err
	t.outcome = domain.TurnOutcome{Turn: t.id, Stop: stop, Text: text, Usage: t.usage, Total: t.before.Plus(t.usage)}
}

// isolate runs fn and turns a panic into an error of this turn alone.
func (t *turn) isolate(what string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in %s: %v", what, p)
			t.e.trouble(t.ctx, t.sid, "turns: panic", fmt.Errorf("%w\n%s", err, debug.Stack()))
		}
	}()
	return fn()
}
