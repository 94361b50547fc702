package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"modernc.org/sqlite"

	"github.com/berth-dev/berth/adapters/sqlstore"
	"github.com/berth-dev/berth/core/domain"
)

// busyError is what SQLite says while another connection has the lock.
func busyError(t *testing.T) error {
	t.Helper()
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	foreignLock(t, s.path)
	db, err := rawConn(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE")
	var e *sqlite.Error
	if !errors.As(err, &e) || !busy(err) {
		t.Fatalf("a locked file gives %v", err)
	}
	return err
}

// TestPatience_LooksOften: whoever waits while others write without a break
// finds the lock free only by looking often, for nobody hands it on.
func TestPatience_LooksOften(t *testing.T) {
	locked := busyError(t)
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		err := patience(defaultWait).insist(t.Context(), func() error { looks++; return locked })
		if !busy(err) {
			t.Errorf("it ended with %v", err)
		}
		if took := time.Since(began); took != defaultWait {
			t.Errorf("it took %v, want %v", took, defaultWait)
		}
		if looks < 800 || looks > 4000 {
			t.Errorf("it looked %d times in %v", looks, defaultWait)
		}
	})
}

// TestWriter_ItsOwnSlownessIsNoLock: who waits behind a transaction of the same
// process, with a slow disk under it, is not told that another process is in
// the way, and what he wants written is.
func TestWriter_ItsOwnSlownessIsNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	synctest.Test(t, func(t *testing.T) {
		s := openAt(t, path)
		id := mustCreate(t, s, 1)
		disk := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			if err := s.writer.write(t.Context(), false, func(context.Context, sqlstore.Conn) error {
				<-disk
				return nil
			}); err != nil {
				t.Errorf("the slow one: %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, err := s.Append(t.Context(), id, 0, numbered(0, 1)...); err != nil {
				t.Errorf("the one behind it: %v", err)
			}
		})
		gone, leave := context.WithCancelCause(t.Context())
		all.Go(func() {
			mine := errors.New("mine")
			time.AfterFunc(5*defaultWait, func() { leave(mine) })
			if _, err := s.Append(gone, id, 1, numbered(1, 1)...); !errors.Is(err, mine) {
				t.Errorf("the one who leaves: %v", err)
			}
		})
		time.Sleep(7 * defaultWait)
		close(disk)
		all.Wait()
		if n := wantNumbered(t, s, id); n != 1 {
			t.Errorf("%d records, want 1", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWriter_PatienceIsEverybodysOwn: those who queue behind a leader that
// waits for another process do not wait one after the other, those who come
// later wait as long as the first, and a slow disk before costs nobody any
// patience.
func TestWriter_PatienceIsEverybodysOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	synctest.Test(t, func(t *testing.T) {
		s := openAt(t, path)
		id := mustCreate(t, s, 1)
		db, err := rawConn(path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		disk := make(chan struct{})
		var locked time.Time
		var all sync.WaitGroup
		all.Go(func() {
			// It ends its own transaction and has the other process begin one
			// before those who wait here can.
			_ = s.writer.write(t.Context(), false, func(ctx context.Context, c sqlstore.Conn) error {
				<-disk
				if err := c.(*link).exec(ctx, "COMMIT"); err != nil {
					t.Error(err)
				}
				if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
					t.Error(err)
				}
				locked = time.Now()
				return nil
			})
		})
		synctest.Wait()
		fails := func(after time.Duration) {
			all.Go(func() {
				_, err := s.Append(t.Context(), id, 0, said("x"))
				if !domain.HasCode(err, domain.StoreUnavailable) || detail(err, "kind") != "storage_busy" {
					t.Errorf("append to a locked store: %v", err)
				}
				if took := time.Since(locked); took < after || took > after+2*lastPause {
					t.Errorf("it waited %v for the other process, want %v", took, after)
				}
			})
		}
		for range 3 {
			fails(defaultWait)
		}
		time.Sleep(3 * defaultWait)
		close(disk)
		time.Sleep(defaultWait / 2)
		fails(defaultWait + defaultWait/2)
		all.Wait()
		if strings.Contains(lockHolder(path), "process") {
			t.Errorf("the store names its own process as the one in the way: %s", lockHolder(path))
		}
		db.Close()
		if _, err := s.Append(t.Context(), id, 0, said("x")); err != nil {
			t.Errorf("append after the lock: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
