//go:build linux || darwin

package fs

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// keepExtended copies what extended attributes the system lets us copy, such
// as access control lists, from one open file to another. A larger set than
// 64 KiB is left out.
func keepExtended(from, to *os.File) {
	names := make([]byte, 64<<10)
	n, err := unix.Flistxattr(int(from.Fd()), names)
	if err != nil || n == 0 {
		return
	}
	value := make([]byte, 64<<10)
	for name := range bytes.SplitSeq(bytes.TrimRight(names[:n], "\x00"), []byte{0}) {
		size, err := unix.Fgetxattr(int(from.Fd()), string(name), value)
		if err != nil {
			continue
		}
		_ = unix.Fsetxattr(int(to.Fd()), string(name), value[:size], 0)
	}
}
