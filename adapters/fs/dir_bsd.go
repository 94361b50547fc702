//go:build unix && !linux

package fs

import "golang.org/x/sys/unix"

// dirFlags open a directory to go through it.
const dirFlags = unix.O_RDONLY | unix.O_NONBLOCK
