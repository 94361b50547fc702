package sqlite

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/berth-dev/berth/adapters/sqlstore"
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
