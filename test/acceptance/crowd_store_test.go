package acceptance

import (
	"context"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// laggard is a store whose calls take their time, some of them.
type laggard struct {
	durable
	mu  sync.Mutex
	rng *rand.Rand
}

func newLaggard(s ports.Store, seed uint64) *laggard {
	return &laggard{durable: durable{s}, rng: rand.New(rand.NewPCG(seed, 7))}
}

// lag waits, until ctx ends.
func (l *laggard) lag(ctx context.Context) error {
	l.mu.Lock()
	d := pick(l.rng, 0, 0, time.Millisecond, 3*time.Millisecond, 30*time.Millisecond)
	l.mu.Unlock()
	if d == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *laggard) Load(ctx context.Context, id domain.SessionID) (domain.Session, error) {
	if err := l.lag(ctx); err != nil {
		return domain.Session{}, err
	}
	return l.durable.Load(ctx, id)
}

func (l *laggard) Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error) {
	if err := l.lag(ctx); err != nil {
		return 0, err
	}
	at, err := l.durable.Append(ctx, id, after, recs...)
	if err == nil {
		_ = l.lag(context.Background()) // it is done, and that takes a moment to be known
	}
	return at, err
}

func (l *laggard) Records(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
	return func(yield func(domain.Entry, error) bool) {
		if err := l.lag(ctx); err != nil {
			yield(domain.Entry{}, err)
			return
		}
		for entry, err := range l.durable.Records(ctx, id, after) {
			if !yield(entry, err) {
				return
			}
		}
	}
}

func (l *laggard) Acquire(ctx context.Context, id domain.SessionID) error {
	if err := l.lag(ctx); err != nil {
		return err
	}
	return l.durable.Acquire(ctx, id)
}
