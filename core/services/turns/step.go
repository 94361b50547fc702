package turns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// ask gets the next reply. A request that the model finds too long is made
// shorter and sent again, at most twice, as long as the client was shown
// nothing of a reply.
func (t *turn) ask() (domain.AssistantSaid, error) {
	for try := 0; ; try++ {
		req, size, err := t.fit()
		if err != nil {
			return domain.AssistantSaid{}, err
		}
		said, err := t.step(req, size)
		if err == nil || !domain.HasCode(err, domain.ContextTooLong) || t.spoke || t.ctx.Err() != nil {
			return said, err
		}
		if try == retriesTooLong {
			return said, t.tooLong(err)
		}
		shorter, cerr := t.compactHarder(size, try)
		if cerr != nil {
			return said, cerr
		}
		if !shorter {
			return said, t.tooLong(err)
		}
	}
}

// step asks the model once, with a request of that estimated size, and streams
// its reply to the client. A reply that
// did not end well is journalled as truncated, so that a load shows what the
// user saw, and none of its calls runs.
func (t *turn) step(req domain.ModelRequest, size int64) (domain.AssistantSaid, error) {
	if err := t.affordable(t.ctx); err != nil {
		return domain.AssistantSaid{}, err
	}
	start, info := t.e.p.Clock(), t.model.Info()
	r := &reply{t: t, info: info, said: domain.AssistantSaid{
		Turn: t.id, Agent: t.view.Agent.Alias, Model: info.Ref, Window: info.ContextWindow, Estimate: size,
	}}
	t.mu.Lock()
	t.requests++
	t.partial = r
	t.mu.Unlock()
	err := t.isolate("model", func() error {
		defer r.keeper.stop(&t.mu)
		return r.read(req)
	})
	t.mu.Lock()
	r.closePart()
	if now := t.model.Info(); now.Ref == r.said.Model {
		r.said.Window = now.ContextWindow // a model may learn about itself from its first answer
	}
	t.spoke = len(r.said.Parts) > 0
	t.usage = t.usage.Plus(r.said.Usage)
	t.cost = t.cost.Plus(r.said.Cost)
	if err == nil {
		t.final = r.said.Text()
	}
	t.mu.Unlock()
	t.e.p.Observer.Observe(t.ctx, domain.StepDone{
		Session: t.sid, Turn: t.id, Model: r.said.Model, Usage: r.said.Usage, Duration: t.e.p.Clock().Sub(start), Err: err,
		Agent: t.view.Agent.Alias, Asked: info.Ref, Retries: r.retries, Cost: r.said.Cost, FirstText: after(start, r.first), Finish: r.said.Finish,
	})
	if err != nil {
		t.keepPartial(r)
		return domain.AssistantSaid{}, err
	}
	return r.said, nil
}

// read ranges over the stream. It returns nil only for a complete reply.
func (r *reply) read(req domain.ModelRequest) error {
	for ev, err := range r.t.model.Stream(r.t.ctx, req) {
		if err != nil {
			return err
		}
		if err := r.take(ev); err != nil {
			return err
		}
	}
	switch {
	case r.t.ctx.Err() != nil:
		return context.Cause(r.t.ctx)
	case !r.ended:
		return domain.Errorf(domain.Unavailable, "The model's reply broke off before it was complete; try again")
	case stopAfter(r.said) == domain.StopEndTurn && r.t.quiet():
		return domain.Errorf(domain.Unavailable, "The model sent an empty reply; try again or choose another model")
	}
	return nil
}

// quiet reports whether the turn has shown the user nothing yet.
func (t *turn) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.messages == 0 && t.calls == 0
}

// take handles one event.
func (r *reply) take(ev domain.ModelEvent) error {
	t := r.t
	if err := r.bound(ev); err != nil {
		return err
	}
	switch ev := ev.(type) {
	case domain.TextDelta:
		if err := t.emit.send(t.ctx, domain.AgentText{ID: r.message(false), Text: ev.Text}); err != nil {
			return err
		}
		r.grow(ev.Text)
	case domain.ThoughtDelta:
		if err := t.emit.send(t.ctx, domain.AgentThought{ID: r.message(true), Text: ev.Text}); err != nil {
			return err
		}
		r.grow(ev.Text)
	case domain.CallRequested:
		t.mu.Lock()
		defer t.mu.Unlock()
		t.calls++
		call := ev.Call
		call.ID = domain.CallID(fmt.Sprintf("%s-c%d", t.id, t.calls))
		r.said.Calls = append(r.said.Calls, call)
	case domain.UsageReported:
		t.mu.Lock()
		defer t.mu.Unlock()
		r.said.Usage, r.said.Cost = ev.Usage, costOf(r.info, ev)
	case domain.Retrying:
		r.retries++
		return t.tellRetry(ev)
	case domain.FellBack:
		t.mu.Lock()
		r.info, r.said.Model, r.said.Window = ev.To, ev.To.Ref, ev.To.ContextWindow
		t.mu.Unlock()
		return t.tellFallback(ev)
	case domain.Finish:
		t.mu.Lock()
		defer t.mu.Unlock()
		r.said.Finish, r.said.Opaque, r.ended = ev.Reason, ev.Opaque, true
		if ev.Reason == domain.FinishLength || ev.Reason == domain.FinishRefusal {
			r.said.Calls = nil
		}
	}
	return nil
}

func (t *turn) tellRetry(ev domain.Retrying) error {
	return t.emit.send(t.ctx, domain.Notice{
		Severity: "warning", Title: "The model did not answer; trying again",
		Detail: fmt.Sprintf("%s. Attempt %d follows in %s.", ev.Reason, ev.Attempt+1, ev.Wait.Round(100*time.Millisecond)),
	})
}

// tellFallback tells who answers, once in a turn for each who takes over.
func (t *turn) tellFallback(ev domain.FellBack) error {
	if t.standIn == ev.To.Ref {
		return nil
	}
	t.standIn = ev.To.Ref
	return t.emit.send(t.ctx, domain.Notice{
		Severity: "warning", Title: fmt.Sprintf("%s answers in place of %s", ev.To.Ref, ev.From),
		Detail: ev.Reason + ".",
	})
}

// keepPartial journals what was shown of a reply that did not end well. Of a turn
// that was given up the last words do that.
func (t *turn) keepPartial(r *reply) {
	t.mu.Lock()
	said, ok := r.seen()
	t.mu.Unlock()
	if !ok {
		return
	}
	if stored, err := t.emit.record(said); !stored && !errors.Is(err, errSealed) {
		t.e.trouble(t.ctx, t.sid, "turns: keep partial reply", err)
	}
}

// handedOver notes that records are on their way to the journal: a reply among
// them is not partial any more.
func (t *turn) handedOver(recs []domain.Record) {
	for _, rec := range recs {
		if _, ok := rec.(domain.AssistantSaid); ok {
			t.mu.Lock()
			t.partial = nil
			t.mu.Unlock()
		}
	}
}
