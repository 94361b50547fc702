package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/jmoiron/sqlx"
)

// link is the connection that writes, with its statements.
type link struct {
	conn    *sqlx.Conn
	stmts   map[string]*sqlx.Stmt
	relaxed bool
}

func openLink(ctx context.Context, db *sqlx.DB) (*link, error) {
	conn, err := db.Connx(ctx)
	if err != nil {
		return nil, err
	}
	return &link{conn: conn, stmts: make(map[string]*sqlx.Stmt)}, nil
}

// Stmt prepares a statement once.
func (l *link) Stmt(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if st := l.stmts[query]; st != nil {
		return st, nil
	}
	st, err := l.conn.PreparexContext(ctx, l.conn.Rebind(query))
	if err == nil {
		l.stmts[query] = st
	}
	return st, err
}

func (l *link) exec(ctx context.Context, query string) error {
	st, err := l.Stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx)
	return err
}

// relax chooses whether the next commit syncs. In WAL mode both are safe
// against a kill and neither can damage the file.
func (l *link) relax(relaxed bool) error {
	if l.relaxed == relaxed {
		return nil
	}
	pragma := "PRAGMA synchronous = FULL"
	if relaxed {
		pragma = "PRAGMA synchronous = NORMAL"
	}
	// Not prepared: SQLite runs it while it compiles it.
	if _, err := l.conn.ExecContext(context.Background(), pragma); err != nil {
		return err
	}
	l.relaxed = relaxed
	return nil
}

func (l *link) close() {
	if l == nil {
		return
	}
	l.closeStmts()
	l.conn.Close()
}

// closeStmts closes what was prepared, unless the connection is closed already:
// then it is too late, and the driver cannot bear it.
func (l *link) closeStmts() {
	if l.conn.Raw(func(any) error { return nil }) != nil {
		return
	}
	for _, st := range l.stmts {
		st.Close()
	}
}

// discard closes the connection itself instead of keeping it in the pool. Its
// statements go first: nobody else knows of those that were prepared on it
// alone, and while one is left SQLite keeps a closed connection, with the
// transaction and the locks that it has.
func (l *link) discard() {
	l.closeStmts()
	_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
	l.conn.Close()
}
