package sessions

import (
	"time"

	"github.com/berth-dev/berth/core/ports"
)

// Absent says that the connection of a client is interrupted, or goes on: its
// transport keeps what it is told meanwhile. It keeps what it has, unless
// another client opens that; then it is told of the loss when it is back. It
// does not block.
func (s *Service) Absent(c ports.Client, away bool) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	s.reg.absent.set(c, away, s.p.Clock())
}

// absence is how a client whose connection is interrupted is known. It is empty
// for those that are there.
type absence struct {
	since map[ports.Client]time.Time
	// changed is closed and replaced when somebody goes or comes.
	changed chan struct{}
}

// absence returns how long a client is still to be waited for, what is closed
// when that may have changed, and whether it is away at all.
func (s *Service) absence(c ports.Client) (left time.Duration, changed <-chan struct{}, away bool) {
	s.reg.mu.Lock()
	defer s.reg.mu.Unlock()
	since, away := s.reg.absent.since[c]
	return editorLimit - s.p.Clock().Sub(since), s.reg.absent.changed, away
}

// is reports whether a client is away. The caller holds the registry's mutex.
func (a *absence) is(c ports.Client) bool {
	_, away := a.since[c]
	return away
}

// set notes that a client is away, or not. The caller holds the registry's
// mutex.
func (a *absence) set(c ports.Client, away bool, now time.Time) {
	if a.is(c) == away {
		return
	}
	if away {
		a.since[c] = now
	} else {
		delete(a.since, c)
	}
	close(a.changed)
	a.changed = make(chan struct{})
}
