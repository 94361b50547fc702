package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"github.com/berth-dev/berth/adapters/sqlstore"
	"github.com/berth-dev/berth/core/domain"
)

// foreignLock holds the write lock of a store until the returned function is
// called.
func foreignLock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := rawConn(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() { db.Close() })
	t.Cleanup(unlock)
	return unlock
}

// queued waits until n jobs wait or lead.
func queued(t *testing.T, s *Store, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d jobs are queued", n), func() bool {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return len(s.writer.queue) == n
	})
}

// countCommits counts what the store's writing connection commits.
func countCommits(t *testing.T, s *Store) *atomic.Int64 {
	t.Helper()
	var commits atomic.Int64
	onDriver(t, s, func(d any) error {
		d.(interface {
			RegisterCommitHook(sqlite.CommitHookFn)
		}).RegisterCommitHook(func() int32 { commits.Add(1); return 0 })
		return nil
	})
	return &commits
}

func onDriver(t *testing.T, s *Store, fn func(any) error) {
	t.Helper()
	if err := s.writer.link.conn.Raw(fn); err != nil && !errors.Is(err, driver.ErrBadConn) {
		t.Fatal(err)
	}
}

func TestWriter_ConcurrentAppendsShareACommit(t *testing.T) {
	const writers = 30
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	for n := range writers {
		mustCreate(t, s, n)
	}
	commits := countCommits(t, s)
	unlock := foreignLock(t, s.path)
	errs := make(chan error, writers)
	for n := range writers {
		go func() {
			_, err := s.Append(t.Context(), row(n).ID, 0, numbered(0, 2)...)
			errs <- err
		}()
	}
	queued(t, s, writers)
	unlock()
	for range writers {
		if err := <-errs; err != nil {
			t.Errorf("append: %v", err)
		}
	}
	if got := commits.Load(); got != 1 {
		t.Errorf("%d appends took %d commits", writers, got)
	}
	for n := range writers {
		if got := wantNumbered(t, s, row(n).ID); got != 2 {
			t.Errorf("session %d holds %d records", n, got)
		}
	}
}

// TestWriter_OneRefusalHarmsNoOther puts good and bad jobs in one transaction.
func TestWriter_OneRefusalHarmsNoOther(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	for n := range 6 {
		mustCreate(t, s, n)
	}
	mine := errors.New("mine")
	jobs := map[string]struct {
		do   func() error
		want func(error) bool
	}{
		"first append":  {func() error { _, err := s.Append(t.Context(), row(0).ID, 0, said("a")); return err }, isNil},
		"stale append":  {func() error { _, err := s.Append(t.Context(), row(1).ID, 7, said("b")); return err }, hasCode(domain.Conflict)},
		"taken key":     {func() error { r := row(77); r.Key = row(0).Key; return s.Create(t.Context(), r) }, hasCode(domain.Conflict)},
		"failed update": {func() error { return s.Update(t.Context(), row(2).ID, func(*domain.Session) error { return mine }) }, func(err error) bool { return err == mine }},
		"good update": {func() error {
			return s.Update(t.Context(), row(3).ID, func(s *domain.Session) error { s.Title = "new"; return nil })
		}, isNil},
		"delete missing": {func() error { return s.Delete(t.Context(), "none") }, hasCode(domain.SessionNotFound)},
		"delete":         {func() error { return s.Delete(t.Context(), row(4).ID) }, isNil},
		"acquire":        {func() error { return s.Acquire(t.Context(), row(5).ID) }, isNil},
		"broken statement": {func() error {
			return s.writer.write(t.Context(), false, func(ctx context.Context, c sqlstore.Conn) error {
				if err := run(ctx, c, "DELETE FROM sessions"); err != nil {
					return err
				}
				return run(ctx, c, "SELECT no_such_function()")
			})
		}, hasCode(domain.StoreUnavailable)},
		"last append": {func() error { _, err := s.Append(t.Context(), row(5).ID, 0, said("z")); return err }, isNil},
	}
	unlock := foreignLock(t, s.path)
	type answer struct {
		name string
		err  error
	}
	answers := make(chan answer, len(jobs))
	for name, job := range jobs {
		go func() { answers <- answer{name, job.do()} }()
	}
	queued(t, s, len(jobs))
	unlock()
	for range jobs {
		if a := <-answers; !jobs[a.name].want(a.err) {
			t.Errorf("%s: %v", a.name, a.err)
		}
	}
	page, err := s.List(t.Context(), domain.SessionQuery{})
	if err != nil || len(page.Sessions) != 5 {
		t.Errorf("%d sessions are left, want 5 (%v)", len(page.Sessions), err)
	}
	if loaded, err := s.Load(t.Context(), row(3).ID); err != nil || loaded.Title != "new" {
		t.Errorf("the good update: %q, %v", loaded.Title, err)
	}
}

func isNil(err error) bool { return err == nil }

func hasCode(code domain.Code) func(error) bool {
	return func(err error) bool { return domain.HasCode(err, code) }
}

// TestWriter_PanicReachesItsCaller: a panic in one caller's function ends
// that caller, not the one who happens to lead.
func TestWriter_PanicReachesItsCaller(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	for n := range 3 {
		mustCreate(t, s, n)
	}
	unlock := foreignLock(t, s.path)
	panics := make(chan any, 1)
	errs := make(chan error, 2)
	for n := range 3 {
		go func() {
			if n == 1 {
				defer func() { panics <- recover() }()
				_ = s.Update(t.Context(), row(1).ID, func(r *domain.Session) error {
					r.Title = "half"
					panic("mine")
				})
				return
			}
			_, err := s.Append(t.Context(), row(n).ID, 0, said("x"))
			errs <- err
		}()
	}
	queued(t, s, 3)
	unlock()
	if p := <-panics; p != "mine" {
		t.Errorf("the caller saw the panic %v", p)
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Errorf("append beside the panic: %v", err)
		}
	}
	if loaded, err := s.Load(t.Context(), row(1).ID); err != nil || loaded.Title == "half" {
		t.Errorf("the panicked update left %q, %v", loaded.Title, err)
	}
}

// TestWriter_CancelWhileLocked: whoever waits for the lock and is cancelled
// is answered at once with his cause, leader or not, and nothing of his is
// written later.
func TestWriter_CancelWhileLocked(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	mustCreate(t, s, 0)
	mustCreate(t, s, 1)
	mustCreate(t, s, 2)
	unlock := foreignLock(t, s.path)
	type waiting struct {
		cancel context.CancelCauseFunc
		err    chan error
	}
	var all []waiting
	for n := range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		w := waiting{cancel, make(chan error, 1)}
		go func() {
			_, err := s.Append(ctx, row(n).ID, 0, said("x"))
			w.err <- err
		}()
		queued(t, s, n+1) // the first leads
		all = append(all, w)
	}
	for _, n := range []int{1, 0} {
		mine := fmt.Errorf("mine %d", n)
		all[n].cancel(mine)
		if err := <-all[n].err; !errors.Is(err, mine) || !domain.HasCode(err, domain.Cancelled) {
			t.Errorf("the cancelled append returned %v", err)
		}
	}
	unlock()
	if err := <-all[2].err; err != nil {
		t.Errorf("the append that was left alone: %v", err)
	}
	for n, want := range []int{0, 0, 1} {
		got := 0
		for range s.Records(t.Context(), row(n).ID, 0) {
			got++
		}
		if got != want {
			t.Errorf("session %d holds %d records, want %d", n, got, want)
		}
	}
}

// TestWriter_PatienceEnds: a lock that outlasts the patience is told, and the
// store works again when it is gone. Reading goes on meanwhile.
func TestWriter_PatienceEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := Open(t.Context(), Config{Path: path, Wait: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := mustCreate(t, s, 1)
	unlock := foreignLock(t, path)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			_, err := s.Append(t.Context(), id, 0, said("x"))
			if !domain.HasCode(err, domain.StoreUnavailable) || detail(err, "kind") != "storage_busy" {
				t.Errorf("append to a locked store: %v", err)
			}
		})
	}
	wg.Wait()
	if _, err := s.Load(t.Context(), id); err != nil {
		t.Errorf("load from a locked store: %v", err)
	}
	unlock()
	if _, err := s.Append(t.Context(), id, 0, said("x")); err != nil {
		t.Errorf("append after the lock: %v", err)
	}
}

// TestWriter_TellsLongWaits: an operator can see that something holds the
// file for seconds.
func TestWriter_TellsLongWaits(t *testing.T) {
	var mu sync.Mutex
	var seen events
	observer := observe(func(ctx context.Context, ev domain.Event) {
		mu.Lock()
		defer mu.Unlock()
		seen.Observe(ctx, ev)
	})
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := Open(t.Context(), Config{Path: path, Wait: longWait + 200*time.Millisecond, Observer: observer})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	foreignLock(t, path)
	if err := s.Create(t.Context(), row(1)); !domain.HasCode(err, domain.StoreUnavailable) {
		t.Errorf("create: %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 1 || !strings.Contains(fmt.Sprint(seen[0]), "held the session store for 1.") {
		t.Errorf("the observer saw %v", seen)
	}
}

type observe func(context.Context, domain.Event)

func (o observe) Observe(ctx context.Context, ev domain.Event) { o(ctx, ev) }

func detail(err error, key string) any {
	var e *domain.Error
	if errors.As(err, &e) {
		for _, d := range e.Details {
			if d.Key == key {
				return d.Value
			}
		}
	}
	return nil
}

func TestWriter_DiskFull(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	id, other := mustCreate(t, s, 1), mustCreate(t, s, 2)
	limit := func(pages int) { // of every connection that writes from now on
		s.writer.link.close()
		s.writer.link = nil
		s.writer.db.Close()
		s.writer.db = sqlx.MustOpen("sqlite", dsn(s.path, "rw", append(writerPragmas(), fmt.Sprintf("max_page_count(%d)", pages))...))
		s.writer.db.SetMaxOpenConns(1)
	}
	limit(30)
	unlock := foreignLock(t, s.path)
	big, small := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Append(t.Context(), id, 0, said(strings.Repeat("x", 1<<20)))
		big <- err
	}()
	queued(t, s, 1)
	go func() {
		_, err := s.Append(t.Context(), other, 0, said("small"))
		small <- err
	}()
	queued(t, s, 2)
	unlock()
	if err := <-big; !domain.HasCode(err, domain.StoreUnavailable) || detail(err, "kind") != "storage_full" {
		t.Errorf("append to a full disk: %v", err)
	}
	if err := <-small; err != nil {
		t.Errorf("an append that fits, beside one that does not: %v", err)
	}
	if n, err := s.Load(t.Context(), id); err != nil || n.UpdatedAt != row(1).UpdatedAt {
		t.Errorf("the session after a failed append: %+v, %v", n, err)
	}
	limit(1 << 20)
	if _, err := s.Append(t.Context(), id, 0, said(strings.Repeat("x", 1<<20))); err != nil {
		t.Errorf("append after room was made: %v", err)
	}
}

// TestWriter_LostConnection: the writer opens a new connection for one that
// broke.
func TestWriter_LostConnection(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	id := mustCreate(t, s, 1)
	onDriver(t, s, func(any) error { return driver.ErrBadConn })
	if _, err := s.Append(t.Context(), id, 0, said("x")); err != nil {
		t.Errorf("append after the connection broke: %v", err)
	}
	if _, err := s.Append(t.Context(), id, 1, said("y")); err != nil {
		t.Errorf("the append after it: %v", err)
	}
}

// TestStore_InABubble: a store lives in fake time, where the acceptance tests
// run; nothing of it ticks.
func TestStore_InABubble(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	synctest.Test(t, func(t *testing.T) {
		s := openAt(t, path)
		id := mustCreate(t, s, 1)
		if err := s.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			if _, err := s.Append(t.Context(), id, domain.Seq(n), numbered(domain.Seq(n), 1)...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		if got := wantNumbered(t, s, id); got != 20 {
			t.Errorf("%d records", got)
		}
		loaded, err := s.Load(t.Context(), id)
		if err != nil || !loaded.UpdatedAt.Equal(time.Now().Add(-time.Hour)) {
			t.Errorf("updated at %v, now is %v (%v)", loaded.UpdatedAt, time.Now(), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStore_CloseFinishesWhatWasBegun closes a store while writers wait.
func TestStore_CloseFinishesWhatWasBegun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := openAt(t, path)
	mustCreate(t, s, 0)
	mustCreate(t, s, 1)
	unlock := foreignLock(t, path)
	errs := make(chan error, 2)
	for n := range 2 {
		go func() {
			_, err := s.Append(t.Context(), row(n).ID, 0, said("x"))
			errs <- err
		}()
	}
	queued(t, s, 2)
	done := make(chan error, 1)
	go func() { done <- s.Close() }()
	eventually(t, "the writer is closed", func() bool {
		s.writer.mu.Lock()
		defer s.writer.mu.Unlock()
		return s.writer.closed
	})
	unlock()
	for range 2 {
		if err := <-errs; err != nil {
			t.Errorf("an append that was begun before the close: %v", err)
		}
	}
	if err := <-done; err != nil {
		t.Errorf("close: %v", err)
	}
	s = openAt(t, path)
	for n := range 2 {
		if _, err := s.Append(t.Context(), row(n).ID, 1, said("y")); err != nil {
			t.Errorf("the record is not there: %v", err)
		}
	}
}
