//go:build unix && !linux

package fs

import "golang.org/x/sys/unix"

// mountScratch is for Linux.
func mountScratch(string) error { return unix.ENOTSUP }
