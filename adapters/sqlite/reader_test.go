package sqlite

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/berth-dev/berth/core/domain"
)

// TestStore_ReadersDoNotWait reads while a transaction is open and while the
// pool is smaller than the number of readers.
func TestStore_ReadersDoNotWait(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	id := mustCreate(t, s, 1)
	fillTurns(t, s, id, 300)
	foreignLock(t, s.path)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			n := 0
			for _, err := range s.Records(t.Context(), id, 0) {
				if err != nil {
					t.Errorf("records: %v", err)
				}
				n++
			}
			if n != 1200 {
				t.Errorf("%d records", n)
			}
		})
	}
	wg.Wait()
}

// TestStore_RecordsOfADeletedSession deletes a session between two pages.
func TestStore_RecordsOfADeletedSession(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
		id := mustCreate(t, s, 1)
		fillTurns(t, s, id, 600)
		var last error
		n := 0
		for _, err := range s.Records(t.Context(), id, 0) {
			if last = err; n == 0 {
				if err := s.Delete(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				if again { // another session, which gets the freed number
					fillTurns(t, s, mustCreate(t, s, 2), 600)
				}
			}
			n++
		}
		if !domain.HasCode(last, domain.SessionNotFound) {
			t.Errorf("again=%v: the reader saw %d records and ended with %v", again, n, last)
		}
	}
}

// TestStore_PlansUseIndexes: no statement of the daily work scans a table.
func TestStore_PlansUseIndexes(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	id := mustCreate(t, s, 1)
	if _, err := s.Append(t.Context(), id, 0, said("a"), domain.TitleSet{Title: "t"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Acquire(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for range s.Records(t.Context(), id, 0) {
	}
	for _, q := range []domain.SessionQuery{
		{}, {All: true}, {Cwd: "/"}, {Key: "k"}, {Label: "l"}, {After: &domain.SessionCursor{}}, {All: true, After: &domain.SessionCursor{}},
	} {
		if _, err := s.List(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	queries := map[string]*sqlx.Stmt{}
	for q, st := range s.reader.stmts {
		queries[q] = st
	}
	for q, st := range s.writer.link.stmts {
		queries[q] = st
	}
	db, err := rawConn(s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	plans := 0
	for q := range queries {
		var plan []struct {
			ID      int    `db:"id"`
			Parent  int    `db:"parent"`
			NotUsed int    `db:"notused"`
			Detail  string `db:"detail"`
		}
		args := make([]any, strings.Count(q, "?"))
		if err := db.Select(&plan, "EXPLAIN QUERY PLAN "+q, args...); err != nil {
			continue // BEGIN, COMMIT and their like
		}
		for _, p := range plan {
			plans++
			if strings.HasPrefix(p.Detail, "SCAN") && !strings.Contains(p.Detail, "VALUES CLAUSE") && !strings.Contains(p.Detail, "USING INDEX sessions_recent") && !strings.Contains(q, "DISTINCT instance") {
				t.Errorf("%s\n\t%s", q, p.Detail)
			}
		}
	}
	if plans < 10 {
		t.Errorf("only %d plans were looked at", plans)
	}
}
