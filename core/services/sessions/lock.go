package sessions

import "context"

// Lock is a mutex that may be held over waiting for a client or a store:
// waiting for it ends with a context.
type Lock chan struct{}

func newLock() Lock { return make(Lock, 1) }

// Acquire takes the lock, or returns the context's cause.
func (l Lock) Acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	default:
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release gives the lock back.
func (l Lock) Release() { <-l }
