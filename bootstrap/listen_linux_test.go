package bootstrap

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestListenUnix_Busy: a socket whose program has no room for another
// connection now is not one that was left behind.
func TestListenUnix_Busy(t *testing.T) {
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	full := false
	for range 10 {
		c, err := net.Dial("unix", path)
		if err != nil {
			full = true
			break
		}
		defer c.Close()
	}
	if !full {
		t.Fatal("it has room without end")
	}
	before, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := listenUnix(path)
	if err == nil {
		_ = l.Close()
		t.Error("it was taken for a dead one's")
	}
	if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the socket of a program that runs was replaced: %v", err)
	}
}
