package memory_test

import (
	"testing"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func harness() porttest.StoreHarness {
	return porttest.StoreHarness{
		Open:  func(_ porttest.TB, clock ports.Clock) ports.Store { return memory.New(clock) },
		Other: func(_ porttest.TB, s ports.Store) ports.Store { return s.(*memory.Store).Other() },
		// Memory ends with its process: what a killed owner leaves behind is
		// what a closed one does.
		Crash: func(_ porttest.TB, s ports.Store) { s.Close() },
	}
}

func TestStore(t *testing.T)  { porttest.Store(porttest.T(t), harness()) }
func TestLeases(t *testing.T) { porttest.Leases(porttest.T(t), harness()) }
