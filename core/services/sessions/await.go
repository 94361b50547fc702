package sessions

import (
	"context"
	"slices"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Await returns the task that waits for the end of a turn and returns what its
// prompt was answered: for a client that took the session from who sent it.
// turn "" is the one that was admitted last. Turns that have ended are known
// from the journal, but for their text; the newest is known without.
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

// outcome is what the journal knows of a turn that has ended; turn "" is the
// newest one.
func (l *Live) outcome(ctx context.Context, turn domain.TurnID) (domain.TurnOutcome, error) {
	if err := l.lock.Acquire(ctx); err != nil {
		return domain.TurnOutcome{}, err
	}
	defer l.lock.Release()
	if err := l.ready(ctx); err != nil {
		return domain.TurnOutcome{}, err
	}
	switch end, ok := l.conv.Ended(); {
	case !ok:
		return domain.TurnOutcome{}, l.noTurn()
	case turn == "" || turn == end.Turn:
		return outcomeOf(l.conv)
	}
	return l.earlier(ctx, turn)
}

// earlier is what the journal knows of a turn that is not the newest. The lock
// is held.
func (l *Live) earlier(ctx context.Context, turn domain.TurnID) (domain.TurnOutcome, error) {
	conv := domain.NewConversation(l.row.Start)
	for entry, err := range l.svc.p.Journal.Records(ctx, l.id, 0) {
		if err != nil {
			return domain.TurnOutcome{}, err
		}
		conv.Add(entry)
		if end, ok := entry.Record.(domain.TurnFinished); ok && end.Turn == turn {
			return outcomeOf(conv)
		}
	}
	return domain.TurnOutcome{}, l.noTurn()
}

func (l *Live) noTurn() *domain.Error {
	return domain.Errorf(domain.NotFound, "No such turn runs in session %s, and none has ended in it", l.id).With("sessionId", string(l.id))
}

// outcomeOf is the outcome of the newest turn of a conversation.
func outcomeOf(conv *domain.Conversation) (domain.TurnOutcome, error) {
	end, _ := conv.Ended()
	switch {
	case end.Failure != nil:
		return domain.TurnOutcome{}, domain.Errorf(end.Failure.Code, "%s", end.Failure.Msg)
	case end.Interrupted:
		return domain.TurnOutcome{}, domain.Errorf(domain.Unavailable, "The turn was interrupted: the agent stopped before it ended")
	}
	_, _, total := conv.Usage()
	return domain.TurnOutcome{Turn: end.Turn, Stop: end.Stop, Usage: end.Usage, Total: total}, nil
}
