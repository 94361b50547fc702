package turns_test

import (
	"fmt"
	"testing"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// The fakes of these tests keep the contracts of their ports, so that what the
// tests show holds with real adapters.

func TestModel_Conformance(t *testing.T) {
	porttest.Model(porttest.Bubble(t), porttest.ModelHarness{Open: func(porttest.TB) (ports.Model, []domain.ModelRequest) {
		m := &model{}
		m.play(says("hello"))
		return m, []domain.ModelRequest{porttest.SampleRequest(), porttest.SampleHistory()}
	}})
}

func TestStore_Conformance(t *testing.T) {
	porttest.Store(porttest.T(t), porttest.StoreHarness{
		Open: func(_ porttest.TB, clock ports.Clock) ports.Store { return &store{Store: memory.New(clock)} },
	})
	porttest.Leases(porttest.T(t), porttest.StoreHarness{
		Open:  func(_ porttest.TB, clock ports.Clock) ports.Store { return memory.New(clock) },
		Other: func(_ porttest.TB, s ports.Store) ports.Store { return s.(*memory.Store).Other() },
	})
}

func TestObserver_Conformance(t *testing.T) {
	porttest.Observer(porttest.T(t), porttest.ObserverHarness{Asked: true, Open: func(porttest.TB) (ports.Observer, func() string) {
		o := &observer{}
		return o, func() string { return fmt.Sprintf("%+v", o.events) }
	}})
}
