//go:build unix

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockExclusive waits for the exclusive lock on an open file. It belongs to
// the open file, so it ends with the process, however that ends.
func lockExclusive(f *os.File) error { return flock(f, unix.LOCK_EX) }

// tryExclusive is lockExclusive that does not wait; false when somebody holds
// the lock.
func tryExclusive(f *os.File) (bool, error) { return try(f, unix.LOCK_EX) }

// tryShared takes the shared lock if nobody holds the exclusive one. Those
// who ask this way do not get in each other's way.
func tryShared(f *os.File) (bool, error) { return try(f, unix.LOCK_SH) }

func try(f *os.File, how int) (bool, error) {
	err := flock(f, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// unlock gives any of these locks up.
func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }
