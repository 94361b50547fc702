package llm

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Emit passes one event on. It returns false when the consumer has left the
// loop or the context has ended; the attempt then returns at once, with any
// error.
type Emit func(domain.ModelEvent) bool

// Attempt sends the request once and emits the reply, Finish last. It returns
// nil after a complete reply and else why there is none: a *Failure, or an
// error that cannot be mended by sending again. Whatever it opened is closed
// when it returns.
type Attempt func(ctx context.Context, emit Emit) error

// The bounds of waiting. A provider that asks for more than MaxWait is not
// waited for: the person is told when to come back instead.
const (
	MaxWait     = 60 * time.Second
	firstWait   = 500 * time.Millisecond
	longestWait = 8 * time.Second
)

// errIncomplete is a bug of an adapter.
var errIncomplete = errors.New("an attempt ended without a finish")

// Stream is the life of one model request, for all providers: attempts until
// one gives a complete reply. An attempt is repeated only while nothing of a
// reply was passed on, at most retries times, after a wait the consumer is
// told of. A wait is what the provider asked for, else a random part of a
// ceiling that doubles (so that sessions which failed together do not come
// back together). Cancelling ends waits and attempts; the error is then
// coded Cancelled.
func Stream(ctx context.Context, retries int, attempt Attempt) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		s := stream{ctx: ctx, yield: yield}
		for n := 1; ; n++ {
			if ctx.Err() != nil {
				yield(nil, cancelled(context.Cause(ctx)).Err)
				return
			}
			err := attempt(ctx, s.emit)
			if s.left || s.finished {
				return
			}
			f := asFailure(ctx, err)
			if !f.Retry || s.begun || n > retries || f.Err.RetryAfter > MaxWait {
				yield(nil, f.Err)
				return
			}
			wait := backoff(n, f)
			if !yield(domain.Retrying{Attempt: n, Wait: wait, Reason: f.Err.Msg}, nil) || !sleep(ctx, wait, yield) {
				return
			}
		}
	}
}

// stream is what one request has passed on so far.
type stream struct {
	ctx      context.Context
	yield    func(domain.ModelEvent, error) bool
	begun    bool
	finished bool
	left     bool
}

func (s *stream) emit(ev domain.ModelEvent) bool {
	if s.left || s.finished || s.ctx.Err() != nil {
		return false
	}
	s.begun = true
	if _, last := ev.(domain.Finish); last {
		s.finished = true
	}
	s.left = !s.yield(ev, nil)
	return !s.left
}

func asFailure(ctx context.Context, err error) *Failure {
	if ctx.Err() != nil {
		return cancelled(context.Cause(ctx))
	}
	if err == nil {
		err = errIncomplete
	}
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	return final(err)
}

// backoff returns the wait after the n-th attempt.
func backoff(n int, f *Failure) time.Duration {
	asked := f.Err.RetryAfter
	switch {
	case asked > 0:
		// Never sooner than asked, and not all at the same moment.
		return asked + rand.N(min(asked/10, time.Second)+1)
	case f.AtOnce:
		return rand.N(firstWait / 10)
	case n <= 4:
		return rand.N(firstWait << (n - 1))
	}
	return rand.N(longestWait)
}

// sleep waits, and yields the error when the context ends before.
func sleep(ctx context.Context, d time.Duration, yield func(domain.ModelEvent, error) bool) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		yield(nil, cancelled(context.Cause(ctx)).Err)
		return false
	}
}
