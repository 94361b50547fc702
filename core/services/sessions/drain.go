package sessions

import "context"

// Drain takes no more prompts and opens no more sessions, and returns when the
// last turn has ended, or with the context's cause. Prompts that were admitted
// before it run, those that wait included. Clients keep their sessions and see
// their turns to the end; Shutdown follows.
func (s *Service) Drain(ctx context.Context) error {
	s.reg.mu.Lock()
	s.reg.ended = true
	if s.reg.quiet == nil {
		s.reg.quiet = make(chan struct{})
		if s.reg.turns == 0 {
			close(s.reg.quiet)
		}
	}
	quiet := s.reg.quiet
	s.reg.mu.Unlock()
	return waitFor(ctx, quiet)
}

// turnEnded notes that a turn gave up its place. The caller holds the mutex.
func (r *registry) turnEnded() {
	r.turns--
	if r.turns == 0 && r.quiet != nil {
		close(r.quiet)
	}
}

// Stats is how a Service stands. The four kinds of sessions exclude each other.
type Stats struct {
	Busy     int // with a turn at work
	Idle     int // in memory without a turn
	Detached int // without a client
	SetAside int // out of memory until their next turn
	Running  int // turns at work
	Queued   int // prompts that wait behind them
}

// Stats counts sessions and turns. It waits for nothing but a mutex.
func (s *Service) Stats() Stats {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	var n Stats
	for _, sl := range s.reg.slots {
		if len(sl.queue) > 0 {
			n.Running++
			n.Queued += len(sl.queue) - 1
		}
		switch {
		case sl.released:
		case sl.client == nil:
			n.Detached++
		case len(sl.queue) > 0:
			n.Busy++
		case sl.state == opening || sl.live.inMemory():
			n.Idle++
		default:
			n.SetAside++
		}
	}
	return n
}
