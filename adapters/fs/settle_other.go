//go:build unix && !linux && !darwin

package fs

import "golang.org/x/sys/unix"

// renameNew is not offered by this system.
func renameNew(int, string, int, string) error { return unix.ENOTSUP }
