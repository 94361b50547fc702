package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/berth-dev/berth/adapters/sqlstore"
	"github.com/berth-dev/berth/core/domain"
)

const (
	selectLease  = "SELECT instance FROM leases WHERE session = ?"
	putLease     = "INSERT INTO leases (session, instance) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET instance = excluded.instance"
	dropLease    = "DELETE FROM leases WHERE session = ? AND instance = ?"
	dropLeases   = "DELETE FROM leases WHERE instance = ?"
	selectOwners = "SELECT DISTINCT instance FROM leases"
)

// Acquire takes the session for this instance. A row of another instance
// counts only while that one lives; else it is taken over at once. Looking
// and taking are one transaction, so of two that want it one gets it.
func (s *Store) Acquire(ctx context.Context, id domain.SessionID) error {
	if ctx.Err() != nil {
		return cancelled(ctx)
	}
	first, err := s.self.hold()
	if err != nil {
		return explain(ctx, s.path, s.writer.wait, unavailable(s.path, err, "cannot be shared: the directory instances beside it cannot be written"))
	}
	return s.writer.write(ctx, true, func(ctx context.Context, c sqlstore.Conn) error {
		if first {
			if err := s.forgetDead(ctx, c); err != nil {
				return err
			}
		}
		owner, err := leaseOf(ctx, c, id)
		switch {
		case err != nil:
			return err
		case owner == s.self.id:
			return nil
		case owner != "" && s.self.alive(owner):
			return domain.Errorf(domain.SessionActive,
				"Session %s is in use by another process: close it there first", id).With("sessionId", string(id))
		}
		return run(ctx, c, putLease, string(id), s.self.id)
	})
}

// leaseOf returns the instance a session is leased to, "" when it is free.
func leaseOf(ctx context.Context, c sqlstore.Conn, id domain.SessionID) (string, error) {
	st, err := c.Stmt(ctx, selectLease)
	if err != nil {
		return "", err
	}
	var owner string
	err = st.QueryRowContext(ctx, string(id)).Scan(&owner)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return owner, err
}

// forgetDead removes the leases of instances that are gone.
func (s *Store) forgetDead(ctx context.Context, c sqlstore.Conn) error {
	st, err := c.Stmt(ctx, selectOwners)
	if err != nil {
		return err
	}
	var owners []string
	if err := st.SelectContext(ctx, &owners); err != nil {
		return err
	}
	for _, owner := range owners {
		if owner == s.self.id || s.self.alive(owner) {
			continue
		}
		if err := run(ctx, c, dropLeases, owner); err != nil {
			return err
		}
	}
	return nil
}

// Release gives the session up.
func (s *Store) Release(ctx context.Context, id domain.SessionID) error {
	return s.writer.write(ctx, true, func(ctx context.Context, c sqlstore.Conn) error {
		return run(ctx, c, dropLease, string(id), s.self.id)
	})
}

// releaseAll gives up everything at the end.
func (s *Store) releaseAll(ctx context.Context) error {
	return s.writer.write(ctx, true, func(ctx context.Context, c sqlstore.Conn) error {
		return run(ctx, c, dropLeases, s.self.id)
	})
}

func run(ctx context.Context, c sqlstore.Conn, query string, args ...any) error {
	st, err := c.Stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx, args...)
	return err
}

// validInstance keeps an instance's name usable as a file's name.
func validInstance(id string) bool {
	return domain.SessionID(id).Valid() && !strings.HasPrefix(id, "-")
}
