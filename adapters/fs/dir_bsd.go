//go:build unix && !linux

package fs

import "golang.org/x/sys/unix"

// dirFlags open a directory to go through it.
const dirFlags = unix.O_RDONLY | unix.O_NONBLOCK

// mount is not told by these systems; a mount has a device of its own here.
func (d *dir) mount() uint64 { return 0 }
