package sqlstore

import (
	"context"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// List returns one page, newest first, equal times by id downwards. It asks
// for one row more than the page holds: only that row makes a cursor, so no
// cursor leads to an empty page.
func (s *Store) List(ctx context.Context, q domain.SessionQuery) (domain.SessionPage, error) {
	limit := q.PageSize()
	query, args := listQuery(q, limit+1)
	rows := make([]sessionRow, 0, min(limit, 50)+1)
	err := s.db.Read(ctx, func(ctx context.Context, c Conn) error {
		rows = rows[:0]
		st, err := c.Stmt(ctx, query)
		if err != nil {
			return err
		}
		return st.SelectContext(ctx, &rows, args...)
	})
	if err != nil {
		return domain.SessionPage{}, err
	}
	var page domain.SessionPage
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		page.Next = &domain.SessionCursor{UpdatedAt: fromMicro(last.UpdatedAt), ID: domain.SessionID(last.ID)}
	}
	for _, row := range rows {
		session, err := row.session()
		if err != nil {
			return domain.SessionPage{}, err
		}
		page.Sessions = append(page.Sessions, session)
	}
	return page, nil
}

// listQuery builds the statement for the filters that are set. There are few
// combinations, so each is prepared once.
func listQuery(q domain.SessionQuery, limit int) (string, []any) {
	var where []string
	var args []any
	filter := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if q.Cwd != "" {
		filter("cwd = ?", q.Cwd)
	}
	if q.Key != "" {
		filter("key = ?", q.Key)
	}
	if q.Label != "" {
		filter("label = ? AND label <> ''", q.Label)
	}
	if !q.All {
		filter("parent = ''")
	}
	if q.After != nil {
		filter("(updated_at, id) < (?, ?)", q.After.UpdatedAt.UnixMicro(), string(q.After.ID))
	}
	query := "SELECT num, seq, " + sessionColumns + " FROM sessions"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	return query + " ORDER BY updated_at DESC, id DESC LIMIT ?", append(args, limit)
}
