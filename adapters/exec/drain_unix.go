//go:build unix

package exec

import (
	"os"
	"syscall"
	"time"
)

// maxDrain is more than a pipe holds, in bytes.
const maxDrain = 2 << 20

// drain takes what is in a pipe now, without waiting for more. On a busy
// machine the reader's deadline may pass before it was given the time to
// read what had long come.
func drain(pipe *os.File, take func([]byte)) {
	if pipe.SetReadDeadline(time.Time{}) != nil {
		return
	}
	conn, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	piece := make([]byte, 64<<10)
	for left := maxDrain; left > 0; {
		n := 0
		if conn.Read(func(fd uintptr) bool {
			n, err = syscall.Read(int(fd), piece)
			return true // nothing there is an answer too
		}) != nil || err != nil && err != syscall.EINTR || err == nil && n == 0 {
			return
		}
		if n > 0 {
			take(piece[:n])
			left -= n
		}
	}
}

// rootsOwn reports whether only root, or its group, can change a file or a
// directory.
func rootsOwn(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Uid == 0 && info.Mode().Perm()&0o002 == 0 && (info.Mode().Perm()&0o020 == 0 || st.Gid == 0)
}
