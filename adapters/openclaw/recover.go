package openclaw

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// reattach takes up on a new connection what an old one had: the events of
// the open sessions, the runs that go on and the permission requests. What the
// Gateway told meanwhile is gone; the transcript has the messages and the tool
// calls of a run, and its end.
func (b *Bridge) reattach(ctx context.Context, _ *link) {
	turns := b.live()
	for _, t := range turns {
		t.hold()
	}
	b.mu.Lock()
	b.agent, b.models = "", nil // another Gateway's, maybe
	b.mu.Unlock()
	for _, s := range b.all() {
		b.watch(ctx, s)
	}
	if len(turns) > 0 {
		// Tool events go to the connection that began a run, and to those that
		// ask for the events of all sessions.
		if _, err := b.gw.call(ctx, "sessions.subscribe", struct{}{}); err != nil {
			b.cfg.Log("sessions.subscribe: %v", err)
		}
	}
	for _, t := range turns {
		b.reconcile(ctx, t)
		t.release()
		b.let(t)
	}
	b.reviewApprovals(ctx)
}

// all are the sessions that the editor has open.
func (b *Bridge) all() []*session {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*session, 0, len(b.sessions))
	for _, s := range b.sessions {
		list = append(list, s)
	}
	return list
}

type waitParams struct {
	RunID     string `json:"runId"`
	TimeoutMs int    `json:"timeoutMs"`
}

// reconcile finds out what became of a run and tells what was missed of it. A
// run that was not accepted yet is its sender's business.
func (b *Bridge) reconcile(ctx context.Context, t *turn) {
	t.mu.Lock()
	run, accepted := t.run, t.accepted
	t.mu.Unlock()
	if !accepted {
		return
	}
	raw, err := b.gw.call(ctx, "agent.wait", waitParams{RunID: run})
	if err != nil {
		b.cfg.Log("agent.wait: %v", err)
		return
	}
	f := fieldsOf(raw)
	h, err := b.read(ctx, t.session.key, untilPrompt(t.prompt))
	if err != nil {
		b.cfg.Log("chat.history: %v", err)
		return
	}
	t.makeUp(h.of(run))
	stop := lastStop(h.of(run))
	switch status := f.text("status"); {
	case status == "ok":
		t.finish(outcome{stop: stopOf(stop)})
	case status == "error" && stopOf(f.text("stopReason")) == stopCancelled:
		t.finish(outcome{stop: stopCancelled})
	case status == "error":
		t.finish(failure("", "", 0, f.text("error")))
	case h.runs(run):
		b.cfg.Log("run %s goes on", run)
	case stop != "" && stop != "toolUse":
		t.finish(outcome{stop: stopOf(stop)})
	case !t.own: // it ran once, and does not any more
		t.finish(outcome{stop: stopCancelled})
	case b.isAnother(t, h):
		b.bequeath(t, h)
	}
}

// isAnother reports whether the Gateway is another than the one that was sent
// the prompt of a turn. One that does not tell is, when it does nothing in the
// session.
func (b *Bridge) isAnother(t *turn, h history) bool {
	t.mu.Lock()
	boot := t.boot
	t.mu.Unlock()
	l := b.gw.now()
	if l == nil {
		return false
	}
	if boot == "" || l.hello.boot == "" {
		return !h.busy
	}
	return l.hello.boot != boot
}

// heirLimit is how long a Gateway that was started anew may take to go on with
// what it did before.
const heirLimit = 30 * time.Second

// bequeath looks for the run with which a Gateway that was started anew goes
// on: it is another run in the same session. Its end is the end of the turn.
// Without one nobody knows how the turn ended.
func (b *Bridge) bequeath(t *turn, h history) {
	if heir := h.behind(t.prompt, t.runID()); heir != "" && !h.runs(heir) {
		if t.session.isNew(heir) && !b.follows(heir) {
			past := newTurn(b, t.session, heir)
			past.said.fromAgent = true
			past.makeUp(h.of(heir))
			past.close()
			t.session.noteDone(heir)
		}
		t.finish(outcome{stop: stopOf(lastStop(h.of(heir)))})
		return
	}
	t.mu.Lock()
	t.waiting = true
	t.mu.Unlock()
	b.cfg.Log("run %s ended with the gateway: waiting for the one that goes on with it", t.runID())
	b.side.Go(func() { // ends with the turn, or the bridge
		if !sleep(t.ctx, heirLimit) {
			return
		}
		t.mu.Lock()
		alone := t.waiting
		t.mu.Unlock()
		if alone {
			t.finish(outcome{err: domain.Errorf(domain.Unavailable,
				"the gateway was started anew and does not know how the turn ended; what it had said and done is shown"), loose: true})
		}
	})
}

// orphan is the turn of a session that waits for a run to go on with it, if
// one does. It waits no more.
func (s *session) orphan() *turn {
	s.mu.Lock()
	turns := append([]*turn(nil), s.turns...)
	s.mu.Unlock()
	for _, t := range turns {
		t.mu.Lock()
		was := t.waiting
		t.waiting = false
		t.mu.Unlock()
		if was {
			return t
		}
	}
	return nil
}

// lastStop is why the last message of a run ended.
func lastStop(list []entry) string {
	stop := ""
	for _, e := range list {
		if e.role == "assistant" {
			stop = or(e.stop, stop)
		}
	}
	return stop
}

// arrived reports whether the Gateway has the prompt of a turn already. Not
// knowing counts as no: the idempotency key keeps one from becoming two.
func (b *Bridge) arrived(ctx context.Context, l *link, t *turn) bool {
	t.mu.Lock()
	run, same := t.run, l.hello.boot == t.boot && t.boot != ""
	t.mu.Unlock()
	if same {
		return false // chat.send itself tells
	}
	h, err := b.read(ctx, t.session.key, untilPrompt(t.prompt))
	if err != nil || !h.began(t.prompt, run) {
		return false
	}
	t.accept()
	t.hold()
	b.reconcile(ctx, t)
	t.release()
	return true
}

// catchUp tells what the transcript has of a run and the editor does not. It
// returns what the transcript has.
func (b *Bridge) catchUp(ctx context.Context, t *turn) []entry {
	h, err := b.read(ctx, t.session.key, untilPrompt(t.prompt))
	if err != nil {
		b.cfg.Log("chat.history: %v", err)
		return nil
	}
	list := h.of(t.runID())
	t.makeUp(list)
	return list
}
