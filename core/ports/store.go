package ports

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Sessions keeps session rows. All methods are safe for concurrent use.
// Failures of the store itself are coded StoreUnavailable or StoreCorrupt.
type Sessions interface {
	// Create adds a session. An id, key or non-empty label that is taken is a
	// Conflict. CreatedAt and UpdatedAt are stored as given.
	Create(context.Context, domain.Session) error
	// Load returns one session; SessionNotFound when there is none.
	Load(context.Context, domain.SessionID) (domain.Session, error)
	// Update changes one session atomically. fn may run more than once, so it
	// must be pure; its error is returned and leaves no trace. ID, CreatedAt
	// cannot change.
	Update(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error
	// Delete removes a session and its journal; SessionNotFound when missing.
	Delete(context.Context, domain.SessionID) error
	// List returns one page, newest first, in an order that is stable while
	// rows are added.
	List(context.Context, domain.SessionQuery) (domain.SessionPage, error)
}

// Journal keeps the records of sessions in order. All methods are safe for
// concurrent use.
type Journal interface {
	// Append adds recs after position after, all or none, durably, and returns
	// the new position. Conflict when the journal has moved on or the session
	// is owned by another process; SessionNotFound when it does not exist. It
	// moves the session's UpdatedAt, applies a TitleSet to its row and adds
	// what the records cost to the ledger, in the same transaction. No records
	// is no operation.
	Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error)
	// Records yields what follows position after, in order, as of the moment
	// it started. An error is the last thing yielded. Breaking out releases
	// everything.
	Records(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error]
}

// Ledger tells what agents have cost, whatever became of the sessions.
type Ledger interface {
	// Spent returns what an agent's records (domain.Spending) that were
	// appended on the day of t cost together. A day is one of UTC.
	Spent(ctx context.Context, agent string, t time.Time) (domain.MicroUSD, error)
}

// Leases make one process the live owner of a session at a time. An owner
// that dies, however it dies, loses its leases at once.
type Leases interface {
	// Acquire takes the session for this process; again is no operation.
	// SessionActive when another live process has it.
	Acquire(context.Context, domain.SessionID) error
	// Release gives it up; when it is not held that is no error.
	Release(context.Context, domain.SessionID) error
}

// Store is everything a storage adapter offers. Services never take it whole.
type Store interface {
	Sessions
	Journal
	Ledger
	Leases
	io.Closer
	// Durable reports whether sessions outlive the process.
	Durable() bool
}
