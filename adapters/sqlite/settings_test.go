package sqlite

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/sqlstore"
)

// pragma asks the connection of a transaction for one of its settings.
func pragma(t *testing.T, c sqlstore.Conn, name string) (value string) {
	t.Helper()
	var err error
	switch c := c.(type) {
	case *link:
		err = c.conn.GetContext(t.Context(), &value, "PRAGMA "+name)
	case *reader:
		err = c.db.GetContext(t.Context(), &value, "PRAGMA "+name)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// TestStore_Settings: what is acknowledged is synced, whatever was committed
// before it without a sync, and readers cannot write.
func TestStore_Settings(t *testing.T) {
	s := openAt(t, filepath.Join(t.TempDir(), "s.db"))
	id := mustCreate(t, s, 1)
	want := func(c sqlstore.Conn, settings ...string) {
		t.Helper()
		for _, setting := range settings {
			name, value, _ := strings.Cut(setting, "=")
			if got := pragma(t, c, name); got != value {
				t.Errorf("%s is %s, want %s", name, got, value)
			}
		}
	}
	for range 3 {
		if err := s.Acquire(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := s.writer.write(t.Context(), true, func(_ context.Context, c sqlstore.Conn) error {
			want(c, "synchronous=1")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.writer.write(t.Context(), false, func(_ context.Context, c sqlstore.Conn) error {
			want(c, "synchronous=2", "journal_mode=wal", "foreign_keys=1", "busy_timeout=0", "mmap_size=0")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.reader.read(t.Context(), func(_ context.Context, c sqlstore.Conn) error {
		want(c, "query_only=1", "journal_mode=wal", "busy_timeout=5000")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
