package llm

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func failure(code domain.Code, retry bool, after time.Duration) *Failure {
	e := domain.Errorf(code, "no")
	e.RetryAfter = after
	return &Failure{Err: e, Retry: retry}
}

// run streams attempts and returns what was told of retries, and the end.
func run(ctx context.Context, retries int, attempts ...error) (told []domain.Retrying, finished bool, err error, made int) {
	for ev, e := range Stream(ctx, retries, func(_ context.Context, emit Emit) error {
		made++
		if made > len(attempts) {
			emit(domain.Finish{Reason: domain.FinishStop})
			return nil
		}
		return attempts[made-1]
	}) {
		switch ev := ev.(type) {
		case domain.Retrying:
			told = append(told, ev)
		case domain.Finish:
			finished = true
		}
		err = e
	}
	return told, finished, err, made
}

func TestStream_Waits(t *testing.T) {
	for name, c := range map[string]struct {
		failure *Failure
		least   time.Duration
		most    time.Duration
	}{
		"as asked":       {failure(domain.RateLimited, true, 20*time.Second), 20 * time.Second, 21 * time.Second},
		"at the bound":   {failure(domain.RateLimited, true, MaxWait), MaxWait, MaxWait + time.Second},
		"not asked":      {failure(domain.Unavailable, true, 0), 0, firstWait},
		"asked for none": {&Failure{Err: domain.Errorf(domain.RateLimited, "no"), Retry: true, AtOnce: true}, 0, firstWait / 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				seen := make(map[time.Duration]bool)
				for range 20 {
					began := time.Now()
					told, finished, err, made := run(t.Context(), 1, c.failure)
					if !finished || err != nil || made != 2 || len(told) != 1 {
						t.Fatalf("%d attempts, %v, %v", made, told, err)
					}
					if took := time.Since(began); took != told[0].Wait || took < c.least || took > c.most {
						t.Errorf("waited %s, told %s", took, told[0].Wait)
					}
					seen[told[0].Wait] = true
				}
				if len(seen) < 10 {
					t.Errorf("waits are not spread: %v", seen)
				}
			})
		})
	}
}

// TestStream_Ceiling: the ceiling of waits doubles and then stays.
func TestStream_Ceiling(t *testing.T) {
	for n := 1; n <= 80; n++ {
		ceiling := longestWait
		if n < 5 {
			ceiling = firstWait << (n - 1)
		}
		for range 100 {
			if w := backoff(n, failure(domain.Unavailable, true, 0)); w < 0 || w >= ceiling {
				t.Fatalf("wait %s after attempt %d, want less than %s", w, n, ceiling)
			}
		}
	}
}

func TestStream_GivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passing := failure(domain.Unavailable, true, 0)
		for name, c := range map[string]struct {
			retries  int
			attempts []error
			made     int
			code     domain.Code
		}{
			"after so many":        {2, []error{passing, passing, passing, passing}, 3, domain.Unavailable},
			"without retries":      {0, []error{passing}, 1, domain.Unavailable},
			"when it cannot mend":  {5, []error{failure(domain.AuthRequired, false, 0)}, 1, domain.AuthRequired},
			"beyond the bound":     {5, []error{failure(domain.RateLimited, true, MaxWait+1)}, 1, domain.RateLimited},
			"on an uncoded error":  {5, []error{errors.New("bug")}, 1, domain.Internal},
			"on a coded error":     {5, []error{domain.Errorf(domain.InvalidArgument, "bad")}, 1, domain.InvalidArgument},
			"on a missing finish":  {5, []error{nil}, 1, domain.Internal},
			"on the second reason": {5, []error{passing, failure(domain.ContextTooLong, false, 0)}, 2, domain.ContextTooLong},
		} {
			_, finished, err, made := run(t.Context(), c.retries, c.attempts...)
			if finished || made != c.made || err == nil || domain.CodeOf(err) != c.code {
				t.Errorf("%s: %d attempts, %v", name, made, err)
			}
		}
	})
}

// TestStream_Shown: nothing is repeated once something was passed on, and
// nothing is passed on after the end.
func TestStream_Shown(t *testing.T) {
	made, late := 0, true
	var events int
	var last error
	for _, err := range Stream(t.Context(), 5, func(_ context.Context, emit Emit) error {
		made++
		emit(domain.TextDelta{Text: "a"})
		return failure(domain.Unavailable, true, 0)
	}) {
		events++
		last = err
	}
	if made != 1 || events != 2 || !domain.HasCode(last, domain.Unavailable) {
		t.Errorf("%d attempts, %d events, %v", made, events, last)
	}
	for range Stream(t.Context(), 5, func(_ context.Context, emit Emit) error {
		emit(domain.Finish{Reason: domain.FinishStop})
		late = emit(domain.TextDelta{Text: "late"})
		return nil
	}) {
		continue
	}
	if late {
		t.Error("an event after the finish was passed on")
	}
}
