package metrics

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Store returns a store whose appends are counted and timed.
func (m *Metrics) Store(s ports.Store) ports.Store { return &timed{Store: s, m: m} }

// timed is a store that is timed.
type timed struct {
	ports.Store
	m *Metrics
}

// Append appends to the store behind.
func (t *timed) Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error) {
	start := time.Now()
	pos, err := t.Store.Append(ctx, id, after, recs...)
	took := time.Since(start)
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	outcome := "ok"
	if err != nil {
		outcome = code(err)
	}
	t.m.at(t.m.appends, outcome).add(1)
	t.m.at(t.m.appendSeconds).took(took)
	return pos, err
}
