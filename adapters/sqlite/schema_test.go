package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// addTable is a step that may run once.
const addTable = "CREATE TABLE extra (n INTEGER); INSERT INTO extra VALUES (1);"

// newest is the schema that this program makes.
func newest(t *testing.T) int {
	t.Helper()
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	return len(steps)
}

// TestOpen_EarlierSchemas: what a store of each earlier schema holds is there
// after the upgrade, and the store is whole.
func TestOpen_EarlierSchemas(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(steps); n++ {
		t.Run(steps[n-1].name, func(t *testing.T) {
			cfg := Config{Path: filepath.Join(t.TempDir(), "s.db")}.withDefaults()
			old, err := open(t.Context(), cfg, steps[:n])
			if err != nil {
				t.Fatal(err)
			}
			if err := old.Create(t.Context(), row(1)); err != nil {
				t.Fatal(err)
			}
			if _, err := old.Append(t.Context(), row(1).ID, 0, domain.UserSaid{Turn: "t1"}); err != nil {
				t.Fatal(err)
			}
			old.Close()
			s := openAt(t, cfg.Path)
			if spent, err := s.Spent(t.Context(), "a", time.Now()); spent != 0 || err != nil {
				t.Errorf("before anything was spent: %v, %v", spent, err)
			}
			cost := domain.MicroUSD(7)
			if _, err := s.Append(t.Context(), row(1).ID, 1, domain.AssistantSaid{Turn: "t1", Agent: "a", Cost: &cost}); err != nil {
				t.Fatal(err)
			}
			if spent, err := s.Spent(t.Context(), "a", time.Now()); spent != cost || err != nil {
				t.Errorf("spent: %v, %v", spent, err)
			}
			records := 0
			for _, err := range s.Records(t.Context(), row(1).ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				records++
			}
			if records != 2 {
				t.Errorf("the journal holds %d records, want 2", records)
			}
		})
	}
}

// setVersion makes a file look as if another version had written it.
func setVersion(t *testing.T, path string, sql string) {
	t.Helper()
	db, err := rawConn(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

// TestOpen_NewerSchema: an older program names both versions and changes
// nothing, whether the newer one was closed or killed.
func TestOpen_NewerSchema(t *testing.T) {
	const newer = "PRAGMA user_version = 99"
	clean := takeImage(t, false).write(t)
	setVersion(t, clean, newer)

	path := takeImage(t, false).write(t)
	db, err := rawConn(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(newer); err != nil {
		t.Fatal(err)
	}
	killed := readImage(t, path).write(t) // the version is in the log alone

	for name, path := range map[string]string{"closed": clean, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			before := readImage(t, path)
			if _, log := before["-wal"]; log != (name == "killed") {
				t.Fatalf("a log is there: %v", log)
			}
			_, err := Open(t.Context(), Config{Path: path})
			var schema *NewerSchemaError
			if !errors.As(err, &schema) || schema.Found != 99 || schema.Known != newest(t) || schema.Path != path {
				t.Fatalf("open: %v (%+v)", err, schema)
			}
			if !domain.HasCode(err, domain.StoreUnavailable) {
				t.Errorf("the code is %v", domain.CodeOf(err))
			}
			for _, part := range []string{path, "schema 99", fmt.Sprintf("up to %d", newest(t))} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the message does not say %q: %v", part, err)
				}
			}
			after := readImage(t, path)
			for suffix := range before {
				if !bytes.Equal(before[suffix], after[suffix]) {
					t.Errorf("the file s.db%s was changed", suffix)
				}
			}
		})
	}
}

func TestOpen_ForeignDatabases(t *testing.T) {
	for name, sql := range map[string]string{
		"another program's mark":    "PRAGMA application_id = 77",
		"tables without a mark":     "PRAGMA application_id = 0",
		"a schema by other steps":   "UPDATE schema_migrations SET checksum = 'other'",
		"a version without history": "DELETE FROM schema_migrations",
	} {
		t.Run(name, func(t *testing.T) {
			path := takeImage(t, false).write(t)
			setVersion(t, path, sql)
			before := readImage(t, path)
			s, err := Open(t.Context(), Config{Path: path})
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if c := domain.CodeOf(err); c != domain.StoreUnavailable && c != domain.StoreCorrupt {
				t.Errorf("open: %v (%v)", err, c)
			}
			if !bytes.Equal(readImage(t, path)[""], before[""]) {
				t.Errorf("the file was changed")
			}
		})
	}
}

// TestOpen_UpgradesOnce has several processes of a newer version start at
// once on an older store.
func TestOpen_UpgradesOnce(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed=%v", killed), func(t *testing.T) {
			path := takeImage(t, killed).write(t)
			var children []*child
			for range 6 {
				children = append(children, startChild(t, "upgrade", path, addTable))
			}
			for _, c := range children {
				if last := c.finish(); last != "started" {
					t.Errorf("a start ended with %q", last)
				}
			}
			var got struct {
				Rows    int `db:"n"`
				Steps   int `db:"steps"`
				Version int `db:"user_version"`
			}
			db, err := rawConn(path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			err = db.Get(&got, "SELECT (SELECT count(*) FROM extra) AS n, (SELECT count(*) FROM schema_migrations) AS steps, user_version FROM pragma_user_version")
			if err != nil || got.Rows != 1 || got.Steps != newest(t)+1 || got.Version != newest(t)+1 {
				t.Errorf("after the upgrade: %+v, %v", got, err)
			}
			copies, _ := filepath.Glob(fmt.Sprintf("%s.v%d-*.bak", path, newest(t)))
			if len(copies) != 1 {
				t.Fatalf("copies: %v", copies)
			}
			if info, err := os.Stat(copies[0]); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the copy's mode is %v (%v)", info.Mode(), err)
			}
			// The copy is the store as it was: an older version opens it.
			old := openAt(t, copies[0])
			for n := range imageSessions {
				if n, err := countRecords(t, old, row(n).ID); n != 49 || err != nil {
					t.Errorf("a session of the copy has %d records (%v)", n, err)
				}
			}
			// And this version refuses the upgraded one.
			var newer *NewerSchemaError
			if _, err := Open(t.Context(), Config{Path: path}); !errors.As(err, &newer) {
				t.Errorf("the older version opened the upgraded store: %v", err)
			}
		})
	}
}

// TestOpen_KilledUpgrade: a step that was killed half-way has not happened.
func TestOpen_KilledUpgrade(t *testing.T) {
	path := takeImage(t, false).write(t)
	slow := "CREATE TABLE slow (n INTEGER, s TEXT); INSERT INTO slow WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n, hex(randomblob(100)) FROM c"
	c := startChild(t, "upgrade", path, slow) // it never ends
	eventually(t, "the step writes more than fits its memory", func() bool {
		info, err := os.Stat(path + "-wal")
		return err == nil && info.Size() > 4<<20
	})
	c.kill()
	s := openAt(t, path)
	for n := range imageSessions {
		if n, err := countRecords(t, s, row(n).ID); n != 49 || err != nil {
			t.Errorf("a session has %d records (%v)", n, err)
		}
	}
	s.Close()
	wantSound(t, path)
	// The next upgrade is not stopped by what the killed one left.
	up := startChild(t, "upgrade", path, addTable)
	if last := up.finish(); last != "started" {
		t.Errorf("the next upgrade ended with %q", last)
	}
}

func TestOpen_UpgradeFails(t *testing.T) {
	path := takeImage(t, false).write(t)
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	_, err = open(t.Context(), Config{Path: path}.withDefaults(), append(steps, testStep("CREATE TABLE good (n); CREATE TABLE sessions (n)")))
	if !domain.HasCode(err, domain.StoreUnavailable) {
		t.Errorf("a step that cannot run: %v", err)
	}
	var good int
	db, err := rawConn(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Get(&good, "SELECT count(*) FROM sqlite_master WHERE name = 'good'"); err != nil || good != 0 {
		t.Errorf("half a step is there: %d, %v", good, err)
	}
	openAt(t, path)
}

func TestOpen_UpgradeTellsTheObserver(t *testing.T) {
	path := takeImage(t, false).write(t)
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	var seen events
	cfg := Config{Path: path, Observer: &seen, Clock: func() time.Time { return time.Unix(0, 0) }}
	s, err := open(t.Context(), cfg.withDefaults(), append(steps, testStep(addTable)))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if len(seen) != 1 || !strings.Contains(fmt.Sprint(seen[0]), fmt.Sprintf("%s.v%d-19700101T000000.000000.bak", path, newest(t))) {
		t.Errorf("the observer saw %v", seen)
	}
}

// events is an observer that keeps what it sees.
type events []domain.Event

func (e *events) Observe(_ context.Context, ev domain.Event) { *e = append(*e, ev) }
