package fs

import "golang.org/x/sys/unix"

// renameNew gives what is called from a name in the directory to in one step,
// unless it exists there.
// Some file systems cannot; their error is not ErrExist.
func renameNew(fd int, from string, to int, name string) error {
	return unix.Renameat2(fd, from, to, name, unix.RENAME_NOREPLACE)
}
