package sqlite

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/berth-dev/berth/adapters/sqlstore"
)

// readers is the size of the pool that reads. What a reader gets from the
// store is read page by page and nothing is held in between, so a few
// connections serve many slow clients.
const readers = 4

// reader runs what only reads, beside the writer and beside each other.
type reader struct {
	db     *sqlx.DB
	path   string
	wait   patience
	closed atomic.Bool

	mu    sync.Mutex
	stmts map[string]*sqlx.Stmt
}

func (r *reader) read(ctx context.Context, fn func(context.Context, sqlstore.Conn) error) error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	if r.closed.Load() {
		return closedError()
	}
	// Reading takes milliseconds and never waits for a writer. Watching the
	// context in every step of it would cost more than it could save.
	quiet := context.WithoutCancel(ctx)
	err := r.wait.insist(ctx, func() error { return fn(quiet, r) })
	if err != nil && r.closed.Load() {
		return closedError()
	}
	return explain(ctx, r.path, r.wait, err)
}

// Stmt prepares a statement once; the pool repeats it for each connection.
func (r *reader) Stmt(ctx context.Context, query string) (*sqlx.Stmt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st := r.stmts[query]; st != nil {
		return st, nil
	}
	st, err := r.db.PreparexContext(ctx, r.db.Rebind(query))
	if err == nil {
		r.stmts[query] = st
	}
	return st, err
}

func (r *reader) close() error {
	r.closed.Store(true)
	r.mu.Lock()
	for _, st := range r.stmts {
		st.Close()
	}
	r.mu.Unlock()
	return r.db.Close()
}
