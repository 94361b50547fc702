package sessions

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// leases counts who in this process relies on a session's lease, because the
// port only knows the process: a session that was closed while one of its
// tools hangs may be open again, and what the old one gives up late must not
// be taken from the new one.
type leases struct {
	port ports.Leases

	mu   sync.Mutex
	held map[domain.SessionID]*lease
}

// lease is one session's entry. It exists while somebody uses or waits for it.
type lease struct {
	lock  Lock // held over calls of the port
	pins  int  // calls in flight; guarded by leases.mu
	users int  // guarded by lock
}

// acquire takes the session's lease for one more user.
func (l *leases) acquire(ctx context.Context, id domain.SessionID) error {
	return l.with(ctx, id, func(e *lease) error {
		if e.users == 0 {
			if err := l.port.Acquire(ctx, id); err != nil {
				return err
			}
		}
		e.users++
		return nil
	})
}

// release ends one use; the last one gives the lease up.
func (l *leases) release(ctx context.Context, id domain.SessionID) error {
	return l.with(ctx, id, func(e *lease) error {
		if e.users--; e.users > 0 {
			return nil
		}
		return l.port.Release(ctx, id)
	})
}

// with runs fn on the session's entry while nobody else does.
func (l *leases) with(ctx context.Context, id domain.SessionID, fn func(*lease) error) error {
	l.mu.Lock()
	e := l.held[id]
	if e == nil {
		e = &lease{lock: newLock()}
		l.held[id] = e
	}
	e.pins++
	l.mu.Unlock()
	defer l.unpin(id, e)
	if err := e.lock.Acquire(ctx); err != nil {
		return err
	}
	defer e.lock.Release()
	return fn(e)
}

// unpin ends one call. Whoever changes users is pinned, so that without pins
// users can be read.
func (l *leases) unpin(id domain.SessionID, e *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.pins--
	if e.pins == 0 && e.users == 0 {
		delete(l.held, id)
	}
}
