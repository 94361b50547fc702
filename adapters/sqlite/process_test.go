package sqlite

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// TestStore_KillWhileAppending kills a process again and again, each time
// after another number of answers: what was answered is there, and nothing is
// there in part.
func TestStore_KillWhileAppending(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := openAt(t, path)
	id := mustCreate(t, s, 1)
	s.Close()
	rounds := 25
	if testing.Short() {
		rounds = 6
	}
	for round := range rounds {
		c := startChild(t, "append", path, string(id), "100000")
		acked := 0
		for range 1 + round*7%23 {
			var err error
			if acked, err = strconv.Atoi(c.line()); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		c.kill()
		// What the child said before it was killed and nobody has read yet.
		for c.out.Scan() {
			if n, err := strconv.Atoi(c.out.Text()); err == nil {
				acked = n
			}
		}
		s := openAt(t, path)
		got := wantNumbered(t, s, id)
		if got < acked || got%3 != 0 {
			t.Fatalf("round %d: %d records are there, %d were answered", round, got, acked)
		}
		loaded, err := s.Load(t.Context(), id)
		if err != nil || loaded.Title != fmt.Sprint(got) {
			t.Errorf("round %d: the title is %q after %d records (%v)", round, loaded.Title, got, err)
		}
		if err := s.Acquire(t.Context(), id); err != nil {
			t.Errorf("round %d: the killed process still owns its session: %v", round, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	wantSound(t, path)
}

// TestStore_ManyProcessesAndAForeignLock has eight agents work at once while
// another program holds the file longer than SQLite's own patience.
func TestStore_ManyProcessesAndAForeignLock(t *testing.T) {
	const agents, appends = 8, 20
	hold := 6 * time.Second
	if testing.Short() {
		hold = 2 * time.Second
	}
	path := filepath.Join(t.TempDir(), "s.db")
	s := openAt(t, path)
	for n := range agents {
		mustCreate(t, s, n)
	}
	var children []*child
	for n := range agents {
		c := startChild(t, "append", path, string(row(n).ID), strconv.Itoa(appends))
		if line := c.line(); line != "3" {
			t.Fatalf("agent %d: %s", n, line)
		}
		children = append(children, c)
	}
	lock := startChild(t, "lock", path)
	lock.want("locked")
	time.AfterFunc(hold, func() { lock.in.Close() })
	var wg sync.WaitGroup
	for n, c := range children {
		wg.Go(func() {
			if last := c.finish(); last != strconv.Itoa(3*appends) {
				t.Errorf("agent %d ended with %q", n, last)
			}
		})
	}
	wg.Wait()
	for n := range agents {
		if got := wantNumbered(t, s, row(n).ID); got != 3*appends {
			t.Errorf("session %d holds %d records, want %d", n, got, 3*appends)
		}
	}
	s.Close()
	wantSound(t, path)
}

func TestStore_TwentyFirstStartsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data", "sessions", "s.db")
	var children []*child
	for range 20 {
		children = append(children, startChild(t, "start", path))
	}
	for _, c := range children {
		if last := c.finish(); last != "started" {
			t.Errorf("a first start ended with %q", last)
		}
	}
	var steps int
	db, err := rawConn(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Get(&steps, "SELECT count(*) FROM schema_migrations"); err != nil || steps != newest(t) {
		t.Errorf("%d steps were applied (%v)", steps, err)
	}
}

// TestLease_TakeoverAfterKill: an owner that is killed is gone at once.
func TestLease_TakeoverAfterKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := openAt(t, path)
	id := mustCreate(t, s, 1)
	for round := range 3 {
		owner := startChild(t, "hold", path, string(id))
		owner.want("held")
		err := s.Acquire(t.Context(), id)
		if !domain.HasCode(err, domain.SessionActive) {
			t.Fatalf("round %d: acquire from a living process: %v", round, err)
		}
		if _, err := s.Append(t.Context(), id, 0, said("mine")); !domain.HasCode(err, domain.Conflict) {
			t.Fatalf("round %d: append to a living process's session: %v", round, err)
		}
		owner.kill()
		began := time.Now()
		if err := s.Acquire(t.Context(), id); err != nil {
			t.Fatalf("round %d: acquire after the kill: %v", round, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("round %d: the takeover took %v", round, took)
		}
		if err := s.Release(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	// What the killed ones left behind goes when a store is opened.
	before, _ := filepath.Glob(filepath.Join(instanceDir(path), "*"))
	other := openAt(t, path)
	after, _ := filepath.Glob(filepath.Join(instanceDir(path), "*"))
	if len(before) < 2 || len(after) != 1 {
		t.Errorf("lock files before %v, after %v", before, after)
	}
	other.Close()
	s.Close()
	if left, _ := filepath.Glob(filepath.Join(instanceDir(path), "*")); len(left) != 0 {
		t.Errorf("lock files at the end: %v", left)
	}
}

// TestLease_TwoStoresOfOneProcess: an instance is a store, not a process.
func TestLease_TwoStoresOfOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	a, b := openAt(t, path), openAt(t, path)
	id := mustCreate(t, a, 1)
	if err := a.Acquire(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := b.Acquire(t.Context(), id); !domain.HasCode(err, domain.SessionActive) {
		t.Errorf("the second store got the session: %v", err)
	}
	// Sweeping while both live takes nothing away.
	c := openAt(t, path)
	if err := c.Acquire(t.Context(), id); !domain.HasCode(err, domain.SessionActive) {
		t.Errorf("the third store got the session: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Acquire(t.Context(), id); err != nil {
		t.Errorf("acquire after the owner closed: %v", err)
	}
}

// TestInstance_SweptWhileBorn has a sweeper remove lock files as fast as they
// are made: whoever holds a lock holds it on a file that has its name.
func TestInstance_SweptWhileBorn(t *testing.T) {
	dir := t.TempDir()
	sweeper := &instance{id: "sweeper", dir: dir}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				sweeper.sweep()
			}
		}
	})
	for n := range 300 {
		i := &instance{id: fmt.Sprint("i", n), dir: dir}
		if _, err := i.hold(); err != nil {
			t.Fatalf("hold: %v", err)
		}
		if !sweeper.alive(i.id) {
			t.Fatalf("instance %d holds its lock and counts as dead", n)
		}
		i.drop()
		if sweeper.alive(i.id) {
			t.Fatalf("instance %d is gone and counts as alive", n)
		}
	}
	close(stop)
	wg.Wait()
}
