//go:build unix

package bootstrap

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// takeStdout keeps the real standard output for the protocol alone: it
// returns a private descriptor that no child inherits, and points descriptor
// 1, and with it everything that prints, at standard error. os.Stdout stays
// what it is, a file on descriptor 1: were it replaced, the collector would
// close that descriptor one day, and the next file opened, be it the store's,
// would get the number and all that is printed.
func takeStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("keep standard output for the protocol: %w", err)
	}
	if err := dup2(2, 1); err != nil {
		return nil, fmt.Errorf("point standard output at standard error: %w", err)
	}
	return os.NewFile(uintptr(fd), "acp-stdout"), nil
}
