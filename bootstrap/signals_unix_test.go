//go:build unix

package bootstrap

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// TestDaemonChannels: signals that ask for a reload, however many, hide none
// that asks for the end.
func TestDaemonChannels(t *testing.T) {
	ends, reloads, stop := daemonChannels()
	defer stop()
	seen := make(chan os.Signal, 16)
	signal.Notify(seen, syscall.SIGHUP, syscall.SIGTERM)
	defer signal.Stop(seen)
	send := func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		select {
		case <-seen:
		case <-time.After(patience):
			t.Fatalf("%v did not arrive", sig)
		}
	}
	for range 5 {
		send(syscall.SIGHUP)
	}
	send(syscall.SIGTERM)
	for name, c := range map[os.Signal]<-chan os.Signal{syscall.SIGTERM: ends, syscall.SIGHUP: reloads} {
		select {
		case sig := <-c:
			if sig != name {
				t.Errorf("%v came in the place of %v", sig, name)
			}
		case <-time.After(patience):
			t.Errorf("%v was lost", name)
		}
	}
}
