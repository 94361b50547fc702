package turns

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// reply collects one model reply while it streams.
type reply struct {
	t       *turn
	said    domain.AssistantSaid
	text    strings.Builder // of the part that is growing
	part    domain.MessagePart
	growing bool
	ended   bool
}

// step asks the model once and streams its reply to the client. A reply that
// did not end well is journalled as truncated, so that a load shows what the
// user saw, and none of its calls runs.
func (t *turn) step() (domain.AssistantSaid, error) {
	start := t.e.p.Clock()
	req, err := t.request()
	if err != nil {
		return domain.AssistantSaid{}, err
	}
	t.mu.Lock()
	t.requests++
	t.mu.Unlock()
	info := t.model.Info()
	r := &reply{t: t, said: domain.AssistantSaid{Turn: t.id, Model: info.Ref, Window: info.ContextWindow}}
	err = r.read(req)
	r.closePart()
	t.mu.Lock()
	t.usage = t.usage.Plus(r.said.Usage)
	t.mu.Unlock()
	t.e.p.Observer.Observe(t.ctx, domain.StepDone{
		Session: t.sid, Turn: t.id, Model: info.Ref, Usage: r.said.Usage, Duration: t.e.p.Clock().Sub(start), Err: err,
	})
	if err != nil {
		r.keepPartial()
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
	case len(r.said.Parts) == 0 && !r.growing && len(r.said.Calls) == 0 && r.said.Finish == domain.FinishStop && r.t.quiet():
		return domain.Errorf(domain.Unavailable, "The model sent an empty reply; try again or choose another model")
	}
	return nil
}

// quiet reports whether the turn has shown the user nothing yet.
func (t *turn) quiet() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.Len() == 0 && t.calls == 0
}

// take handles one event.
func (r *reply) take(ev domain.ModelEvent) error {
	switch ev := ev.(type) {
	case domain.TextDelta:
		id := r.grow(false, ev.Text)
		r.t.mu.Lock()
		r.t.all.WriteString(ev.Text)
		r.t.mu.Unlock()
		return r.t.emit.send(r.t.ctx, domain.AgentText{ID: id, Text: ev.Text})
	case domain.ThoughtDelta:
		return r.t.emit.send(r.t.ctx, domain.AgentThought{ID: r.grow(true, ev.Text), Text: ev.Text})
	case domain.CallRequested:
		call := ev.Call
		r.t.mu.Lock()
		r.t.calls++
		call.ID = domain.CallID(fmt.Sprintf("%s-c%d", r.t.id, r.t.calls))
		r.t.mu.Unlock()
		r.said.Calls = append(r.said.Calls, call)
	case domain.UsageReported:
		r.said.Usage = ev.Usage
	case domain.Retrying:
		return r.t.emit.send(r.t.ctx, domain.Notice{
			Severity: "warning", Title: "The model did not answer; trying again",
			Detail: fmt.Sprintf("%s. Attempt %d follows in %s.", ev.Reason, ev.Attempt+1, ev.Wait.Round(100*time.Millisecond)),
		})
	case domain.Finish:
		r.said.Finish, r.said.Opaque, r.ended = ev.Reason, ev.Opaque, true
		if ev.Reason == domain.FinishLength || ev.Reason == domain.FinishRefusal {
			r.said.Calls = nil
		}
	}
	return nil
}

// grow adds a delta to the part of its kind and returns the message's id. A
// change between text and thought begins a new message.
func (r *reply) grow(thought bool, text string) domain.MessageID {
	if r.growing && r.part.Thought != thought {
		r.closePart()
	}
	if !r.growing {
		r.t.messages++
		r.part = domain.MessagePart{ID: domain.MessageID(fmt.Sprintf("%s-m%d", r.t.id, r.t.messages)), Thought: thought}
		r.growing = true
	}
	r.text.WriteString(text)
	return r.part.ID
}

func (r *reply) closePart() {
	if !r.growing {
		return
	}
	r.part.Text = r.text.String()
	r.said.Parts = append(r.said.Parts, r.part)
	r.text.Reset()
	r.growing = false
}

// keepPartial journals what was shown of a reply that did not end well.
func (r *reply) keepPartial() {
	if len(r.said.Parts) == 0 {
		return
	}
	r.said.Truncated, r.said.Calls, r.said.Opaque, r.said.Finish = true, nil, nil, ""
	ctx, cancel := r.t.settling()
	defer cancel()
	if err := r.t.emit.record(ctx, r.said); err != nil {
		r.t.e.trouble(ctx, r.t.sid, "turns: keep partial reply", err)
	}
}
