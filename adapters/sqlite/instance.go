package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// instance is one opened store among all that use the file. It is alive while
// it holds the lock on its own file beside the database: the kernel gives the
// lock back when the process ends, so nobody has to guess from a clock
// whether an owner is still there.
type instance struct {
	id  string
	dir string

	mu   sync.Mutex
	file *os.File // nil until the lock is needed
}

const lockSuffix = ".lock"

func instanceDir(path string) string { return filepath.Join(filepath.Dir(path), "instances") }

func (i *instance) name(id string) string { return filepath.Join(i.dir, id+lockSuffix) }

// hold takes the lock, once. first tells that it did.
func (i *instance) hold() (first bool, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.file != nil {
		return false, nil
	}
	if err := os.MkdirAll(i.dir, 0o700); err != nil {
		return false, err
	}
	i.file, err = lockFile(i.name(i.id), lockExclusive)
	return err == nil, err
}

// drop gives the lock back and removes the file.
func (i *instance) drop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.file != nil {
		// Removed first where that is possible, so that the name never stands
		// for a file nobody has locked.
		_ = os.Remove(i.file.Name())
		i.file.Close()
		_ = os.Remove(i.file.Name())
		i.file = nil
	}
}

// alive reports whether another instance holds its lock. What cannot be found
// out counts as alive.
func (i *instance) alive(id string) bool {
	f, err := os.Open(i.name(id))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	free, err := tryShared(f)
	return err != nil || !free
}

// sweep removes the files of instances that are gone.
func (i *instance) sweep() {
	entries, err := os.ReadDir(i.dir)
	if err != nil {
		return // nobody was here before
	}
	for _, e := range entries {
		id, ours := strings.CutSuffix(e.Name(), lockSuffix)
		if !ours || id == i.id {
			continue
		}
		f, err := os.Open(i.name(id))
		if err != nil {
			continue
		}
		if free, err := tryShared(f); err == nil && free {
			_ = os.Remove(f.Name())
		}
		f.Close()
	}
}

// lockFile creates a file if need be and takes its lock. A sweeper may remove
// the file between the two; then the lock is on a file without a name, and it
// is done again.
func lockFile(name string, lock func(*os.File) error) (*os.File, error) {
	for range 100 {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if err := lock(f); err != nil {
			f.Close()
			return nil, err
		}
		held, err := f.Stat()
		if err == nil {
			if named, statErr := os.Stat(name); statErr == nil && os.SameFile(held, named) {
				return f, nil
			}
		}
		f.Close()
	}
	return nil, fmt.Errorf("%s is removed as fast as it is made", name)
}

// held reports whether the lock was ever taken.
func (i *instance) held() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.file != nil
}
