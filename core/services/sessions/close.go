package sessions

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Close cancels the session's turns at once and returns the task that waits
// for them and frees the session. The record stays.
func (s *Service) Close(c ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	return s.end(c, id, domain.SessionClosed, "close")
}

// Stop takes no more prompts and returns the task that lets the running turns
// finish and then frees the session. The record stays.
func (s *Service) Stop(c ports.Client, id domain.SessionID) (func(context.Context) error, error) {
	return s.end(c, id, nil, "stop")
}

// end moves the slot to closing, in memory.
func (s *Service) end(c ports.Client, id domain.SessionID, cause error, how string) (func(context.Context) error, error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	sl := s.reg.slots[id]
	if sl == nil || sl.client != c {
		return nil, domain.NoSession(id)
	}
	s.shut(sl, cause, how)
	return func(ctx context.Context) error { return s.drain(ctx, sl) }, nil
}

// drain waits for the last turn of a closing slot and releases it. When the
// context ends first, the last turn does.
func (s *Service) drain(ctx context.Context, sl *slot) error {
	if err := waitFor(ctx, sl.empty); err != nil {
		s.reg.mu.Lock()
		s.leave(sl)
		s.reg.mu.Unlock()
		return err
	}
	s.release(ctx, sl)
	return nil
}

// leave lets a closing slot be released by its last turn; if that has ended
// already, on a goroutine of the service. The caller holds the registry's
// mutex.
func (s *Service) leave(sl *slot) {
	sl.abandoned = true
	if sl.isDrained() {
		s.chores.do(func() { s.release(context.Background(), sl) })
	}
}

// releaseLimit bounds how long freeing a session waits for a store or a tool
// that hangs.
const releaseLimit = time.Second

// release frees a drained slot, once. A second call waits for the first one,
// as long as its context lasts.
func (s *Service) release(ctx context.Context, sl *slot) {
	s.reg.mu.Lock()
	if sl.freed != nil {
		freed := sl.freed
		s.reg.mu.Unlock()
		_ = waitFor(ctx, freed)
		return
	}
	sl.freed = make(chan struct{})
	s.reg.mu.Unlock()
	defer close(sl.freed)
	s.free(ctx, sl)
	s.reg.mu.Lock()
	sl.released = true
	if !sl.kept {
		s.forgetLocked(sl)
	}
	known, how := sl.known, sl.how
	s.reg.mu.Unlock()
	if known {
		s.p.Observer.Observe(ctx, domain.SessionReleased{Session: sl.id, How: how})
	}
}

// free gives up what a slot's session holds. What a hanging tool still uses
// goes when that ends.
func (s *Service) free(ctx context.Context, sl *slot) {
	freeing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
	defer cancel()
	sl.live.gone.Store(true)
	sl.live.unload(freeing)
	sl.live.att.end()
}

// Detach ends what a gone client had: its turns are cancelled with the cause,
// and each of its sessions is freed when its last turn has ended. It does not
// block. What the client still has in flight may open a session afterwards,
// so Detach is to be called again when its last call was answered.
func (s *Service) Detach(c ports.Client, cause error) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	s.unwatchAll(c)
	s.reg.absent.set(c, false, time.Time{})
	for _, sl := range s.reg.slots {
		switch {
		case sl.client != c:
			sl.leaveAlone(c)
		case sl.next != nil && sl.next != c:
			// Somebody is about to take it over.
			sl.leaveAlone(c)
			sl.client = nil
			sl.live.att.detach()
		default:
			s.shut(sl, cause, "disconnect")
			s.leave(sl)
		}
	}
}

// Shutdown takes no more work, cancels every turn, and returns when all
// sessions are free and what turns left running was waited for, or with the
// context's cause.
func (s *Service) Shutdown(ctx context.Context, cause error) error {
	s.reg.mu.Lock()
	s.reg.ended = true
	s.unwatchAll(nil)
	var all []*slot
	for _, sl := range s.reg.slots {
		s.shut(sl, cause, "shutdown")
		s.leave(sl)
		all = append(all, sl)
	}
	s.reg.mu.Unlock()
	for _, sl := range all {
		if err := waitFor(ctx, sl.empty); err != nil {
			return err
		}
	}
	return s.chores.wait(ctx)
}
