package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/jmoiron/sqlx"
	lib "modernc.org/sqlite/lib"

	"github.com/berth-dev/berth/core/domain"
)

// opener is one attempt to open the store. Its order is: look at the files
// from outside, look inside without changing anything, and only then write.
type opener struct {
	cfg   Config
	path  string
	steps []migration
	wait  patience
}

// open returns the writer with its connection.
func (o opener) open(ctx context.Context) (*writer, error) {
	fresh, err := prepareFile(o.path)
	if err != nil {
		return nil, err
	}
	log := walNone
	if !fresh {
		if log, err = inspectLog(o.path); err != nil {
			return nil, err
		}
	}
	if log == walFilled {
		// Closing a connection that may write would bring the log into a file
		// that must not change. So one that may not looks first.
		if err := o.peek(ctx); err != nil {
			return nil, err
		}
	}
	db, err := sqlx.Open("sqlite", dsn(o.path, "rwc", writerPragmas()...))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	w := &writer{db: db, path: o.path, wait: o.wait, tell: o.tell, idle: make(chan struct{}), place: place{name: placeName(o.path)}}
	err = o.wait.insist(ctx, func() error {
		if w.link == nil {
			if w.link, err = openLink(ctx, db); err != nil {
				return err
			}
		}
		return o.ready(ctx, w.link.conn, log == walFilled)
	})
	if err != nil {
		w.link.close()
		db.Close()
		return nil, err
	}
	return w, nil
}

// peek inspects the file through a connection that cannot write.
func (o opener) peek(ctx context.Context) error {
	db, err := sqlx.Open("sqlite", dsn(o.path, "ro", "busy_timeout(5000)"))
	if err != nil {
		return err
	}
	defer db.Close()
	return o.wait.insist(ctx, func() error {
		conn, err := db.Connx(ctx)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = inspectAlone(ctx, conn, o.path, o.steps, o.cfg.CheckBudget)
		if c := primary(err); c == lib.SQLITE_READONLY || c == lib.SQLITE_CANTOPEN {
			return nil // there is something to recover first, which takes writing
		}
		return err
	})
}

// ready inspects the file, unless that was done, and makes it usable: rights,
// schema and write-ahead log.
func (o opener) ready(ctx context.Context, conn *sqlx.Conn, inspected bool) error {
	if only, err := readOnly(conn); err != nil || only {
		if err == nil {
			err = unavailable(o.path, fs.ErrPermission, "cannot be written; check the rights of the file and of its directory")
		}
		return err
	}
	budget := o.cfg.CheckBudget
	if inspected {
		budget = -1
	}
	in, err := inspectAlone(ctx, conn, o.path, o.steps, budget)
	if err != nil {
		return err
	}
	if in.version > 0 && in.version < len(o.steps) {
		if err := o.upgrade(ctx, conn); err != nil {
			return err
		}
	}
	var mode string
	if err := conn.GetContext(ctx, &mode, "PRAGMA journal_mode = WAL"); err != nil {
		return err
	}
	if mode != "wal" {
		return unavailable(o.path, nil, fmt.Sprintf("cannot keep a write-ahead log here (its journal mode is %s); use a local directory", mode))
	}
	if in.version == 0 {
		return migrate(ctx, conn, o.path, o.steps, o.cfg.Clock())
	}
	return nil
}

// upgrade copies an older store and brings its schema up to date, while other
// processes that want the same wait.
func (o opener) upgrade(ctx context.Context, conn *sqlx.Conn) error {
	name := o.path + ".upgrade"
	lock, err := lockFile(name, func(f *os.File) error { return pollLock(ctx, f) })
	if err != nil {
		if ctx.Err() != nil {
			return cancelled(ctx)
		}
		return unavailable(o.path, err, "cannot be brought up to date: its directory cannot be written")
	}
	defer func() {
		_ = os.Remove(name)
		lock.Close()
	}()
	version, err := userVersion(ctx, conn)
	if err != nil || version >= len(o.steps) {
		return err // another process did it
	}
	copied, err := backup(ctx, conn, o.path, version, o.cfg.Clock())
	if err != nil {
		if busy(err) || errors.Is(err, context.Canceled) {
			return err
		}
		return unavailable(o.path, err, "must be copied before it is brought up to date, and that did not work; make room and try again")
	}
	if err := migrate(ctx, conn, o.path, o.steps, o.cfg.Clock()); err != nil {
		return err
	}
	o.tell(ctx, "sqlite: upgraded", fmt.Errorf("the session store went from schema %d to %d; the copy before is %s", version, len(o.steps), copied))
	return nil
}

// pollLock waits for the exclusive lock as long as the context lasts.
func pollLock(ctx context.Context, f *os.File) error {
	for {
		if got, err := tryExclusive(f); err != nil || got {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (o opener) tell(ctx context.Context, where string, err error) {
	if o.cfg.Observer != nil {
		o.cfg.Observer.Observe(ctx, domain.Trouble{Where: where, Err: err})
	}
}
