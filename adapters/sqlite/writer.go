package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	lib "modernc.org/sqlite/lib"

	"github.com/berth-dev/berth/adapters/sqlstore"
	"github.com/berth-dev/berth/core/domain"
)

// writer runs write transactions on the one connection that writes. Writers
// that come while a transaction commits share the next one, and so one sync
// of the disk: the first of them leads, takes whatever is queued once the
// transaction has begun, runs it all, commits, and hands on to the next. No
// goroutine exists for it; a writer alone never waits for anybody.
type writer struct {
	db   *sqlx.DB
	path string
	wait patience
	tell func(ctx context.Context, where string, err error)

	mu      sync.Mutex
	queue   []*job
	leading bool      // somebody leads, or was told to
	locked  time.Time // since when another process keeps leaders waiting; zero while none does
	closed  bool
	idle    chan struct{} // closed when the last leader left a closed writer

	// Used by the leader alone.
	link  *link
	place place
}

// job is one transaction that somebody waits for.
type job struct {
	ctx      context.Context
	queued   time.Time
	relaxed  bool // may be lost with the power, unlike what others commit
	fn       func(context.Context, sqlstore.Conn) error
	wake     chan bool // true: lead. false: it is done
	leader   bool      // was told to lead; guarded by writer.mu
	err      error
	panicked any
}

// write runs fn in a transaction. A relaxed one is visible to other processes
// at once, as every transaction is, but is not worth a sync of its own.
func (w *writer) write(ctx context.Context, relaxed bool, fn func(context.Context, sqlstore.Conn) error) error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	j := &job{ctx: ctx, queued: time.Now(), relaxed: relaxed, fn: fn, wake: make(chan bool, 1)}
	lead, err := w.enter(j)
	if err != nil {
		return err
	}
	if lead || w.await(j) {
		w.lead(j)
	}
	if j.panicked != nil {
		panic(j.panicked) // where it belongs, not in the goroutine that led
	}
	return explain(ctx, w.path, w.wait, j.err)
}

// enter queues a job and tells whether its caller leads.
func (w *writer) enter(j *job) (lead bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false, closedError()
	}
	w.queue = append(w.queue, j)
	if w.leading {
		return false, nil
	}
	w.leading, j.leader = true, true
	return true, nil
}

// await waits until the job is done or its caller must lead. A job that
// nobody has begun is withdrawn when its context ends, or when another process
// has held the file for too long; one that has begun is waited for, so that an
// answer is always the truth. However long this process itself takes, with a
// slow disk under it, nobody is told that another one is in the way.
func (w *writer) await(j *job) (lead bool) {
	limit := time.NewTimer(w.wait.duration())
	defer limit.Stop()
	for {
		select {
		case lead = <-j.wake:
			return lead
		case <-j.ctx.Done():
			if w.withdraw(j, false) {
				j.err = j.ctx.Err()
				return false
			}
			return <-j.wake
		case <-limit.C:
			if w.withdraw(j, true) {
				j.err = errLocked
				return false
			}
			limit.Reset(max(time.Until(w.until(j)), time.Millisecond))
		}
	}
}

// until is how long a job waits for another process: as long as it is patient
// from when that got in its way. While none is in the way, that is from now.
func (w *writer) until(j *job) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.untilLocked(j)
}

func (w *writer) untilLocked(j *job) time.Time {
	since := w.locked
	switch {
	case since.IsZero():
		since = time.Now()
	case since.Before(j.queued):
		since = j.queued
	}
	return since.Add(w.wait.duration())
}

// met notes whether the leader has just met another process that has the file.
func (w *writer) met(other bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !other:
		w.locked = time.Time{}
	case w.locked.IsZero():
		w.locked = time.Now()
	}
}

// withdraw takes back a job that nobody has begun; late says that it must have
// waited too long for another process.
func (w *writer) withdraw(j *job, late bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, j)
	if i < 0 || j.leader || late && time.Until(w.untilLocked(j)) > 0 {
		return false
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	return true
}

// lead begins a transaction, runs what is queued, commits and hands on.
func (w *writer) lead(j *job) {
	batch := []*job{j}
	if j.err = w.begin(j); j.err == nil {
		batch = w.take(j)
		w.run(batch)
	} else {
		w.remove(j)
	}
	w.handOn()
	for _, other := range batch {
		if other != j {
			other.wake <- false
		}
	}
}

// take removes the jobs of the next transaction from the queue, in order. A
// relaxed leader leaves those who need a sync to the next.
func (w *writer) take(leader *job) []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch := make([]*job, 0, len(w.queue))
	rest := w.queue[:0]
	for _, j := range w.queue {
		if j == leader || !leader.relaxed || j.relaxed {
			batch = append(batch, j)
		} else {
			rest = append(rest, j)
		}
	}
	clear(w.queue[len(rest):])
	w.queue = rest
	return batch
}

func (w *writer) remove(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.queue, j); i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
}

// handOn makes the first of the queue the leader, if there is one.
func (w *writer) handOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		w.queue[0].leader = true
		w.queue[0].wake <- true
		return
	}
	w.leading = false
	if w.closed {
		close(w.idle)
	}
}

// close lets what was queued finish and closes the connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	busy := w.leading
	w.mu.Unlock()
	if busy {
		<-w.idle
	}
	w.link.close()
	w.place.close()
	return w.db.Close()
}

// begin starts a transaction for the leader, waiting for other processes as
// long as he does.
func (w *writer) begin(j *job) error {
	began := time.Now()
	defer w.place.give()
	err := insist(j.ctx, func() time.Time { return w.until(j) }, func() error {
		if !w.place.take() {
			w.met(true)
			return errLocked
		}
		err := w.start(j)
		if errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
			w.drop()
			err = w.start(j)
		}
		w.met(busy(err))
		return err
	})
	if err != nil && !busy(err) && j.ctx.Err() == nil {
		w.drop() // whatever it is, a new connection does not have it
	}
	if waited := time.Since(began); waited > longWait {
		w.tell(context.WithoutCancel(j.ctx), "sqlite: write lock", fmt.Errorf("another process held the session store for %v", waited.Round(time.Millisecond)))
	}
	return err
}

func (w *writer) start(j *job) error {
	if j.ctx.Err() != nil {
		return j.ctx.Err()
	}
	if w.link == nil {
		l, err := openLink(j.ctx, w.db)
		if err != nil {
			return err
		}
		w.link = l
	}
	if err := w.link.relax(j.relaxed); err != nil {
		return err
	}
	// Not with the job's context: when that ends meanwhile, the driver says so
	// though the transaction may have begun, and nobody would end it.
	return w.link.exec(context.Background(), "BEGIN IMMEDIATE")
}

// drop gives the connection up; the next transaction opens another.
func (w *writer) drop() {
	if w.link != nil {
		w.link.discard()
		w.link = nil
	}
}

// run executes the jobs in the transaction that has begun, and ends it.
func (w *writer) run(batch []*job) {
	if len(batch) == 1 {
		batch[0].err = w.finish(w.call(batch[0]))
		return
	}
	if w.together(batch) {
		return
	}
	// One of them broke the transaction. It must not take the others along.
	for _, j := range batch {
		if j.err = w.begin(j); j.err == nil {
			j.err = w.finish(w.call(j))
		}
	}
}

// together runs several jobs in one transaction, each behind a savepoint. It
// reports false when the transaction broke and nothing of it happened.
func (w *writer) together(batch []*job) bool {
	ctx := context.Background()
	for _, j := range batch {
		j.err = w.link.exec(ctx, "SAVEPOINT job")
		if j.err == nil {
			j.err = w.call(j)
		}
		undo := error(nil)
		if j.err != nil {
			if !harmless(j.err) {
				_ = w.finish(j.err)
				return false
			}
			undo = w.link.exec(ctx, "ROLLBACK TO job")
		}
		if err := errors.Join(undo, w.link.exec(ctx, "RELEASE job")); err != nil {
			_ = w.finish(err)
			return false
		}
	}
	if err := w.finish(nil); err != nil {
		for _, j := range batch {
			if j.err == nil {
				j.err = err
			}
		}
	}
	return true
}

// call runs a job's function and keeps its panic for the job's caller.
func (w *writer) call(j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			j.panicked, err = p, errPanicked
		}
	}()
	return j.fn(context.WithoutCancel(j.ctx), w.link)
}

// errPanicked is coded, so that the transaction goes on without the job.
var errPanicked = domain.Errorf(domain.Conflict, "The function of a transaction panicked")

// finish commits, or rolls back because of err. After an error of the disk
// the connection is given up: what a failed sync left in its cache proves
// nothing, and the next one reads what really is in the file.
func (w *writer) finish(err error) error {
	ctx := context.Background()
	if err == nil {
		began := time.Now()
		err = w.link.exec(ctx, "COMMIT")
		if took := time.Since(began); took > longWait {
			w.tell(ctx, "sqlite: commit", fmt.Errorf("the disk took %v to keep a change of the session store", took.Round(time.Millisecond)))
		}
		if err == nil {
			return nil
		}
	}
	if w.link.exec(ctx, "ROLLBACK") != nil || primary(err) == lib.SQLITE_IOERR {
		w.drop()
	}
	return err
}
