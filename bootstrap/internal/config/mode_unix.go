//go:build unix

package config

import (
	"io/fs"
	"syscall"
)

// othersMayWrite reports whether anyone but the owner can change a file. A
// group that has the owner's number is taken for his private one, as systems
// with umask 002 have it.
func othersMayWrite(info fs.FileInfo) bool {
	mode := info.Mode().Perm()
	if mode&0o002 != 0 {
		return true
	}
	if mode&0o020 == 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Gid != st.Uid || st.Uid == 0
}

// othersMayRead reports whether anyone but the owner can read or change a
// file.
func othersMayRead(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
