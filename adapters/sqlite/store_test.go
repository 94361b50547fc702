package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func harness() porttest.StoreHarness {
	open := func(t porttest.TB, path string, clock ports.Clock) ports.Store {
		s, err := Open(t.Context(), Config{Path: path, Clock: clock})
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return s
	}
	return porttest.StoreHarness{
		Open: func(t porttest.TB, clock ports.Clock) ports.Store {
			return open(t, filepath.Join(t.TempDir(), "sessions", "acp-sessions.db"), clock)
		},
		Reopen: func(t porttest.TB, s ports.Store, clock ports.Clock) ports.Store {
			return open(t, s.(*Store).path, clock)
		},
		Other: func(t porttest.TB, s ports.Store) ports.Store {
			return open(t, s.(*Store).path, nil)
		},
		Crash: func(_ porttest.TB, s ports.Store) { s.(*Store).crash() },
	}
}

func TestStore(t *testing.T)  { porttest.Store(porttest.T(t), harness()) }
func TestLeases(t *testing.T) { porttest.Leases(porttest.T(t), harness()) }

// crash does what the kernel does for a killed process: it closes the files.
func (s *Store) crash() {
	s.self.mu.Lock()
	if s.self.file != nil {
		s.self.file.Close()
		s.self.file = nil // so that Close releases nothing
	}
	s.self.mu.Unlock()
	s.Close()
}
