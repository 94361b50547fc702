// Package sqlite keeps sessions in one SQLite file that several processes may
// use at once. The tables are adapters/sqlstore's; this package opens the
// file, brings its schema up to date, and decides how transactions run:
//
//   - One connection writes, in immediate transactions; concurrent writers
//     share a transaction and its sync (writer.go). Four others read.
//   - WAL with synchronous FULL: what was acknowledged survives a kill and a
//     power cut.
//   - There is one policy for waiting (patience in errors.go): ten seconds,
//     whoever holds the file, then StoreUnavailable. Processes that want to
//     write take turns (place.go).
//   - A session's owner is the instance in its lease, alive as long as it
//     holds the kernel's lock on its own file (instance.go, lease.go).
//   - A damaged file, a newer schema and another program's database are
//     reported and left as they are, byte for byte (inspect.go, files.go).
//
// Read next: adapters/sqlstore/journal.go.
package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	lib "modernc.org/sqlite/lib"

	"github.com/berth-dev/berth/adapters/sqlstore"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Older versions of SQLite can damage a file that two processes write when
// the log begins anew. This does not compile with them.
const _ = uint(lib.SQLITE_VERSION_NUMBER - 3051003)

// Config says where the store is and what it is given. Only Path is needed.
type Config struct {
	// Path is the database file. It is created, and its directory too.
	Path string
	// Clock stamps what is appended; time.Now when nil.
	Clock ports.Clock
	// IDs names this instance; random UUIDs when nil.
	IDs ports.IDs
	// Observer hears what went wrong and was dealt with; it may be nil.
	Observer ports.Observer
	// Wait is how long an operation waits in all while other processes hold
	// the file; 0 means 10 seconds.
	Wait time.Duration
	// CheckBudget is how long opening may look for damaged pages; 0 means 2
	// milliseconds, enough for some megabytes, and a negative one not at all.
	// What it does not reach is found when it is read: records have checksums.
	CheckBudget time.Duration
}

const (
	defaultWait        = 10 * time.Second
	defaultCheckBudget = 2 * time.Millisecond
	longWait           = time.Second // worth telling
	closeLimit         = 2 * time.Second
)

// Store is a ports.Store in a SQLite file. Make one with Open.
type Store struct {
	*sqlstore.Store
	path   string
	writer *writer
	reader *reader
	self   *instance

	closing sync.Once
	closed  error
}

var _ ports.Store = (*Store)(nil)

// Durable reports true: sessions outlive the process.
func (s *Store) Durable() bool { return true }

// Open opens the store, and makes it if there is none. Errors are coded:
// StoreCorrupt for a damaged file; StoreUnavailable for one that cannot be
// used now, or at all, such as one with a newer schema (then a
// NewerSchemaError is in the chain). In none of these cases was anything in
// the file changed, and the caller may go on without it.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	steps, err := migrations()
	if err != nil {
		return nil, err
	}
	return open(ctx, cfg.withDefaults(), steps)
}

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.IDs == nil {
		c.IDs = uuid.NewString
	}
	if c.Wait <= 0 {
		c.Wait = defaultWait
	}
	if c.CheckBudget == 0 {
		c.CheckBudget = defaultCheckBudget
	}
	return c
}

func open(ctx context.Context, cfg Config, steps []migration) (*Store, error) {
	path, err := filepath.Abs(cfg.Path)
	if err != nil || cfg.Path == "" {
		return nil, domain.WrapError(domain.InvalidArgument, err, "The session store needs the path of a file")
	}
	id := cfg.IDs()
	if !validInstance(id) {
		return nil, domain.Errorf(domain.InvalidArgument, "The instance name %q cannot name a file", id)
	}
	if ctx.Err() != nil {
		return nil, cancelled(ctx)
	}
	o := opener{cfg: cfg, path: path, steps: steps, wait: patience(cfg.Wait)}
	writing, err := o.open(ctx)
	if err != nil {
		return nil, explain(ctx, path, o.wait, err)
	}
	reading, err := sqlx.Open("sqlite", dsn(path, "rw", readerPragmas()...))
	if err != nil {
		writing.close()
		return nil, explain(ctx, path, o.wait, err)
	}
	reading.SetMaxOpenConns(readers)
	reading.SetMaxIdleConns(readers / 2)
	s := &Store{
		path:   path,
		writer: writing,
		reader: &reader{db: reading, path: path, wait: o.wait, stmts: make(map[string]*sqlx.Stmt)},
		self:   &instance{id: id, dir: instanceDir(path)},
	}
	s.Store = sqlstore.New(backend{s}, cfg.Clock, id)
	s.self.sweep()
	return s, nil
}

// backend lends the connections to the tables.
type backend struct{ s *Store }

func (b backend) Read(ctx context.Context, fn func(context.Context, sqlstore.Conn) error) error {
	return b.s.reader.read(ctx, fn)
}

func (b backend) Write(ctx context.Context, fn func(context.Context, sqlstore.Conn) error) error {
	return b.s.writer.write(ctx, false, fn)
}

func (b backend) Duplicate(err error) bool { return duplicate(err) }

// Close waits for what was begun, gives up the leases and closes the file.
func (s *Store) Close() error {
	s.closing.Do(func() {
		if s.self.held() {
			ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
			defer cancel()
			// The rows count for nothing once the lock is gone.
			_ = s.releaseAll(ctx)
		}
		readErr := s.reader.close()
		s.closed = s.writer.close()
		if s.closed == nil {
			s.closed = readErr
		}
		s.self.drop()
	})
	return s.closed
}

// The settings of connections. Page caches are small: they matter little
// beside the kernel's, and there are several. SQLite does not wait itself for
// the write lock: patience does, in shorter steps.
func writerPragmas() []string {
	pragmas := []string{
		"busy_timeout(0)", "foreign_keys(1)", "synchronous(FULL)", "cache_size(-1024)", "journal_size_limit(4194304)",
	}
	if runtime.GOOS == "darwin" { // where fsync does not reach the disk
		pragmas = append(pragmas, "fullfsync(1)", "checkpoint_fullfsync(1)")
	}
	return pragmas
}

func readerPragmas() []string {
	return []string{"busy_timeout(5000)", "foreign_keys(1)", "cache_size(-512)", "query_only(1)"}
}
