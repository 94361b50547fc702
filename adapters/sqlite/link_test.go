package sqlite

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// TestLink_DiscardGivesTheLockUp: a connection that is given up in the middle
// of a transaction takes its locks with it.
func TestLink_DiscardGivesTheLockUp(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	if err := s.Create(t.Context(), row(1)); err != nil {
		t.Fatal(err)
	}
	w := s.writer
	for range 3 {
		if err := w.link.exec(t.Context(), "BEGIN IMMEDIATE"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.link.Stmt(t.Context(), selectLease); err != nil {
			t.Fatal(err)
		}
		w.drop()
		l, err := openLink(t.Context(), w.db)
		if err != nil {
			t.Fatal(err)
		}
		w.link = l
		if err := l.exec(t.Context(), "BEGIN IMMEDIATE"); err != nil {
			t.Fatalf("the next connection cannot write: %v", err)
		}
		if err := l.exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWriter_CancelAtAnyMoment: whoever goes away while the writer works for
// him harms nobody who comes next.
func TestWriter_CancelAtAnyMoment(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	id := row(1).ID
	if err := s.Create(t.Context(), row(1)); err != nil {
		t.Fatal(err)
	}
	var hasty, patient sync.WaitGroup
	stop := make(chan struct{})
	for range 6 {
		hasty.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(time.Millisecond))
				if err := s.Acquire(ctx, id); err != nil && !domain.HasCode(err, domain.Cancelled) {
					t.Errorf("of one who goes away: %v", err)
				}
				cancel()
			}
		})
	}
	patient.Go(func() {
		for range 4000 {
			if err := s.Acquire(t.Context(), id); err != nil {
				t.Errorf("of one who stays: %v", err)
				return
			}
		}
	})
	patient.Wait()
	close(stop)
	hasty.Wait()
}
