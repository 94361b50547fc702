package sessions

import (
	"context"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// state is where a slot stands. A ready slot is idle while its queue is empty
// and busy otherwise.
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
	client ports.Client // who owns it; nil while a lost client is waited for
	// next is who is opening it although it is in memory already: it becomes
	// the owner when that succeeds.
	next   ports.Client
	live   *Live
	state  state
	opened chan struct{}   // closed when it is no longer opening
	queue  []*Ticket       // admitted turns in order; the first one runs
	stray  <-chan struct{} // closed when what an abandoned turn left running needs no more waiting for; nil when nothing did
	empty  chan struct{}   // made when closing begins, closed when the queue has drained
	idle   *time.Timer
	grace  *time.Timer // ends the wait for a lost client
	last   ended       // of the newest turn that has ended here
	how    string      // why it is closing, for the observer
	// abandoned means nobody waits for empty: the last turn releases the slot.
	abandoned bool
	known     bool // its opening was observed
	// kept means the slot keeps its place after its release, until the session
	// is deleted.
	kept     bool
	released bool
	freed    chan struct{} // made when its release begins, closed when that is done
	gone     chan struct{} // closed when the registry has forgotten it
}

// registry is the set of slots. One mutex guards it: every operation on it is
// a few memory accesses, so that admission never waits for I/O.
type registry struct {
	mu    sync.Mutex
	slots map[domain.SessionID]*slot
	// watchers are those who observe or are about to, by session, which need not
	// be in memory.
	watchers map[domain.SessionID][]*watcher
	// absent are clients whose connection is interrupted: it may go on, but
	// others need not ask for what they have.
	absent absence
	ended  bool          // the process is going away
	turns  int           // admitted and not given up
	quiet  chan struct{} // made by the first Drain, closed when no turn is left
}

// active returns the number of sessions of a client that count against its
// limit: those in memory and those on the way. The caller holds the mutex.
func (r *registry) active(c ports.Client) int {
	n := 0
	for _, sl := range r.slots {
		if (sl.client == c || sl.next == c) && (sl.state == opening || sl.live.inMemory()) {
			n++
		}
	}
	return n
}

// total returns the number of sessions of all clients that count, also of
// those that are waited for. The caller holds the mutex.
func (r *registry) total() int {
	n := 0
	for _, sl := range r.slots {
		if sl.state == opening || sl.live.inMemory() {
			n++
		}
	}
	return n
}

// reserve makes a slot for a session that is being opened by c.
func (s *Service) reserve(c ports.Client, id domain.SessionID) (*slot, error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	return s.reserveLocked(c, id)
}

func (s *Service) reserveLocked(c ports.Client, id domain.SessionID) (*slot, error) {
	if s.reg.ended {
		return nil, errEnding()
	}
	if err := s.withinLimit(c); err != nil {
		return nil, err
	}
	if total := s.cfg.MaxTotal; total > 0 && s.reg.total() >= total {
		return nil, domain.Errorf(domain.SessionLimit, "%d sessions of all clients are active, which is the limit (gateway.max_sessions); close one first", total).
			With("limit", total).With("active", total)
	}
	sl := &slot{id: id, client: c, state: opening, opened: make(chan struct{}), gone: make(chan struct{})}
	s.install(sl)
	return sl, nil
}

// install puts a slot with a session of its own into its place. The caller
// holds the mutex.
func (s *Service) install(sl *slot) {
	sl.live = newLive(s, sl.id, sl.client)
	for _, w := range s.reg.watchers[sl.id] {
		w.disturbed = true
	}
	sl.live.att.watchers = s.reg.watching(sl.id)
	s.reg.slots[sl.id] = sl
}

// withinLimit refuses a client one more session than it may have. The caller
// holds the mutex.
func (s *Service) withinLimit(c ports.Client) error {
	if active := s.reg.active(c); active >= s.cfg.MaxSessions {
		return domain.Errorf(domain.SessionLimit, "%d sessions are active, which is the limit (acp.max_sessions); close one first", active).
			With("limit", s.cfg.MaxSessions).With("active", active)
	}
	return nil
}

func errEnding() *domain.Error {
	return domain.Errorf(domain.ShuttingDown, "The agent is shutting down; start it again and resume the session")
}

// settle makes a slot that was opening ready, for who opened it, and returns
// the turns that are admitted. It reports false when the slot was closed
// meanwhile.
func (s *Service) settle(sl *slot) (admitted domain.QueueChanged, ok bool) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if sl.state != opening {
		return admitted, false
	}
	if sl.next != nil {
		sl.client, sl.next = sl.next, nil
	}
	sl.known = true
	s.opened(sl)
	return sl.admitted(), true
}

// opened makes an opening slot ready, with the registry's mutex held.
func (s *Service) opened(sl *slot) {
	sl.state = ready
	close(sl.opened)
	if len(sl.queue) == 0 {
		s.startIdle(sl)
	}
}

// unclaim makes a slot what it was before somebody tried to open it again: its
// owner's, or waiting for one. It reports false when the slot was closed
// meanwhile.
func (s *Service) unclaim(sl *slot, c ports.Client, own bool) bool {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if sl.state != opening {
		return false
	}
	ousted := sl.live.att.oustedBefore()
	if sl.client == c && !own || ousted != nil { // it had taken the session already, or its owner was ousted for it
		sl.client = nil
		sl.live.att.detach()
	}
	s.tellTaken(ousted, c, sl.live.id)
	sl.next = nil
	s.opened(sl)
	if sl.client == nil {
		s.await(sl)
	}
	return true
}

// drop ends an opening that failed: the slot is gone, unless whoever closed it
// meanwhile releases it.
func (s *Service) drop(ctx context.Context, sl *slot) {
	s.reg.mu.Lock()
	if sl.state == closing {
		if len(sl.queue) == 0 { // else the last turn does it
			sl.drained()
			if sl.abandoned {
				s.leave(sl)
			}
		}
		s.reg.mu.Unlock()
		return
	}
	s.shut(sl, nil, "failed")
	sl.drained()
	s.reg.mu.Unlock()
	s.release(ctx, sl)
}

// forgetLocked takes a slot out of the registry, by identity.
func (s *Service) forgetLocked(sl *slot) {
	if s.reg.slots[sl.id] == sl {
		delete(s.reg.slots, sl.id)
		close(sl.gone)
	}
}

// shut makes a slot take no more prompts and cancels what runs, unless cause
// is nil. The caller holds the registry's mutex.
func (s *Service) shut(sl *slot, cause error, how string) {
	if sl.state != closing {
		wasReady := sl.state == ready
		sl.state, sl.how, sl.empty = closing, how, make(chan struct{})
		sl.stopIdle()
		sl.stopGrace()
		if wasReady {
			if len(sl.queue) == 0 {
				sl.drained()
			}
		} else {
			close(sl.opened)
		}
	}
	if cause != nil {
		sl.cancelAll(cause)
	}
}

// drained says that no turn is left in a closing slot.
func (sl *slot) drained() {
	if !sl.isDrained() {
		close(sl.empty)
	}
}

func (sl *slot) isDrained() bool {
	select {
	case <-sl.empty:
		return true
	default:
		return false
	}
}

// startIdle arms the timer that sets an idle session aside.
func (s *Service) startIdle(sl *slot) {
	switch {
	case s.cfg.IdleTimeout <= 0:
	case sl.idle == nil:
		sl.idle = time.AfterFunc(s.cfg.IdleTimeout, func() { s.chores.do(func() { s.setAside(sl) }) })
	default:
		sl.idle.Reset(s.cfg.IdleTimeout)
	}
}

func (sl *slot) stopIdle() {
	if sl.idle != nil {
		sl.idle.Stop()
	}
}

// setAside frees the memory of an idle session; its slot stays, and the next
// turn brings the rest back. Without a durable store nothing is set aside,
// because nothing could bring it back.
func (s *Service) setAside(sl *slot) {
	if !s.p.Durable() {
		return
	}
	s.reg.mu.Lock()
	idle := sl.state == ready && len(sl.queue) == 0
	s.reg.mu.Unlock()
	if !idle {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseLimit)
	defer cancel()
	if sl.live.unload(ctx) {
		s.p.Observer.Observe(ctx, domain.SessionReleased{Session: sl.id, How: "idle"})
		return
	}
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	if sl.state == ready && len(sl.queue) == 0 && sl.live.inMemory() {
		s.startIdle(sl) // something that outlived its turn still uses it
	}
}
