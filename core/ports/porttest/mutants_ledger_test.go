package porttest

import (
	"context"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// faultyLedger keeps sums of its own, by what key makes of an agent and a day.
type faultyLedger struct {
	sums map[string]domain.MicroUSD
	key  func(agent string, t time.Time) string
}

func (l *faultyLedger) add(recs []domain.Record, t time.Time) {
	for _, r := range recs {
		if agent, cost := domain.Spending(r); cost > 0 {
			l.sums[l.key(agent, t)] += cost
		}
	}
}

func (l *faultyLedger) spent(_ context.Context, agent string, t time.Time) (domain.MicroUSD, error) {
	return l.sums[l.key(agent, t)], nil
}

func utcDay(agent string, t time.Time) string { return agent + t.UTC().Format(time.DateOnly) }

// keeping replaces the ledger of a store. Records are counted before or after
// the store took them.
func keeping(f *faulty, l *faultyLedger, first bool) {
	l.sums = make(map[string]domain.MicroUSD)
	f.spent = l.spent
	f.append = func(ctx context.Context, id domain.SessionID, after domain.Seq, recs []domain.Record) (domain.Seq, error) {
		if first {
			l.add(recs, f.clock())
		}
		pos, err := f.Store.Append(ctx, id, after, recs...)
		if err == nil && !first {
			l.add(recs, f.clock())
		}
		return pos, err
	}
}

func ledgerFaults() map[string]func(*faulty) {
	return map[string]func(*faulty){
		"spent-sums": func(f *faulty) {
			keeping(f, &faultyLedger{key: func(_ string, t time.Time) string { return utcDay("", t) }}, false)
		},
		"spent-days": func(f *faulty) {
			keeping(f, &faultyLedger{key: func(agent string, t time.Time) string { return agent + t.Format(time.DateOnly) }}, false)
		},
		"spent-with-records": func(f *faulty) { keeping(f, &faultyLedger{key: utcDay}, true) },
		"spent-deleted": func(f *faulty) {
			l := &faultyLedger{key: utcDay}
			keeping(f, l, false)
			f.del = func(ctx context.Context, id domain.SessionID) error {
				for e := range f.Store.Records(ctx, id, 0) {
					if agent, cost := domain.Spending(e.Record); cost > 0 {
						l.sums[utcDay(agent, f.clock())] -= cost
					}
				}
				return f.Store.Delete(ctx, id)
			}
		},
		"spent-reopen": func(f *faulty) { keeping(f, &faultyLedger{key: utcDay}, false) }, // each opening begins at 0
	}
}
