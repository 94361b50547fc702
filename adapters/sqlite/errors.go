package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/berth-dev/berth/core/domain"
)

// NewerSchemaError tells that a file was written by a later version of this
// program. Nothing in it was read beyond its version, and nothing changed.
type NewerSchemaError struct {
	Path  string
	Found int // the schema version of the file
	Known int // the newest one this program knows
}

// Error names the file and both versions.
func (e *NewerSchemaError) Error() string {
	return fmt.Sprintf("%s has schema version %d, this program knows versions up to %d", e.Path, e.Found, e.Known)
}

// code returns the extended result code of a driver's error, 0 for others.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// primary drops the extension of a result code.
func primary(err error) int { return code(err) & 0xff }

// busy reports whether another connection is in the way, so that waiting may
// help.
func busy(err error) bool {
	switch primary(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return true
	}
	return errors.Is(err, errLocked)
}

// errLocked is the error of a job that did not get as far as SQLite while
// another process had the file.
var errLocked = errors.New("the file is locked")

// damaged reports whether the error tells of a damaged file.
func damaged(err error) bool {
	switch primary(err) {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		return true
	}
	return false
}

// duplicate reports a violated unique constraint.
func duplicate(err error) bool {
	switch code(err) {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY:
		return true
	}
	return false
}

// harmless reports whether the transaction goes on after the error of a
// statement or of a function that ran in it.
func harmless(err error) bool {
	c := primary(err)
	return c == lib.SQLITE_CONSTRAINT || c == 0 && domain.CodeOf(err) != domain.Internal
}

// patience is the one policy for waiting: how long an operation waits in all
// while another process is in the way.
type patience time.Duration

func (p patience) duration() time.Duration { return time.Duration(p) }

// The pauses between tries: doubled from the first to the last, and each a
// random part of that. They stay short, because nobody hands the lock on:
// SQLite's own pauses grow to 100 milliseconds, and then whoever writes without
// a break takes the lock again before those who wait have looked, for seconds.
const (
	firstPause = time.Millisecond
	lastPause  = 8 * time.Millisecond
)

// insist runs fn again while it fails because another connection is in the
// way, until the context or the patience ends. The last error is returned as
// it is.
func (p patience) insist(ctx context.Context, fn func() error) error {
	end := time.Time{}
	return insist(ctx, func() time.Time {
		if end.IsZero() {
			end = time.Now().Add(p.duration())
		}
		return end
	}, fn)
}

// insist is patience's with the end told by until, which is asked after every
// try that found another connection in the way.
func insist(ctx context.Context, until func() time.Time, fn func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := fn()
		if !busy(err) {
			return err
		}
		left := time.Until(until())
		if left <= 0 {
			return err
		}
		next := time.NewTimer(min(pause/2+rand.N(pause), left))
		select {
		case <-ctx.Done():
			next.Stop()
			return ctx.Err()
		case <-next.C:
		}
	}
}

// explain turns an error of an operation into a coded one. Coded errors pass.
// The context is the caller's own.
func explain(ctx context.Context, path string, waited patience, err error) error {
	var coded *domain.Error
	switch {
	case err == nil, errors.As(err, &coded):
		return err
	case ctx.Err() != nil:
		return cancelled(ctx)
	case busy(err):
		return unavailable(path, err, fmt.Sprintf("is locked by another process%s, for %v and longer; when that has ended or goes on, try again",
			lockHolder(path), waited.duration())).
			With("kind", "storage_busy")
	case damaged(err):
		return damage(path, err)
	}
	switch primary(err) {
	case lib.SQLITE_FULL:
		return unavailable(path, err, "cannot grow: the disk is full; make room and try again").With("kind", "storage_full")
	case lib.SQLITE_READONLY, lib.SQLITE_PERM:
		return unavailable(path, err, "cannot be written; check the rights of the file and of its directory")
	case lib.SQLITE_CANTOPEN:
		return unavailable(path, err, "cannot be opened; check that its directory exists and may be written")
	case lib.SQLITE_TOOBIG:
		return domain.WrapError(domain.TooLarge, err, "A record is larger than the session store can hold")
	case lib.SQLITE_IOERR:
		return unavailable(path, err, "could not be read or written; whether the last change was kept will show when it is read again")
	}
	return unavailable(path, err, "failed")
}

func cancelled(ctx context.Context) error {
	return domain.WrapError(domain.Cancelled, context.Cause(ctx), "The operation was cancelled")
}

func unavailable(path string, cause error, what string) *domain.Error {
	return domain.WrapError(domain.StoreUnavailable, cause, "The session store "+path+" "+what)
}

// damage is the error for a file that must be left alone.
func damage(path string, cause error) error {
	return domain.WrapError(domain.StoreCorrupt, cause, "The session store "+path+
		" is damaged. It was left as it is: keep it for a rescue, and move it away to begin a new one").
		With("path", path).With("kind", "corrupt")
}

func closedError() error {
	return domain.Errorf(domain.StoreUnavailable, "The session store is closed")
}
