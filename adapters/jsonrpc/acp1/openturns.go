package acp1

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/core/domain"
)

// openTurns are the prompts, loads and resumes of a connection that may not be
// answered yet, by session, so that what the client asks for next can come
// after their answers: the session's end, a replay, the next turn.
type openTurns struct {
	mu        sync.Mutex
	bySession map[domain.SessionID][]<-chan struct{}
}

// add notes a request; answered is closed when its response is queued. Those
// that are answered already are forgotten on the way.
func (o *openTurns) add(id domain.SessionID, answered <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bySession == nil {
		o.bySession = make(map[domain.SessionID][]<-chan struct{})
	}
	o.bySession[id] = append(o.open(id), answered)
}

// of returns the requests of a session that may be open.
func (o *openTurns) of(id domain.SessionID) []<-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	open := o.open(id)
	if len(open) == 0 {
		delete(o.bySession, id)
	}
	return open
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

func (o *openTurns) open(id domain.SessionID) []<-chan struct{} {
	var open []<-chan struct{}
	for _, ch := range o.bySession[id] {
		select {
		case <-ch:
		default:
			open = append(open, ch)
		}
	}
	return open
}
