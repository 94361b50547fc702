// Package sqlstore keeps sessions and their journals in a SQL database,
// whichever it is: adapters/sqlite opens the database, brings its schema up
// to date and decides how transactions run and how long they wait; this
// package knows the tables.
//
// A session is one row; a record is one row with its kind, its version and
// its payload. Payloads are JSON (writer.go, reader.go), read by the kind and
// version they were written with; a record of a kind this code does not know
// comes back as domain.Unknown, byte for byte.
//
// Read next: journal.go, then adapters/sqlite/sqlite.go.
package sqlstore

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Backend is one open database, as its own adapter made it. Errors of its
// transactions are coded already; a domain.Error that a function returns
// passes through it unchanged.
type Backend interface {
	// Read runs fn on the database as of now. It must not be called by fn.
	Read(ctx context.Context, fn func(context.Context, Conn) error) error
	// Write runs fn in one transaction. It returns nil after the transaction is
	// durable, and an error when none of it happened. fn may run again. It may
	// run on another goroutine and beside the functions of other writers in one
	// commit, but never at the same time.
	Write(ctx context.Context, fn func(context.Context, Conn) error) error
	// Duplicate reports whether a statement failed because a value that must be
	// unique exists. The transaction must still be usable then.
	Duplicate(error) bool
}

// Conn prepares statements, each once.
type Conn interface {
	Stmt(ctx context.Context, query string) (*sqlx.Stmt, error)
}

// Store is ports.Sessions and ports.Journal over a Backend.
type Store struct {
	db       Backend
	clock    ports.Clock
	instance string
}

var (
	_ ports.Sessions = (*Store)(nil)
	_ ports.Journal  = (*Store)(nil)
)

// New returns a store over a database whose schema is up to date. The clock
// stamps what is appended. instance is the name under which this process
// stands in the table leases.
func New(db Backend, clock ports.Clock, instance string) *Store {
	return &Store{db: db, clock: clock, instance: instance}
}

const (
	insertSession = "INSERT INTO sessions (" + sessionColumns + ", seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
	selectSession = "SELECT num, seq, " + sessionColumns + " FROM sessions WHERE id = ?"
	updateSession = "UPDATE sessions SET key = ?, label = ?, agent = ?, cwd = ?, cwd_given = ?, additional = ?, workspace = ?, " +
		"title = ?, parent = ?, client = ?, start = ?, updated_at = ? WHERE num = ?"
	deleteSession = "DELETE FROM sessions WHERE id = ? RETURNING num"
	deleteRecords = "DELETE FROM records WHERE pos > ? AND pos <= ?"
	deleteLease   = "DELETE FROM leases WHERE session = ?"
	selectTaken   = "SELECT id = ? AS same_id, key = ? AS same_key FROM sessions WHERE id = ? OR key = ? OR (label = ? AND label <> '') LIMIT 1"
)

// Create adds a session.
func (s *Store) Create(ctx context.Context, session domain.Session) error {
	row, err := toRow(session)
	if err != nil {
		return err
	}
	return s.db.Write(ctx, func(ctx context.Context, c Conn) error {
		err := exec(ctx, c, insertSession, row.values()...)
		if s.db.Duplicate(err) {
			return taken(ctx, c, row, err)
		}
		return err
	})
}

// taken tells which name of a refused row another session has.
func taken(ctx context.Context, c Conn, row sessionRow, cause error) error {
	st, err := c.Stmt(ctx, selectTaken)
	if err != nil {
		return err
	}
	var sameID, sameKey bool
	if err := st.QueryRowContext(ctx, row.ID, row.Key, row.ID, row.Key, row.Label).Scan(&sameID, &sameKey); err != nil {
		return err
	}
	switch {
	case sameID:
		return conflict(cause, "Session %s exists already", row.ID)
	case sameKey:
		return conflict(cause, "The session key %q is taken", row.Key)
	}
	return conflict(cause, "The session label %q is taken", row.Label)
}

func conflict(cause error, format string, args ...any) error {
	e := domain.Errorf(domain.Conflict, format, args...)
	e.Err = cause
	return e
}

// Load returns one session.
func (s *Store) Load(ctx context.Context, id domain.SessionID) (domain.Session, error) {
	var row sessionRow
	err := s.db.Read(ctx, func(ctx context.Context, c Conn) (err error) {
		row, err = loadRow(ctx, c, id)
		return err
	})
	if err != nil {
		return domain.Session{}, err
	}
	return row.session()
}

// loadRow returns a session's row, SessionNotFound when there is none.
func loadRow(ctx context.Context, c Conn, id domain.SessionID) (sessionRow, error) {
	var row sessionRow
	st, err := c.Stmt(ctx, selectSession)
	if err != nil {
		return row, err
	}
	err = st.GetContext(ctx, &row, string(id))
	if errors.Is(err, sql.ErrNoRows) {
		return row, domain.NoSession(id)
	}
	return row, err
}

// Update changes one session atomically. fn runs inside the transaction, on
// whichever goroutine commits it, so it must not call the store.
func (s *Store) Update(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
	var refused error // fn's own, returned as it is
	err := s.db.Write(ctx, func(ctx context.Context, c Conn) error {
		old, err := loadRow(ctx, c, id)
		if err != nil {
			return err
		}
		session, err := old.session()
		if err != nil {
			return err
		}
		if refused = fn(&session); refused != nil {
			return domain.WrapError(domain.Conflict, refused, "The update was refused")
		}
		row, err := toRow(session)
		if err != nil {
			return err
		}
		if row.ID != old.ID || row.CreatedAt != old.CreatedAt {
			return domain.Errorf(domain.InvalidArgument, "The id and the creation time of session %s cannot change", id)
		}
		if row.Num, row.Seq = old.Num, old.Seq; row == old {
			return nil
		}
		err = exec(ctx, c, updateSession, row.Key, row.Label, row.Agent, row.Cwd, row.CwdGiven, row.Additional, row.Workspace,
			row.Title, row.Parent, row.Client, row.Start, row.UpdatedAt, row.Num)
		if s.db.Duplicate(err) {
			return renamed(old, row, err)
		}
		return err
	})
	if refused != nil {
		return refused
	}
	return err
}

// renamed tells which new name of a session another one has.
func renamed(old, row sessionRow, cause error) error {
	switch {
	case old.Label == row.Label:
		return conflict(cause, "The session key %q is taken", row.Key)
	case old.Key == row.Key:
		return conflict(cause, "The session label %q is taken", row.Label)
	}
	return conflict(cause, "The session key %q or the label %q is taken", row.Key, row.Label)
}

// Delete removes a session, its journal and its lease.
func (s *Store) Delete(ctx context.Context, id domain.SessionID) error {
	return s.db.Write(ctx, func(ctx context.Context, c Conn) error {
		st, err := c.Stmt(ctx, deleteSession)
		if err != nil {
			return err
		}
		var num int64
		err = st.QueryRowContext(ctx, string(id)).Scan(&num)
		if errors.Is(err, sql.ErrNoRows) {
			return domain.NoSession(id)
		}
		if err != nil {
			return err
		}
		if err := exec(ctx, c, deleteRecords, place(num, 0), place(num, maxSeq)); err != nil {
			return err
		}
		return exec(ctx, c, deleteLease, string(id))
	})
}

// exec runs a statement whose result does not matter.
func exec(ctx context.Context, c Conn, query string, args ...any) error {
	st, err := c.Stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx, args...)
	return err
}
