package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/berth-dev/berth/core/domain"
)

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
