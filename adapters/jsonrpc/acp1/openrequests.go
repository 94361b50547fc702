package acp1

import (
	"context"
	"maps"
	"sync"

	"github.com/berth-dev/berth/core/domain"
)

// openRequests are the requests of a connection about a session that may not
// be answered yet, so that what the client asks for next can come after their
// answers: the session's end, a replay, the next turn.
type openRequests struct {
	mu        sync.Mutex
	bySession map[domain.SessionID][]openRequest
	sweep     int // with so many sessions those without an open request are forgotten
}

// fewSessions is of how many sessions nothing needs to be forgotten.
const fewSessions = 64

// openRequest is one of them.
type openRequest struct {
	answered <-chan struct{} // closed when its response is queued
	// turn says that it is answered when a turn ends, which may be long after
	// the client has lost the session to another.
	turn bool
}

// add notes a request. Those that are answered already are forgotten on the
// way.
func (o *openRequests) add(id domain.SessionID, r openRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bySession == nil {
		o.bySession = make(map[domain.SessionID][]openRequest)
	}
	o.bySession[id] = append(o.open(id), r)
	if len(o.bySession) <= max(o.sweep, fewSessions) {
		return
	}
	maps.DeleteFunc(o.bySession, func(id domain.SessionID, _ []openRequest) bool { return len(o.open(id)) == 0 })
	o.sweep = 2 * len(o.bySession)
}

// of returns the requests of a session that may be open: those that a turn
// answers, and those that end by themselves.
func (o *openRequests) of(id domain.SessionID) (turns, others []<-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	open := o.open(id)
	if len(open) == 0 {
		delete(o.bySession, id)
	}
	for _, r := range open {
		if r.turn {
			turns = append(turns, r.answered)
		} else {
			others = append(others, r.answered)
		}
	}
	return turns, others
}

// waitForAnswers returns when requests that of returned are answered, or with the
// context's cause.
func waitForAnswers(ctx context.Context, answered []<-chan struct{}) error {
	for _, ch := range answered {
		select {
		case <-ch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (o *openRequests) open(id domain.SessionID) []openRequest {
	var open []openRequest
	for _, r := range o.bySession[id] {
		select {
		case <-r.answered:
		default:
			open = append(open, r)
		}
	}
	return open
}
