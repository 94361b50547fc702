package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// durableWait is how long the question whether sessions are kept may wait for
// the store: the answer to initialize depends on it.
const durableWait = 300 * time.Millisecond

// lateStore is a ports.Store that opens behind the start of the process. Each
// method waits until it is open; what opens is decided by open, which falls
// back to memory and says so rather than fail.
type lateStore struct {
	ready chan struct{} // closed when store is set
	store ports.Store
}

var _ ports.Store = (*lateStore)(nil)

// openLate starts opening a store. The goroutine ends when open returns;
// Close joins it.
func openLate(open func() ports.Store) *lateStore {
	l := &lateStore{ready: make(chan struct{})}
	go func() {
		defer close(l.ready)
		l.store = open()
	}()
	return l
}

func (l *lateStore) get(ctx context.Context) (ports.Store, error) {
	select {
	case <-l.ready:
		return l.store, nil
	default:
	}
	select {
	case <-l.ready:
		return l.store, nil
	case <-ctx.Done():
		return nil, domain.WrapError(domain.StoreUnavailable, context.Cause(ctx), "The session store is still being opened; try again")
	}
}

// Durable reports whether sessions are kept; a store that is not open after
// 300 ms counts as one that does not keep them.
func (l *lateStore) Durable() bool {
	ctx, cancel := context.WithTimeout(context.Background(), durableWait)
	defer cancel()
	s, err := l.get(ctx)
	return err == nil && s.Durable()
}

// Create waits for the store and forwards.
func (l *lateStore) Create(ctx context.Context, row domain.Session) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Create(ctx, row)
}

// Load waits for the store and forwards.
func (l *lateStore) Load(ctx context.Context, id domain.SessionID) (domain.Session, error) {
	s, err := l.get(ctx)
	if err != nil {
		return domain.Session{}, err
	}
	return s.Load(ctx, id)
}

// Update waits for the store and forwards.
func (l *lateStore) Update(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Update(ctx, id, fn)
}

// Delete waits for the store and forwards.
func (l *lateStore) Delete(ctx context.Context, id domain.SessionID) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Delete(ctx, id)
}

// List waits for the store and forwards.
func (l *lateStore) List(ctx context.Context, q domain.SessionQuery) (domain.SessionPage, error) {
	s, err := l.get(ctx)
	if err != nil {
		return domain.SessionPage{}, err
	}
	return s.List(ctx, q)
}

// Append waits for the store and forwards.
func (l *lateStore) Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error) {
	s, err := l.get(ctx)
	if err != nil {
		return 0, err
	}
	return s.Append(ctx, id, after, recs...)
}

// Records waits for the store and forwards.
func (l *lateStore) Records(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
	return func(yield func(domain.Entry, error) bool) {
		s, err := l.get(ctx)
		if err != nil {
			yield(domain.Entry{}, err)
			return
		}
		for entry, err := range s.Records(ctx, id, after) {
			if !yield(entry, err) {
				return
			}
		}
	}
}

// Spent waits for the store and forwards.
func (l *lateStore) Spent(ctx context.Context, agent string, t time.Time) (domain.MicroUSD, error) {
	s, err := l.get(ctx)
	if err != nil {
		return 0, err
	}
	return s.Spent(ctx, agent, t)
}

// Acquire waits for the store and forwards.
func (l *lateStore) Acquire(ctx context.Context, id domain.SessionID) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Acquire(ctx, id)
}

// Release waits for the store and forwards.
func (l *lateStore) Release(ctx context.Context, id domain.SessionID) error {
	s, err := l.get(ctx)
	if err != nil {
		return err
	}
	return s.Release(ctx, id)
}

// Close waits for the store and closes it.
func (l *lateStore) Close() error {
	<-l.ready
	return l.store.Close()
}

// storeTrouble words why sessions are not kept.
func storeTrouble(err error) string {
	var e *domain.Error
	if errors.As(err, &e) {
		return e.Msg
	}
	return fmt.Sprintf("the session store cannot be opened: %v", err)
}
