//go:build unix

package exec

import (
	"os"
	"syscall"
	"testing"
)

// leak makes a descriptor one that is inherited, as one that came from the
// program that started us.
func leak(t *testing.T, f *os.File) {
	t.Helper()
	if _, _, no := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0); no != 0 {
		t.Fatal(no)
	}
}
