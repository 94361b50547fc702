package turns

import (
	"errors"
	"fmt"

	"github.com/berth-dev/berth/core/domain"
)

// errNotOpen is what finish gets when the journal has no open turn of its own;
// then something else wrote to it.
var errNotOpen = errors.New("the turn is not open in the journal")

// finish journals the turn's last records in one append, decides the outcome
// (a success only for what is stored), and tells the client. Calls that the
// loop left open, because it broke off between their announcement and their
// end, end here.
func (t *turn) finish(stop domain.Stop, err error) {
	text := "Cancelled before it finished; it may or may not have taken effect."
	if err != nil {
		text = "The turn broke off before this call finished; it may or may not have taken effect."
	}
	if !t.begun {
		t.decide(stop, err)
		return // there is nothing to journal or to tell
	}
	feed := t.emit.feed.Load()
	werr := feed.Recording.Acquire(t.writing)
	if werr == nil {
		defer feed.Recording.Release()
		werr = t.storeEnd(stop, err, text)
	}
	if errors.Is(werr, errSealed) {
		return // given up: the outcome and the journal's end are lastWords'
	}
	switch {
	case werr == nil:
	case err == nil && stop != domain.StopCancelled:
		stop, err = 0, fmt.Errorf("journal the end: %w", werr) // told with the turn's end
	default:
		t.e.trouble(t.ctx, t.sid, "turns: journal the end", werr)
	}
	t.decide(stop, err)
	t.tellEnd(stop, text, werr == nil)
}

// storeEnd journals the end of a turn that has begun: of its open calls, its
// last reply, and itself.
func (t *turn) storeEnd(stop domain.Stop, err error, text string) error {
	t.mu.Lock()
	begun, usage := t.begun, t.usage
	t.mu.Unlock()
	if !begun {
		return nil
	}
	end := domain.TurnFinished{Turn: t.id, Stop: stop, Usage: usage}
	if err != nil {
		end.Failure = domain.FailureOf(err)
	}
	ended, err := t.live.End(t.writing, t.emit.unsealed, t.id, func(calls []domain.CallID) []domain.Record {
		var recs []domain.Record
		for _, id := range calls {
			recs = append(recs, callFailed(t.id, id, text))
		}
		if t.last != nil {
			recs = append(recs, *t.last)
			t.handedOver(recs)
		}
		return append(recs, end)
	})
	if err == nil && !ended {
		err = errNotOpen
	}
	return err
}

// tellEnd tells the client the ends of what it waits for, a compaction and calls,
// also when the store is what broke, and what follows from the turn's last records. It fails only
// when nobody listens any more.
func (t *turn) tellEnd(stop domain.Stop, text string, stored bool) {
	if id := t.emit.unfinishedCompaction(); id != "" {
		end := domain.CompactionChanged{ID: id, Status: domain.CompactionFailed, Error: "It broke off."}
		if t.emit.send(t.telling, end) != nil {
			return
		}
	}
	for _, c := range t.emit.unfinished() {
		end := callFailed(t.id, c.id, text)
		if c.end != nil {
			end = *c.end
		}
		if t.emit.tell(end) != nil {
			return
		}
	}
	if !t.begun || (stored && t.last != nil && t.emit.tell(*t.last) != nil) {
		return
	}
	_ = t.emit.send(t.telling, domain.TurnEnded{Turn: t.id, Stop: stop})
}
