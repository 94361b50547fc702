package sessions

import (
	"context"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// state is where a slot stands.
type state int

const (
	opening state = iota // reserved by a new, load or resume that is not done
	ready                // takes prompts
	closing              // no new prompts; released when its turns have ended
)

// slot is the place of one session in memory. The registry's mutex guards
// all of it but live, which has a lock of its own.
type slot struct {
	id     domain.SessionID
	client ports.Client
	live   *Live
	state  state
	queue  []*Ticket     // admitted turns in order; the first one runs
	stray  chan struct{} // closed when what outlived an abandoned turn has ended; nil when nothing did
	empty  chan struct{} // closed when the queue has drained while closing
	idle   *time.Timer
	how    string // why it is closing, for the observer
	// abandoned means nobody waits for empty: the last turn releases the slot.
	abandoned bool
	once      sync.Once
}

// registry is the set of slots. One mutex guards it: every operation on it is
// a few memory accesses, so that admission never waits for I/O.
type registry struct {
	mu    sync.Mutex
	slots map[domain.SessionID]*slot
	ended bool // the process is going away
}

// Ticket is the place of one admitted prompt in its session's queue.
type Ticket struct {
	Live   *Live
	svc    *Service
	slot   *slot
	turn   chan struct{} // closed when the ticket is first in the queue
	cancel context.CancelCauseFunc
}

// reaperLimit is how long the next turn waits for what an abandoned turn left
// running; it is the length of the kill ladder.
const reaperLimit = 2 * time.Second

// Admit takes a place in the session's queue for a prompt of client c. It
// only touches memory, so it may run on a connection's read goroutine.
// cancel is called, with a domain cause, when the turn must end.
func (s *Service) Admit(c ports.Client, id domain.SessionID, queue bool, cancel context.CancelCauseFunc) (*Ticket, error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	switch {
	case s.reg.ended:
		return nil, domain.Errorf(domain.ShuttingDown, "The agent is shutting down; start it again and resume the session")
	case sl == nil || sl.client != c || sl.state == closing:
		return nil, domain.NoSession(id)
	case sl.state == opening:
		return nil, domain.Errorf(domain.SessionBusy, "Session %s is still being opened; prompt it after that call was answered", id).
			With("sessionId", string(id))
	case len(sl.queue) > 0 && !queue:
		return nil, domain.Errorf(domain.SessionBusy, "Session %s is busy with a turn; wait for its answer or cancel it", id).
			With("sessionId", string(id))
	case len(sl.queue) > s.cfg.QueueLimit:
		return nil, domain.Errorf(domain.SessionBusy, "Session %s has %d prompts waiting, which is the limit", id, s.cfg.QueueLimit).
			With("sessionId", string(id)).With("limit", s.cfg.QueueLimit)
	}
	t := &Ticket{Live: sl.live, svc: s, slot: sl, turn: make(chan struct{}), cancel: cancel}
	sl.queue = append(sl.queue, t)
	if len(sl.queue) == 1 {
		close(t.turn)
	}
	sl.stopIdle()
	return t, nil
}

// Wait returns when the ticket's turn has come and nothing of an earlier turn
// is left running, or with the context's cause.
func (t *Ticket) Wait(ctx context.Context) error {
	select {
	case <-t.turn: // also when the context has ended: a turn that is first begins
	default:
		select {
		case <-t.turn:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	t.svc.reg.mu.Lock()
	stray := t.slot.stray
	t.svc.reg.mu.Unlock()
	if stray == nil {
		return nil
	}
	limit := time.NewTimer(reaperLimit)
	defer limit.Stop()
	select {
	case <-stray:
	case <-limit.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// Done gives the place up, by identity, and lets the next one run. stray, if
// not nil, closes when what the turn left running has ended.
func (t *Ticket) Done(stray chan struct{}) {
	s, sl := t.svc, t.slot
	s.reg.mu.Lock()
	for i, other := range sl.queue {
		if other == t {
			sl.queue = append(sl.queue[:i:i], sl.queue[i+1:]...)
			if i == 0 && len(sl.queue) > 0 {
				close(sl.queue[0].turn)
			}
			break
		}
	}
	if stray != nil {
		sl.stray = stray
	}
	release := false
	if len(sl.queue) == 0 {
		switch sl.state {
		case closing:
			sl.closeEmpty()
			release = sl.abandoned
		case ready:
			s.startIdle(sl)
		case opening:
		}
	}
	s.reg.mu.Unlock()
	if release {
		s.release(context.Background(), sl)
	}
}

// Cancel cancels every admitted turn of the session, running and waiting,
// with a cause. It reports whether there was one.
func (s *Service) Cancel(c ports.Client, id domain.SessionID, cause error) bool {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	if sl == nil || sl.client != c {
		return false
	}
	return sl.cancelAll(cause)
}

func (sl *slot) cancelAll(cause error) bool {
	for _, t := range sl.queue {
		t.cancel(cause)
	}
	return len(sl.queue) > 0
}

func (sl *slot) stopIdle() {
	if sl.idle != nil {
		sl.idle.Stop()
	}
}

// startIdle arms the timer that sets an idle session aside. Without a durable
// store nothing is set aside, because nothing could bring it back.
func (s *Service) startIdle(sl *slot) {
	if !s.p.Durable() || s.cfg.IdleTimeout <= 0 {
		return
	}
	if sl.idle == nil {
		sl.idle = time.AfterFunc(s.cfg.IdleTimeout, func() { s.setAside(sl) })
		return
	}
	sl.idle.Reset(s.cfg.IdleTimeout)
}

// setAside frees the memory of an idle session; its slot stays, and the next
// turn brings the rest back.
func (s *Service) setAside(sl *slot) {
	s.reg.mu.Lock()
	busy := sl.state != ready || len(sl.queue) > 0
	s.reg.mu.Unlock()
	if busy {
		return
	}
	if sl.live.unload(context.Background()) {
		s.p.Observer.Observe(context.Background(), domain.SessionReleased{Session: sl.id, How: "idle"})
	}
}

// reserve makes a slot for a session that is being opened by c.
func (s *Service) reserve(c ports.Client, id domain.SessionID) (*slot, error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	return s.reserveLocked(c, id)
}

func (s *Service) reserveLocked(c ports.Client, id domain.SessionID) (*slot, error) {
	if s.reg.ended {
		return nil, domain.Errorf(domain.ShuttingDown, "The agent is shutting down; start it again and resume the session")
	}
	active := 0
	for _, sl := range s.reg.slots {
		if sl.client == c && sl.live.held() {
			active++
		}
	}
	if active >= s.cfg.MaxSessions {
		return nil, domain.Errorf(domain.SessionLimit, "%d sessions are active, which is the limit (acp.max_sessions); close one first", active).
			With("limit", s.cfg.MaxSessions).With("active", active)
	}
	sl := &slot{id: id, client: c, state: opening}
	sl.live = &Live{id: id, svc: s, lock: make(chan struct{}, 1), att: newAttachment(c)}
	s.reg.slots[id] = sl
	return sl, nil
}

// settle makes a reserved slot ready, or drops it when opening failed. It
// reports false when the slot was closed meanwhile.
func (s *Service) settle(sl *slot, ok bool) bool {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if s.reg.slots[sl.id] != sl || sl.state == closing {
		return false
	}
	if !ok {
		delete(s.reg.slots, sl.id)
		return true
	}
	sl.state = ready
	s.startIdle(sl)
	return true
}
