// Package memory keeps sessions in memory: the store of an agent that runs
// without a file, and the fake of every test that needs a store. It passes
// the same suite as the durable stores (porttest.Store, porttest.Leases).
//
// What goes in and what comes out is copied, so nobody can change stored data
// through a slice they still hold. A session costs its records and about one
// kilobyte.
//
// Read next: adapters/sqlstore/store.go.
package memory

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Store is a ports.Store in memory. Make one with New.
type Store struct {
	data  *data
	clock ports.Clock

	// closed is guarded by data.mu.
	closed bool
}

// data is what stores made by Other share.
type data struct {
	mu       sync.RWMutex
	sessions map[domain.SessionID]*session
	keys     map[string]domain.SessionID
	labels   map[string]domain.SessionID
	leases   map[domain.SessionID]*Store
	spent    map[agentDay]domain.MicroUSD
}

// agentDay is an agent on a day of UTC.
type agentDay struct {
	agent string
	day   int64
}

// session is one row and its journal. Entries are only ever appended, never
// changed in place: a reader may go on with the slice it took.
type session struct {
	row     domain.Session
	entries []domain.Entry
}

var _ ports.Store = (*Store)(nil)

// New returns an empty store. The clock stamps what is appended.
func New(clock ports.Clock) *Store {
	return &Store{clock: clock, data: &data{
		sessions: make(map[domain.SessionID]*session),
		keys:     make(map[string]domain.SessionID),
		labels:   make(map[string]domain.SessionID),
		leases:   make(map[domain.SessionID]*Store),
		spent:    make(map[agentDay]domain.MicroUSD),
	}}
}

// Other returns a second store over the same sessions, as another process
// over the same file would have: it has leases of its own.
func (s *Store) Other() *Store { return &Store{data: s.data, clock: s.clock} }

// Durable reports false: the sessions end with the process.
func (s *Store) Durable() bool { return false }

// Close gives up the store's leases. Whatever is called later fails with
// StoreUnavailable.
func (s *Store) Close() error {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	s.closed = true
	for id, owner := range s.data.leases {
		if owner == s {
			delete(s.data.leases, id)
		}
	}
	return nil
}

// ready says why nothing may be done: the context has ended or the store is
// closed. The caller holds the mutex.
func (s *Store) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return domain.WrapError(domain.Cancelled, context.Cause(ctx), "The operation was cancelled")
	}
	if s.closed {
		return domain.Errorf(domain.StoreUnavailable, "The session store is closed")
	}
	return nil
}

// Create adds a session.
func (s *Store) Create(ctx context.Context, row domain.Session) error {
	if err := row.Validate(); err != nil {
		return err
	}
	row, err := cloneSession(row)
	if err != nil {
		return err
	}
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	if _, taken := s.data.sessions[row.ID]; taken {
		return domain.Errorf(domain.Conflict, "Session %s exists already", row.ID).With("sessionId", string(row.ID))
	}
	if err := s.data.nameFree(row); err != nil {
		return err
	}
	s.data.sessions[row.ID] = &session{row: row}
	s.data.name(row)
	return nil
}

// nameFree refuses a key or label that belongs to another session.
func (d *data) nameFree(row domain.Session) error {
	if id, taken := d.keys[row.Key]; taken && id != row.ID {
		return domain.Errorf(domain.Conflict, "The session key %q is taken", row.Key)
	}
	if id, taken := d.labels[row.Label]; taken && id != row.ID {
		return domain.Errorf(domain.Conflict, "The session label %q is taken", row.Label)
	}
	return nil
}

func (d *data) name(row domain.Session) {
	d.keys[row.Key] = row.ID
	if row.Label != "" {
		d.labels[row.Label] = row.ID
	}
}

func (d *data) unname(row domain.Session) {
	delete(d.keys, row.Key)
	delete(d.labels, row.Label)
}

// Load returns one session.
func (s *Store) Load(ctx context.Context, id domain.SessionID) (domain.Session, error) {
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return domain.Session{}, err
	}
	found, ok := s.data.sessions[id]
	if !ok {
		return domain.Session{}, domain.NoSession(id)
	}
	return copySession(found.row), nil
}

// Update changes one session atomically. fn runs under the store's lock, so
// it must not call the store.
func (s *Store) Update(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	found, ok := s.data.sessions[id]
	if !ok {
		return domain.NoSession(id)
	}
	row := copySession(found.row)
	if err := fn(&row); err != nil {
		return err
	}
	if err := row.Validate(); err != nil {
		return err
	}
	row, err := cloneSession(row)
	if err != nil {
		return err
	}
	if row.ID != id || !row.CreatedAt.Equal(found.row.CreatedAt) {
		return domain.Errorf(domain.InvalidArgument, "The id and the creation time of session %s cannot change", id)
	}
	if err := s.data.nameFree(row); err != nil {
		return err
	}
	s.data.unname(found.row)
	s.data.name(row)
	found.row = row
	return nil
}

// Delete removes a session, its journal and its lease.
func (s *Store) Delete(ctx context.Context, id domain.SessionID) error {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	found, ok := s.data.sessions[id]
	if !ok {
		return domain.NoSession(id)
	}
	s.data.unname(found.row)
	delete(s.data.sessions, id)
	delete(s.data.leases, id)
	return nil
}

// List returns one page, newest first.
func (s *Store) List(ctx context.Context, q domain.SessionQuery) (domain.SessionPage, error) {
	s.data.mu.RLock()
	defer s.data.mu.RUnlock()
	if err := s.ready(ctx); err != nil {
		return domain.SessionPage{}, err
	}
	var rows []domain.Session
	for _, found := range s.data.sessions {
		if matches(found.row, q) {
			rows = append(rows, found.row)
		}
	}
	slices.SortFunc(rows, func(a, b domain.Session) int { return newestFirst(a, cursor(b)) })
	var page domain.SessionPage
	if limit := q.PageSize(); len(rows) > limit {
		rows = rows[:limit]
		next := cursor(rows[limit-1])
		page.Next = &next
	}
	for _, row := range rows {
		page.Sessions = append(page.Sessions, copySession(row))
	}
	return page, nil
}

func matches(row domain.Session, q domain.SessionQuery) bool {
	switch {
	case q.Cwd != "" && row.Cwd != q.Cwd,
		q.Key != "" && row.Key != q.Key,
		q.Label != "" && row.Label != q.Label,
		!q.All && row.Parent != "":
		return false
	}
	return q.After == nil || newestFirst(row, *q.After) > 0
}

// newestFirst compares a row with a place in the list order.
func newestFirst(row domain.Session, c domain.SessionCursor) int {
	if d := c.UpdatedAt.Compare(row.UpdatedAt); d != 0 {
		return d
	}
	return strings.Compare(string(c.ID), string(row.ID))
}

func cursor(row domain.Session) domain.SessionCursor {
	return domain.SessionCursor{UpdatedAt: row.UpdatedAt, ID: row.ID}
}

// Acquire takes the session for this store.
func (s *Store) Acquire(ctx context.Context, id domain.SessionID) error {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	if owner := s.data.leases[id]; owner != nil && owner != s {
		return domain.Errorf(domain.SessionActive,
			"Session %s is in use by another process: close it there first", id).With("sessionId", string(id))
	}
	s.data.leases[id] = s
	return nil
}

// Release gives the session up.
func (s *Store) Release(ctx context.Context, id domain.SessionID) error {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	if err := s.ready(ctx); err != nil {
		return err
	}
	if s.data.leases[id] == s {
		delete(s.data.leases, id)
	}
	return nil
}

// stamp brings a time to what is stored: UTC, whole microseconds.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
