package turns

import (
	"errors"

	"github.com/berth-dev/berth/core/domain"
)

// closeCalls gives a final status to calls that the loop left open because it
// broke off between their announcement and their end. The client is told even
// when the store is what broke.
func (t *turn) closeCalls(err error) {
	text := "Cancelled before it finished; it may or may not have taken effect."
	if err != nil {
		text = "The turn broke off before this call finished; it may or may not have taken effect."
	}
	for _, c := range t.emit.unfinished() {
		if c.end != nil {
			_ = t.emit.tell(*c.end) // fails only when nobody listens any more
			continue
		}
		rec := callFailed(t.id, c.id, text)
		if stored, _ := t.emit.record(rec); !stored {
			_ = t.emit.tell(rec) // fails only when nobody listens any more
		}
	}
}

// finish journals the turn's last records in one append, decides the outcome
// (a success only for what is stored), and tells the client.
func (t *turn) finish(stop domain.Stop, err error) {
	t.mu.Lock()
	begun, usage := t.begun, t.usage
	t.mu.Unlock()
	if !begun {
		t.decide(stop, err)
		return
	}
	end := domain.TurnFinished{Turn: t.id, Stop: stop, Usage: usage}
	if err != nil {
		end.Failure = failureOf(err)
	}
	recs := []domain.Record{end}
	if t.last != nil {
		recs = []domain.Record{*t.last, end}
	}
	if werr := t.emit.store(recs...); werr != nil {
		if errors.Is(werr, errSealed) {
			return // given up: the outcome and the journal's end are lastWords'
		}
		t.e.trouble(t.ctx, t.sid, "turns: journal the end", werr)
		if err == nil && stop != domain.StopCancelled {
			stop, err = 0, werr
		}
	}
	t.decide(stop, err)
	if t.emit.tell(recs...) == nil {
		_ = t.emit.send(t.telling, domain.TurnEnded{Turn: t.id, Stop: stop}) // fails only when nobody listens any more
	}
}

// failureOf is what the journal keeps of an error: its code and the message
// meant for people; never the detail of an uncoded one.
func failureOf(err error) *domain.Failure {
	var e *domain.Error
	if errors.As(err, &e) {
		return &domain.Failure{Code: e.Code, Msg: e.Msg}
	}
	return &domain.Failure{Code: domain.Internal, Msg: "an internal error; the log has the details"}
}
