package turns

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

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

// affordable refuses a request when what the operator allows the agent to cost
// is spent, and warns the person once when most of it is. What a provider did
// not count, and what has no price, costs nothing here.
func (t *turn) affordable(ctx context.Context) error {
	agent := t.view.Agent
	if limit := agent.MaxCostPerSession; limit > 0 {
		t.mu.Lock()
		spent := domain.MicroUSD(0)
		if t.cost != nil {
			spent = *t.cost
		}
		t.mu.Unlock()
		if err := t.within(ctx, spent, limit, "This session", "max_cost_per_session", "or begin a new session"); err != nil {
			return err
		}
	}
	if limit := agent.MaxCostPerDay; limit > 0 {
		now := t.e.p.Clock().UTC()
		spent, err := t.e.p.Ledger.Spent(ctx, agent.Alias, now)
		if err != nil {
			return err
		}
		return t.within(ctx, spent, limit, "Agent "+agent.Alias+" on "+now.Format(time.DateOnly), "max_cost_per_day", "or wait until midnight (UTC)")
	}
	return nil
}

// within checks one limit. who names what has cost that much.
func (t *turn) within(ctx context.Context, spent, limit domain.MicroUSD, who, setting, instead string) error {
	setting = "agents." + t.view.Agent.Alias + "." + setting
	switch {
	case spent >= limit:
		return domain.Errorf(domain.CostLimit, "%s has cost %s, and %s allows %s: raise it, %s", who, spent, setting, limit, instead).
			With("setting", setting).With("spentMicroUSD", int64(spent)).With("limitMicroUSD", int64(limit))
	case spent > 0 && spent >= limit/10*8 && t.live.First(ctx, who+setting):
		return t.emit.send(t.telling, domain.Notice{
			Severity: "warning", Title: fmt.Sprintf("%s has cost %s of the %s allowed", who, spent, limit),
			Detail: fmt.Sprintf("At %s the agent stops; %s sets it.", limit, setting),
		})
	}
	return nil
}
