package sqlite

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema, from version-1 to version.
type migration struct {
	version int
	name    string
	sql     string
}

func (m migration) checksum() string {
	sum := sha256.Sum256([]byte(m.sql))
	return hex.EncodeToString(sum[:])
}

// migrations returns the steps in order. Their file names begin with the
// version, from 0001 without a gap.
func migrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]migration, len(names))
	for i, name := range names {
		sql, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := strings.TrimSuffix(strings.TrimPrefix(name, "migrations/"), ".sql")
		number, _, _ := strings.Cut(base, "_")
		if v, err := strconv.Atoi(number); err != nil || v != i+1 {
			return nil, fmt.Errorf("migration %s is not number %d", base, i+1)
		}
		steps[i] = migration{version: i + 1, name: base, sql: string(sql)}
	}
	return steps, nil
}

// migrate brings the schema to the last step. Each step is one transaction:
// whoever is killed leaves the file at the old version or at the new one. A new
// file gets all steps in one: each commit waits for the disk.
// Several processes may do it at once; each step is applied by one of them.
func migrate(ctx context.Context, conn *sqlx.Conn, path string, steps []migration, now time.Time) error {
	for {
		version, err := userVersion(ctx, conn)
		if err != nil || version >= len(steps) {
			return err
		}
		if err := apply(ctx, conn, path, steps, now); err != nil {
			return err
		}
	}
}

func userVersion(ctx context.Context, conn *sqlx.Conn) (version int, err error) {
	err = conn.GetContext(ctx, &version, "PRAGMA user_version")
	return version, err
}

// apply takes the write lock, looks again, and does the next step, or all of a
// new file, if nobody did it meanwhile.
func apply(ctx context.Context, conn *sqlx.Conn, path string, steps []migration, now time.Time) (err error) {
	if _, err := conn.ExecContext(context.WithoutCancel(ctx), "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	in, err := inspect(ctx, conn, path, steps, -1)
	if err != nil {
		return err
	}
	for _, step := range steps[min(in.version, len(steps)):] {
		if err := applyStep(ctx, conn, step, now); err != nil {
			return err
		}
		if in.version > 0 {
			break
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

func applyStep(ctx context.Context, conn *sqlx.Conn, step migration, now time.Time) error {
	if _, err := conn.ExecContext(ctx, step.sql); err != nil {
		return fmt.Errorf("migration %s: %w", step.name, err)
	}
	_, err := conn.ExecContext(ctx, "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
		step.version, step.name, step.checksum(), now.UnixMicro())
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(step.version))
	return err
}

// checkHistory refuses a file whose schema was made by other steps than ours
// under the same numbers.
func checkHistory(ctx context.Context, conn *sqlx.Conn, path string, steps []migration, version int) error {
	var applied []struct {
		Version  int    `db:"version"`
		Checksum string `db:"checksum"`
	}
	err := conn.SelectContext(ctx, &applied, "SELECT version, checksum FROM schema_migrations ORDER BY version")
	if err != nil {
		return err
	}
	for i, a := range applied {
		if a.Version != i+1 || i >= len(steps) || a.Checksum != steps[i].checksum() {
			return unavailable(path, nil, fmt.Sprintf("has a schema that this program did not make (step %d differs); name another data directory", i+1))
		}
	}
	if len(applied) != version {
		return damage(path, fmt.Errorf("its version is %d, its history has %d steps", version, len(applied)))
	}
	return nil
}

// backup copies the store beside itself before its schema changes and returns
// the name of the copy. One process at a time does it; those who find it done
// have nothing to copy.
func backup(ctx context.Context, conn *sqlx.Conn, path string, version int, now time.Time) (name string, err error) {
	name = backupName(path, version, now)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(name)
		}
	}()
	if err := f.Close(); err != nil {
		return "", err
	}
	if _, err := conn.ExecContext(ctx, "VACUUM INTO ?", name); err != nil {
		return "", err
	}
	return name, syncFile(name)
}
