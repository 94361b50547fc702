package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// prepareFile makes the directory (0700) and an empty file (0600) if they are
// missing, and refuses what cannot be a store. fresh tells that there was
// nothing.
//
// It never opens an existing database: closing any descriptor of a file takes
// away the locks that SQLite holds on it elsewhere in this process.
func prepareFile(path string) (fresh bool, err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, unavailable(path, err, "cannot be created: its directory cannot be made")
	}
	if kind := networkFileSystem(dir); kind != "" {
		return false, unavailable(path, nil, "lies on a network file system ("+kind+"), where it would be damaged; use a local directory")
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return true, createFile(path)
	case err != nil:
		return false, unavailable(path, err, "cannot be reached")
	case !info.Mode().IsRegular():
		return false, unavailable(path, nil, "is not a regular file")
	case info.Size() == 1:
		// SQLite takes one byte for an empty file and would write over it.
		return false, damage(path, errors.New("one byte is left of it"))
	case info.Mode().Perm()&0o077 != 0:
		_ = os.Chmod(path, info.Mode().Perm()&^0o077) // not ours, perhaps: then it stays
	}
	return false, nil
}

// createFile puts an empty private file in place, unless another process was
// faster. The file gets its name only after it was closed (see prepareFile).
func createFile(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-store-*")
	if err != nil {
		return unavailable(path, err, "cannot be created: its directory cannot be written")
	}
	defer os.Remove(f.Name())
	if err := f.Close(); err != nil {
		return unavailable(path, err, "cannot be created")
	}
	err = os.Link(f.Name(), path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	// A file system without links. SQLite creates the file, and hardly anybody
	// races for its rights.
	return nil
}

// dsn names the database for the driver. The mode is SQLite's: "rw", "rwc" or
// "ro".
func dsn(path, mode string, pragmas ...string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/…
	}
	u := url.URL{Scheme: "file", Path: slashed}
	return u.String() + "?mode=" + mode + "&_txlock=immediate&_pragma=" + strings.Join(pragmas, "&_pragma=")
}

// walState is what lies in the write-ahead log beside a database.
type walState int

const (
	walNone   walState = iota // nothing that could be committed
	walFilled                 // another process works on it, or one was killed
)

// inspectLog looks at the write-ahead log before SQLite does. SQLite drops a
// log it cannot read, and with it what was committed there; then the store is
// damaged, and nothing may touch it.
func inspectLog(path string) (walState, error) {
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return walNone, nil
	}
	if db, err := os.Stat(path); err == nil && db.Size() == 0 {
		return walFilled, damage(path, errors.New("the file is empty, its log is not"))
	}
	// A living process may be writing the header at this moment.
	for try := 0; ; try++ {
		header, err := readHeader(path + "-wal")
		switch {
		case err == nil && len(header) == 0, errors.Is(err, fs.ErrNotExist):
			return walNone, nil
		case err != nil:
			return walFilled, unavailable(path, err, "cannot be read")
		case soundHeader(header):
			return walFilled, nil
		case try == 5:
			return walFilled, damage(path, errors.New("the header of its log is damaged"))
		}
		time.Sleep(time.Millisecond << try)
	}
}

// logHeader is the length of a log's header (SQLite file format, section 4.1).
const logHeader = 32

func readHeader(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	header := make([]byte, logHeader)
	n, err := io.ReadFull(f, header)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return header[:n], err
}

// soundHeader reports whether SQLite will read the log. A header of zeros
// means that the first write never reached the disk, so nothing was
// committed.
func soundHeader(h []byte) bool {
	if len(h) < logHeader || binary.BigEndian.Uint64(h) == 0 && binary.BigEndian.Uint64(h[8:]) == 0 {
		return true
	}
	var order binary.ByteOrder
	switch binary.BigEndian.Uint32(h) {
	case 0x377f0682:
		order = binary.LittleEndian
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return false
	}
	var s0, s1 uint32
	for i := 0; i < 24; i += 8 {
		s0 += order.Uint32(h[i:]) + s1
		s1 += order.Uint32(h[i+4:]) + s0
	}
	return binary.BigEndian.Uint32(h[24:]) == s0 && binary.BigEndian.Uint32(h[28:]) == s1
}

// backupName is where the copy of a store goes before its schema changes.
func backupName(path string, version int, at time.Time) string {
	return fmt.Sprintf("%s.v%d-%s.bak", path, version, at.UTC().Format("20060102T150405.000000"))
}

// syncFile makes a written file durable.
func syncFile(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
