package fs

import "golang.org/x/sys/unix"

// dirFlags open a directory only to go through it, which needs no right to
// list it.
const dirFlags = unix.O_PATH
