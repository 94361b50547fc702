package fs

import "golang.org/x/sys/unix"

// renameNew gives the file from the name to in one step, unless to exists.
// Some file systems cannot; their error is not ErrExist.
func renameNew(fd int, from, to string) error {
	return unix.Renameat2(fd, from, fd, to, unix.RENAME_NOREPLACE)
}
