package turns

import (
	"context"
	"errors"
	"sync"

	"github.com/berth-dev/berth/core/domain"
)

// errSealed is what a producer gets that outlived its turn.
var errSealed = errors.New("the turn has ended")

// emitter sends a turn's updates in order and keeps account of the calls that
// were announced and have no final status yet. Once sealed it lets nothing
// through, so that no update can follow the response.
type emitter struct {
	t *turn

	mu     sync.Mutex
	sealed bool
	open   []domain.CallID
}

func newEmitter(t *turn) *emitter { return &emitter{t: t} }

// send sends one update. A late one is reported to the observer and dropped.
func (m *emitter) send(ctx context.Context, u domain.Update) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sealed {
		m.t.e.trouble(ctx, m.t.sid, "turns: late update", errSealed)
		return errSealed
	}
	switch u := u.(type) {
	case domain.CallOpened:
		m.open = append(m.open, u.ID)
	case domain.CallChanged:
		if u.Status.Final() {
			m.forget(u.ID)
		}
	}
	return m.t.live.Client().Send(ctx, m.t.sid, u)
}

func (m *emitter) forget(id domain.CallID) {
	for i, o := range m.open {
		if o == id {
			m.open = append(m.open[:i], m.open[i+1:]...)
			return
		}
	}
}

// record journals records and then tells the client what follows from them.
func (m *emitter) record(ctx context.Context, recs ...domain.Record) error {
	if err := m.t.live.AppendIf(ctx, m.unsealed, recs...); err != nil {
		return err
	}
	for _, rec := range recs {
		for _, u := range domain.Updates(rec) {
			if err := m.send(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *emitter) unsealed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sealed {
		return errSealed
	}
	return nil
}

// unfinished returns the calls that were announced and have no final status.
func (m *emitter) unfinished() []domain.CallID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]domain.CallID(nil), m.open...)
}

// close reports every open call as failed, seals, and returns those calls.
func (m *emitter) close(ctx context.Context) []domain.CallID {
	m.mu.Lock()
	defer m.mu.Unlock()
	open := m.open
	m.open = nil
	for _, id := range open {
		_ = m.t.live.Client().Send(ctx, m.t.sid, domain.CallChanged{
			ID: id, Status: domain.CallFailed,
			Content: []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: "Cancelled; it did not stop in time and was left behind."}}},
		})
	}
	m.sealed = true
	return open
}

// seal lets nothing more through.
func (m *emitter) seal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sealed = true
}
