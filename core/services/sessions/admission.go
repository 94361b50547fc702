package sessions

import (
	"context"
	"slices"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Admission is what a place in a session's queue is taken for.
type Admission struct {
	Turn   domain.TurnID
	Blocks []domain.Block // of the prompt, for observers
	Queue  bool           // wait behind a running turn
	// Cancel is called, with a domain cause, when the turn must end.
	Cancel context.CancelCauseFunc
}

// Ticket is the place of one admitted prompt in its session's queue.
type Ticket struct {
	Live   *Live
	svc    *Service
	slot   *slot
	client ports.Client // who sent the prompt
	adm    Admission
	turn   chan struct{} // closed when the ticket is first in the queue
	left   chan struct{} // closed when nobody waits for the prompt's answer, and the turn goes on
	gone   bool          // left is closed
	over   chan struct{} // closed when the turn has ended
	ended  ended
}

// ended is how a turn ended.
type ended struct {
	turn    domain.TurnID
	outcome domain.TurnOutcome
	err     error
}

// reaperLimit is how long the next turn waits for what an abandoned turn left
// running; it is the length of the kill ladder.
const reaperLimit = 2 * time.Second

// Admit takes a place in the session's queue for a prompt of client c. It
// only touches memory, so it may run on a connection's read goroutine.
func (s *Service) Admit(c ports.Client, id domain.SessionID, adm Admission) (*Ticket, error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	switch {
	case s.reg.ended:
		return nil, errEnding()
	case sl == nil || sl.client != c || sl.state == closing:
		return nil, domain.NoSession(id)
	case sl.state == opening:
		return nil, domain.Errorf(domain.SessionBusy, "Session %s is still being opened; prompt it after that call was answered", id).
			With("sessionId", string(id))
	case len(sl.queue) > 0 && !adm.Queue:
		return nil, domain.Errorf(domain.SessionBusy, "Session %s is busy with a turn; wait for its answer or cancel it", id).
			With("sessionId", string(id))
	case len(sl.queue) > s.cfg.QueueLimit: // the first one runs, the others wait
		return nil, domain.Errorf(domain.SessionBusy, "Session %s has %d prompts waiting, which is the limit", id, s.cfg.QueueLimit).
			With("sessionId", string(id)).With("limit", s.cfg.QueueLimit)
	}
	t := &Ticket{
		Live: sl.live, svc: s, slot: sl, client: c, adm: adm,
		turn: make(chan struct{}), left: make(chan struct{}), over: make(chan struct{}),
	}
	sl.queue = append(sl.queue, t)
	s.reg.turns++
	if len(sl.queue) == 1 {
		close(t.turn)
	}
	sl.stopIdle()
	sl.showQueue()
	return t, nil
}

// Cancel cancels every admitted turn of the session, running and waiting,
// with a cause. It reports whether there was one.
func (s *Service) Cancel(c ports.Client, id domain.SessionID, cause error) bool {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	if sl == nil || sl.client != c && sl.next != c {
		return false
	}
	return sl.cancelAll(cause)
}

// cancelAll cancels what was admitted. Those that wait leave the queue at once:
// they never begin, and take no place from a prompt that comes after.
func (sl *slot) cancelAll(cause error) bool {
	found := len(sl.queue) > 0
	for _, t := range sl.queue {
		t.adm.Cancel(cause)
	}
	if len(sl.queue) > 1 {
		sl.queue = slices.Delete(sl.queue, 1, len(sl.queue))
		sl.showQueue()
	}
	return found
}

// Wait returns when the ticket's turn has come and what an abandoned turn
// left running has ended or was waited for long enough; or with the context's
// cause. A turn that is first and waits for nothing begins, even if it is
// cancelled already.
func (t *Ticket) Wait(ctx context.Context) error {
	if err := waitFor(ctx, t.turn); err != nil {
		return err
	}
	t.svc.reg.mu.Lock()
	stray := t.slot.stray
	t.svc.reg.mu.Unlock()
	return waitFor(ctx, stray)
}

// waitFor returns when c is closed (nil counts as closed), or with the
// context's cause. When both are the case, c wins.
func waitFor(ctx context.Context, c <-chan struct{}) error {
	if c == nil {
		return nil
	}
	select {
	case <-c:
		return nil
	default:
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ended says how the turn ended, before Done.
func (t *Ticket) Ended(outcome domain.TurnOutcome, err error) {
	t.ended = ended{t.adm.Turn, outcome, err}
}

// Done gives the place up, by identity, and lets the next one run. stray, if
// not nil, closes when what the turn left running has ended.
func (t *Ticket) Done(stray <-chan struct{}) {
	s, sl := t.svc, t.slot
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	defer close(t.over)
	if t.ended.turn != "" {
		sl.last = t.ended
	}
	s.reg.turnEnded()
	if i := slices.Index(sl.queue, t); i >= 0 {
		sl.queue = slices.Delete(sl.queue, i, i+1)
		if i == 0 && len(sl.queue) > 0 {
			close(sl.queue[0].turn)
		}
		sl.showEnd(t.ended)
	}
	if stray != nil {
		s.reap(sl, stray)
	}
	if len(sl.queue) > 0 {
		return
	}
	switch sl.state {
	case closing:
		sl.drained()
		sl.stopGrace()
		if sl.abandoned {
			s.chores.do(func() { s.release(context.Background(), sl) })
		}
	case ready:
		s.startIdle(sl)
	case opening:
	}
}

// reap makes the slot's next turn wait for a stray, at most the kill ladder
// from now on. The caller holds the registry's mutex.
func (s *Service) reap(sl *slot, stray <-chan struct{}) {
	sl.stray = s.chores.do(func() {
		limit := time.NewTimer(reaperLimit)
		defer limit.Stop()
		select {
		case <-stray:
		case <-limit.C:
		}
	})
}
