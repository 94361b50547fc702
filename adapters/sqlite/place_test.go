package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/sqlstore"
)

// TestPlace_WhoWaitsGoesFirst: a store that has just written does not write
// again before the one that stands in front of the write lock.
func TestPlace_WhoWaitsGoesFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	synctest.Test(t, func(t *testing.T) {
		a, b := openAt(t, path), openAt(t, path)
		first, second := mustCreate(t, a, 1), mustCreate(t, b, 2)
		inA, endA := make(chan struct{}), make(chan struct{})
		var order []string
		wrote := func(s *Store, name string) {
			if err := s.writer.write(t.Context(), false, func(context.Context, sqlstore.Conn) error {
				if name == "a1" {
					close(inA)
					<-endA
				}
				order = append(order, name)
				return nil
			}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			wrote(a, "a1")
			wrote(a, "a2")
		}()
		<-inA
		next := make(chan struct{})
		go func() {
			defer close(next)
			wrote(b, "b1")
		}()
		time.Sleep(placeLimit / 2) // b stands there
		close(endA)
		<-done
		<-next
		if got := order; len(got) != 3 || got[1] != "b1" {
			t.Errorf("the order was %v, want a1 b1 a2", got)
		}
		for s, id := range map[*Store]string{a: string(first), b: string(second)} {
			if s.writer.place.taken || s.writer.place.failed {
				t.Errorf("the store of %s still stands there: %+v", id, &s.writer.place)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestPlace_WhoSleepsThereIsPassed: one that was stopped while it stood in front
// of the write lock costs the others one wait, and none of their writes.
func TestPlace_WhoSleepsThereIsPassed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	synctest.Test(t, func(t *testing.T) {
		asleep := place{name: placeName(path)}
		s := openAt(t, path)
		if !asleep.take() {
			t.Fatal("the place is not free")
		}
		began := time.Now()
		for n := range 50 {
			mustCreate(t, s, n)
		}
		if took := time.Since(began); took < placeLimit || took > placeLimit+2*lastPause {
			t.Errorf("50 writes took %v, want %v", took, placeLimit)
		}
		asleep.give()
		time.Sleep(passLimit)
		mustCreate(t, s, 50)
		if asleep.close(); s.writer.place.file == nil || s.writer.place.failed {
			t.Error("the place is not used any more")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestPlace_NoneToBeHad: where the file cannot be made, writing goes on.
func TestPlace_NoneToBeHad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	if err := os.Mkdir(placeName(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, path)
	mustCreate(t, s, 1)
	mustCreate(t, s, 2)
	if !s.writer.place.failed {
		t.Error("a directory was taken for the place")
	}
}
