package sqlite

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// TestWriter_NamesWhoIsInTheWay: a process that was stopped in the middle of a
// transaction is named, so that somebody can wake or end it.
func TestWriter_NamesWhoIsInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, err := Open(t.Context(), Config{Path: path, Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id := mustCreate(t, s, 1)
	lock := startChild(t, "lock", path)
	lock.want("locked")
	wants := func(words string) {
		t.Helper()
		_, err := s.Append(t.Context(), id, 0, said("x"))
		if !domain.HasCode(err, domain.StoreUnavailable) || !strings.Contains(fmt.Sprint(err), words) {
			t.Errorf("it says %v, want %q", err, words)
		}
	}
	wants(fmt.Sprintf("by another process (process %d, %q), for 50ms", lock.cmd.Process.Pid, "sqlite.test"))
	if err := lock.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is stopped", func() bool { return strings.Contains(describe(lock.cmd.Process.Pid), "stopped") })
	wants(`"sqlite.test", which is stopped), for 50ms`)
	lock.kill()
	if _, err := s.Append(t.Context(), id, 0, said("x")); err != nil {
		t.Errorf("append when it is gone: %v", err)
	}
}

func TestHolder_ReadsTheKernelsList(t *testing.T) {
	for line, want := range map[string]int{
		"1: POSIX  ADVISORY  WRITE 4711 08:01:99 120 120":    4711,
		"1: POSIX  ADVISORY  WRITE 4711 08:01:99 120 127":    4711,
		"1: POSIX  ADVISORY  WRITE 4711 08:01:99 0 EOF":      4711,
		"1: POSIX  ADVISORY  WRITE 4711 08:01:99 121 127":    0,
		"1: POSIX  ADVISORY  WRITE 4711 08:01:99 100 119":    0,
		"1: POSIX  ADVISORY  WRITE 4711 08:01:199 120 120":   0,
		"1: POSIX  ADVISORY  READ  4711 08:01:99 120 120":    0,
		"1: FLOCK  ADVISORY  WRITE 4711 08:01:99 0 EOF":      0,
		"1: -> POSIX  ADVISORY  WRITE 4711 08:01:99 120 120": 0,
		"1: POSIX  ADVISORY  WRITE x 08:01:99 120 120":       0,
		"1: POSIX  ADVISORY  WRITE 4711 99 120":              0,
		"":                                                   0,
	} {
		if got := writerIn(strings.Fields(line), 99); got != want {
			t.Errorf("%q is about process %d, want %d", line, got, want)
		}
	}
}
