//go:build unix

package bootstrap

import "golang.org/x/sys/unix"

// openFiles is how many files the process may have open, 0 when nothing says.
func openFiles() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on FreeBSD
}
