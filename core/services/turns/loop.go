package turns

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
)

// work is everything a turn does, from its place in the queue to its last
// record. How it ended is decided in one place: a cancel wins over whatever
// error it caused on the way.
func (t *turn) work() {
	defer t.drop()
	var stop domain.Stop
	err := t.isolate("turn", func() (err error) {
		stop, err = t.loop()
		return err
	})
	stop, err = domain.StopFor(context.Cause(t.ctx), stop, err)
	broke := t.isolate("end of turn", func() error {
		t.finish(stop, err)
		return nil
	})
	if broke != nil {
		t.decide(domain.StopFor(context.Cause(t.ctx), 0, broke))
	}
}

// loop waits for the turn's place and then alternates model replies and tool
// calls until the turn has a stop (ACP v1, "The prompt turn").
func (t *turn) loop() (domain.Stop, error) {
	if err := t.ticket.Wait(t.ctx); err != nil {
		return 0, err
	}
	if err := t.waitForAnswers(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	t.placed = t.e.p.Clock()
	t.mu.Unlock()
	if err := t.begin(); err != nil {
		return 0, err
	}
	if t.command != "" {
		return t.runCommand()
	}
	for n := 0; ; n++ {
		if n == t.view.Agent.MaxTurnRequests {
			return domain.StopMaxTurnRequests, nil
		}
		if t.ctx.Err() != nil {
			return 0, context.Cause(t.ctx)
		}
		said, err := t.ask()
		if err != nil {
			return 0, err
		}
		if stop := stopAfter(said); stop != 0 {
			t.last = &said
			return stop, nil
		}
		if err := t.callAll(said); err != nil {
			return 0, err
		}
	}
}

// waitForAnswers returns when what the client asked of the session before has
// been answered. A turn gives up its place a moment before its answer, and a
// client must not be shown this turn while it still waits for the end of
// another one. A turn that need not wait begins, even if it is cancelled
// already.
func (t *turn) waitForAnswers() error {
	for _, answered := range t.prompt.After {
		select {
		case <-answered:
			continue
		default:
		}
		select {
		case <-answered:
		case <-t.ctx.Done():
			return context.Cause(t.ctx)
		}
	}
	return nil
}

// stopAfter says how a complete reply ends the turn; 0 when its calls are to
// be run. No call of a reply that was cut or refused may run.
func stopAfter(said domain.AssistantSaid) domain.Stop {
	switch {
	case said.Finish == domain.FinishLength:
		return domain.StopMaxTokens
	case said.Finish == domain.FinishRefusal:
		return domain.StopRefusal
	case len(said.Calls) == 0:
		return domain.StopEndTurn
	}
	return 0
}
