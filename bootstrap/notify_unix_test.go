//go:build unix

package bootstrap

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestServiceManager_Stuck: one that does not read what it is told holds
// nobody up.
func TestServiceManager_Stuck(t *testing.T) {
	dir, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"}
	l, err := net.ListenUnixgram("unixgram", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// What one sender may have under way can be less than what the reader has
	// room for: it is full when a sender that has nothing under way must wait.
	for room := true; room; {
		full, err := net.DialUnix("unixgram", nil, at)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		raw, err := full.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		err = raw.Write(func(fd uintptr) bool {
			for err := error(nil); err == nil || errors.Is(err, syscall.EINTR); {
				if _, err = syscall.Write(int(fd), make([]byte, 1<<10)); err == nil {
					sent++
				}
			}
			return true // it does not wait
		})
		if err != nil {
			t.Fatal(err)
		}
		room = sent > 0
	}
	told := make(chan error, 1)
	go func() { told <- (serviceManager{socket: at.Name}).leaving(time.Second) }() // ends with its limit
	select {
	case err := <-told:
		if err == nil {
			t.Error("it was told, though it had no room")
		}
	case <-time.After(patience):
		t.Error("the end waits for a manager that does not read")
	}
}
