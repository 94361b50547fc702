package sessions

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Await returns the task that waits for the end of a turn and returns what its
// prompt was answered: for a client that took the session from who sent it.
// turn "" is the one that was admitted last. Of turns that have ended, the
// newest is known, also from the journal.
func (s *Service) Await(c ports.Client, id domain.SessionID, turn domain.TurnID) (func(context.Context) (domain.TurnOutcome, error), error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	if sl == nil || sl.client != c && sl.next != c || sl.state == closing {
		return nil, domain.NoSession(id)
	}
	for _, t := range slices.Backward(sl.queue) {
		if turn == "" || t.adm.Turn == turn {
			return func(ctx context.Context) (domain.TurnOutcome, error) {
				if err := waitFor(ctx, t.over); err != nil {
					return domain.TurnOutcome{}, err
				}
				return t.ended.outcome, t.ended.err
			}, nil
		}
	}
	last, live := sl.last, sl.live
	return func(ctx context.Context) (domain.TurnOutcome, error) {
		if last.turn == "" || turn != "" && last.turn != turn {
			return live.outcome(ctx, turn)
		}
		return last.outcome, last.err
	}, nil
}

// outcome is what the journal knows of the newest turn that has ended.
func (l *Live) outcome(ctx context.Context, turn domain.TurnID) (domain.TurnOutcome, error) {
	if err := l.lock.Acquire(ctx); err != nil {
		return domain.TurnOutcome{}, err
	}
	defer l.lock.Release()
	if err := l.ready(ctx); err != nil {
		return domain.TurnOutcome{}, err
	}
	end, ok := l.conv.Ended()
	switch {
	case !ok || turn != "" && end.Turn != turn:
		return domain.TurnOutcome{}, domain.Errorf(domain.NotFound, "No such turn runs in session %s, and it is not the last one that did", l.id).
			With("sessionId", string(l.id))
	case end.Failure != nil:
		return domain.TurnOutcome{}, domain.Errorf(end.Failure.Code, "%s", end.Failure.Msg)
	case end.Interrupted:
		return domain.TurnOutcome{}, domain.Errorf(domain.Unavailable, "The turn was interrupted: the agent stopped before it ended")
	}
	_, _, total := l.conv.Usage()
	return domain.TurnOutcome{Turn: end.Turn, Stop: end.Stop, Usage: end.Usage, Total: total}, nil
}
