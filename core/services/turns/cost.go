package turns

import "github.com/berth-dev/berth/core/domain"

// costOf is what a request cost: what the provider says, else what its counts
// come to by the model's prices; nil when neither is known.
func costOf(info domain.ModelInfo, ev domain.UsageReported) *domain.MicroUSD {
	if ev.Cost != nil {
		return ev.Cost
	}
	if cost, ok := info.Cost(ev.Usage); ok {
		return &cost
	}
	return nil
}

// priced adds to an update what the session has cost so far.
func (t *turn) priced(u domain.Update) domain.Update {
	usage, ok := u.(domain.UsageChanged)
	if !ok {
		return u
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	usage.Cost = t.cost.Cost()
	return usage
}
