package acp1

import (
	"sync"

	"github.com/berth-dev/berth/core/domain"
)

// openTurns are the prompts of a connection that may not be answered yet, by
// session, so that the end of a session can be answered after them.
type openTurns struct {
	mu        sync.Mutex
	bySession map[domain.SessionID][]<-chan struct{}
}

// add notes a prompt; answered is closed when its response is queued. Prompts
// that are answered already are forgotten on the way.
func (o *openTurns) add(id domain.SessionID, answered <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bySession == nil {
		o.bySession = make(map[domain.SessionID][]<-chan struct{})
	}
	o.bySession[id] = append(o.open(id), answered)
}

// of returns the prompts of a session that may be open, and forgets them.
func (o *openTurns) of(id domain.SessionID) []<-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	open := o.open(id)
	delete(o.bySession, id)
	return open
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
