package porttest

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func ledgerChecks() []check[StoreHarness] {
	return []check[StoreHarness]{
		{"spent-sums", "what an agent's records cost is added up over its sessions, and nobody else's", spentSums},
		{"spent-days", "a day of UTC has its own sum, whatever the clock's zone", spentDays},
		{"spent-with-records", "what an append that failed would have cost is not counted", spentWithRecords},
		{"spent-deleted", "deleting a session does not give the money back", spentDeleted},
		{"spent-reopen", "what was spent is known after the store was opened again", spentReopen},
	}
}

// costs is a record that cost an agent something.
func costs(agent string, amount domain.MicroUSD) domain.Record {
	return domain.AssistantSaid{Turn: "t", Agent: agent, Cost: &amount}
}

func (r *rig) wantSpent(agent string, at time.Time, want domain.MicroUSD) {
	r.t.Helper()
	if got, err := r.store.Spent(r.ctx, agent, at); err != nil || got != want {
		r.t.Errorf("agent %q spent %v on %v, want %v (%v)", agent, got, at.UTC().Format(time.DateOnly), want, err)
	}
}

func spentSums(t TB, h StoreHarness) {
	r := h.open(t)
	a, b := r.create(r.session(1)).ID, r.create(r.session(2)).ID
	now := r.clock.Now()
	r.wantSpent("one", now, 0)
	seven := domain.MicroUSD(7)
	r.append(a, 0, said("free"), costs("one", 5), costs("two", 100), domain.Compacted{Agent: "one", Cost: &seven})
	r.append(b, 0, costs("one", 1000), costs("one", 0), costs("one", -3), costs("", 9), domain.AssistantSaid{Agent: "one"})
	r.wantSpent("one", now, 1012)
	r.wantSpent("two", now, 100)
	r.wantSpent("", now, 0)
	r.wantSpent("tw", now, 0)
}

func spentDays(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	first := r.clock.Now() // 02:30 two hours east of Greenwich, half past midnight of UTC
	r.append(id, 0, costs("one", 1))
	r.clock.advance(23 * time.Hour)
	r.append(id, 1, costs("one", 10)) // the same day of UTC, the next one there
	r.clock.advance(time.Hour)
	second := r.clock.Now()
	r.append(id, 2, costs("one", 100))
	r.wantSpent("one", first.Add(-time.Hour), 0)
	r.wantSpent("one", first, 11)
	r.wantSpent("one", first.In(time.FixedZone("west", -11*60*60)), 11)
	r.wantSpent("one", second, 100)
	r.wantSpent("one", second.Add(24*time.Hour), 0)
}

func spentWithRecords(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	r.append(id, 0, costs("one", 1))
	_, err := r.store.Append(r.ctx, id, 0, costs("one", 10))
	r.wantCode(err, domain.Conflict, "append at an old position")
	_, err = r.store.Append(r.ctx, id, 1, costs("one", 10), said("bad \xff"))
	r.wantCode(err, domain.InvalidArgument, "append of what is not UTF-8")
	_, err = r.store.Append(r.ctx, "none", 0, costs("one", 10))
	r.wantCode(err, domain.SessionNotFound, "append to no session")
	r.wantSpent("one", r.clock.Now(), 1)
}

func spentDeleted(t TB, h StoreHarness) {
	r := h.open(t)
	for n := range 3 {
		id := r.create(r.session(n)).ID
		r.append(id, 0, costs("one", 5))
		if err := r.store.Delete(r.ctx, id); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	r.wantSpent("one", r.clock.Now(), 15)
}

func spentReopen(t TB, h StoreHarness) {
	if h.Reopen == nil {
		t.Skipf("nothing outlives this store")
	}
	r := h.open(t)
	id := r.create(r.session(1)).ID
	for n := range 2 {
		r.append(id, domain.Seq(n), costs("one", 5))
		if err := r.store.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		_, err := r.store.Spent(r.ctx, "one", r.clock.Now())
		r.wantCode(err, domain.StoreUnavailable, fmt.Sprint("asking a closed store, time ", n+1))
		r.store = h.Reopen(t, r.store, r.clock.Now)
		r.wantSpent("one", r.clock.Now(), domain.MicroUSD(5*(n+1)))
	}
}
