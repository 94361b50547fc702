package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	lib "modernc.org/sqlite/lib"
)

// applicationID marks the file as ours ("BRTH").
const applicationID = 0x42525448

// inspection is what was found in a file before anything in it was changed.
type inspection struct {
	version int  // of its schema; 0 when nothing was made yet
	checked bool // every page was looked at in the time there was
}

// inspectAlone is inspect in a transaction of its own, so that what it sees is
// of one moment: other processes may be bringing the schema up to date.
func inspectAlone(ctx context.Context, conn *sqlx.Conn, path string, steps []migration, budget time.Duration) (inspection, error) {
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), "BEGIN DEFERRED"); err != nil {
		return inspection{}, err
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }()
	return inspect(ctx, conn, path, steps, budget)
}

// inspect looks whether the file is a sound store of a schema this program
// knows. It changes nothing and must run in a transaction. Errors of the
// driver come back as they are.
func inspect(ctx context.Context, conn *sqlx.Conn, path string, steps []migration, budget time.Duration) (inspection, error) {
	var in inspection
	var app, tables int
	for _, q := range []struct {
		query string
		dest  *int
	}{
		{"PRAGMA application_id", &app},
		{"PRAGMA user_version", &in.version},
		{"SELECT count(*) FROM sqlite_master", &tables},
	} {
		if err := conn.GetContext(ctx, q.dest, q.query); err != nil {
			return in, err
		}
	}
	switch {
	case app != applicationID && (app != 0 || tables > 0 || in.version != 0):
		return in, unavailable(path, nil, "is a database of another program; name another data directory")
	case in.version > len(steps):
		newer := &NewerSchemaError{Path: path, Found: in.version, Known: len(steps)}
		return in, unavailable(path, newer, fmt.Sprintf(
			"was written by a newer version of this program (schema %d, this one knows up to %d). It was left as it is: use the newer version, or name another data directory",
			newer.Found, newer.Known))
	}
	if tables == 0 {
		return in, nil
	}
	if err := checkHistory(ctx, conn, path, steps, in.version); err != nil {
		return in, err
	}
	var err error
	in.checked, err = quickCheck(ctx, conn, path, budget)
	return in, err
}

// quickCheck looks at every page as far as the time goes. What it does not
// reach is checked when it is read: each record has a checksum.
func quickCheck(ctx context.Context, conn *sqlx.Conn, path string, budget time.Duration) (done bool, err error) {
	if budget < 0 {
		return false, nil
	}
	short, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	var found []string
	err = conn.SelectContext(short, &found, "PRAGMA quick_check(3)")
	switch {
	case err == nil && (len(found) != 1 || found[0] != "ok"):
		return true, damage(path, errors.New(strings.Join(found, "; ")))
	case err != nil && ctx.Err() == nil && (short.Err() != nil || primary(err) == lib.SQLITE_INTERRUPT):
		return false, nil
	}
	return true, err
}

// readOnly reports whether SQLite could open the file for reading only.
func readOnly(conn *sqlx.Conn) (yes bool, err error) {
	err = conn.Raw(func(driver any) error {
		if d, ok := driver.(interface{ IsReadOnly(string) (bool, error) }); ok {
			yes, err = d.IsReadOnly("main")
		}
		return err
	})
	return yes, err
}
