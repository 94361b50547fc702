package sessions

import (
	"errors"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Lose says that the connection of a client broke: it may come back, or another
// may take over what it had. Its turns go on, its questions wait, and each of
// its sessions is freed when nobody came for Config.Grace. It does not
// block. What the client still has in flight may open a session afterwards, so
// Lose is to be called again when its last call was answered. Without a grace,
// and where nothing could be opened again, it is Detach.
func (s *Service) Lose(c ports.Client) {
	if s.cfg.Grace <= 0 || !s.p.Durable() {
		s.Detach(c, domain.Disconnected)
		return
	}
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	s.unwatchAll(c)
	s.reg.absent.set(c, false, time.Time{})
	for _, sl := range s.reg.slots {
		sl.leaveAlone(c)
		switch {
		case sl.client != c:
		case sl.state == opening && sl.next == nil:
			// Nobody knows the session yet, or nothing of it is here.
			s.shut(sl, domain.Disconnected, "disconnect")
			s.leave(sl)
		case sl.next == c: // what it had in flight ends, and Lose is called again
		case sl.state == closing:
			s.leave(sl)
			fallthrough
		default:
			s.await(sl)
		}
	}
}

// await waits for somebody to come and take a slot, whose client is lost. The
// caller holds the registry's mutex.
func (s *Service) await(sl *slot) {
	sl.client = nil
	sl.live.att.detach()
	if s.cfg.Grace > 0 {
		s.startGrace(sl)
		return
	}
	s.shut(sl, domain.Disconnected, "disconnect")
	s.leave(sl)
}

// leaveAlone says that a client that has gone waits for none of its prompts in
// the session any more.
func (sl *slot) leaveAlone(c ports.Client) {
	for _, t := range sl.queue {
		if t.client == c {
			t.leave()
		}
	}
}

// leave says that nobody waits for the prompt's answer, with the registry's
// mutex held.
func (t *Ticket) leave() {
	if !t.gone {
		t.gone = true
		close(t.left)
	}
}

// Left is closed when nobody waits for the answer to the prompt any more, and
// the turn goes on without.
func (t *Ticket) Left() <-chan struct{} { return t.left }

// Interrupt says that the prompt's request was cancelled, with a domain cause.
// That ends the turn as long as the session is its client's; when another has
// taken it over, only the wait. What becomes of the turns of a connection that
// is gone is for Detach and Lose to say.
func (t *Ticket) Interrupt(cause error) {
	s := t.svc
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	switch {
	case s.cfg.Grace > 0 && errors.Is(cause, domain.Disconnected):
	case t.slot.client == t.client, cause == domain.ProcessEnding:
		t.adm.Cancel(cause)
	default:
		t.leave()
	}
}

// Continue runs the rest of a turn whose prompt nobody waits for, on a
// goroutine that Shutdown joins.
func (t *Ticket) Continue(fn func()) { t.svc.chores.do(fn) }

// startGrace arms the timer that ends the wait for a lost client. The caller
// holds the registry's mutex.
func (s *Service) startGrace(sl *slot) {
	if sl.state == closing && sl.isDrained() {
		return
	}
	sl.stopGrace()
	var timer *time.Timer
	timer = time.AfterFunc(s.cfg.Grace, func() {
		s.reg.mu.Lock()
		defer s.reg.mu.Unlock()
		if sl.grace != timer {
			return // somebody came, or it was lost again
		}
		sl.grace = nil
		s.shut(sl, domain.Disconnected, "disconnect")
		s.leave(sl)
	})
	sl.grace = timer
}

func (sl *slot) stopGrace() {
	if sl.grace != nil {
		sl.grace.Stop()
		sl.grace = nil
	}
}
