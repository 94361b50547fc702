package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockExclusive waits for the exclusive lock on an open file. It belongs to
// the open file, so it ends with the process, however that ends.
func lockExclusive(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// tryExclusive is lockExclusive that does not wait; false when somebody holds
// the lock.
func tryExclusive(f *os.File) (bool, error) { return try(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// tryShared takes the shared lock if nobody holds the exclusive one. Those
// who ask this way do not get in each other's way.
func tryShared(f *os.File) (bool, error) { return try(f, 0) }

func try(f *os.File, flags uint32) (bool, error) {
	err := lock(f, flags|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

func lock(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
}

// unlock gives any of these locks up.
func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}
