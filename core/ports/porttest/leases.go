package porttest

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Leases proves a ports.Leases. Most cases need a harness that can open
// another process's store over the same data (Other).
func Leases(t TB, h StoreHarness) {
	t.Helper()
	runChecks(t, h, leaseChecks())
}

// leaseChecks returns every case of the suite.
func leaseChecks() []check[StoreHarness] {
	return []check[StoreHarness]{
		{"lease-again", "taking a session again, or giving up what one does not hold, is no operation", leaseAgain},
		{"lease-one-owner", "a session has one live owner; the second is told, other sessions are free", leaseOneOwner},
		{"lease-release", "a session that was given up is free for everyone", leaseRelease},
		{"lease-release-foreign", "nobody can give up what another one holds", leaseReleaseForeign},
		{"lease-fences-append", "only the owner may write to a journal", leaseFencesAppend},
		{"lease-race", "of many that want a free session at once exactly one gets it", leaseRace},
		{"lease-close", "an owner that ends in order leaves its sessions free", leaseClose},
		{"lease-crash", "an owner that is killed loses its sessions at once, whatever it left behind", leaseCrash},
		{"lease-delete", "a deleted session leaves no lease behind", leaseDelete},
		{"lease-cancelled", "a cancelled context takes nothing", leaseCancelled},
	}
}

// pair opens two stores over the same data.
func (h StoreHarness) pair(t TB) (*rig, ports.Store) {
	t.Helper()
	if h.Other == nil {
		t.Skipf("this store cannot be shared")
	}
	r := h.open(t)
	other := h.Other(t, r.store)
	t.Cleanup(func() { other.Close() })
	return r, other
}

func (r *rig) acquire(s ports.Store, id domain.SessionID) {
	r.t.Helper()
	if err := s.Acquire(r.ctx, id); err != nil {
		r.t.Fatalf("acquire %s: %v", id, err)
	}
}

func (r *rig) release(s ports.Store, id domain.SessionID) {
	r.t.Helper()
	if err := s.Release(r.ctx, id); err != nil {
		r.t.Fatalf("release %s: %v", id, err)
	}
}

// wantActive checks that s is refused a session and told which one.
func (r *rig) wantActive(s ports.Store, id domain.SessionID) {
	r.t.Helper()
	err := s.Acquire(r.ctx, id)
	r.wantCode(err, domain.SessionActive, "acquire of a session another process has")
	var e *domain.Error
	if errors.As(err, &e) && (len(e.Details) == 0 || e.Details[0].Value != string(id)) {
		r.t.Errorf("the error does not name the session %s: %+v", id, e.Details)
	}
}

func leaseAgain(t TB, h StoreHarness) {
	r := h.open(t)
	a, b := r.create(r.session(1)).ID, r.create(r.session(2)).ID
	r.acquire(r.store, a)
	r.acquire(r.store, a)
	r.append(a, 0, said("one"))
	r.release(r.store, b)
	r.release(r.store, "none")
	r.release(r.store, a)
	r.release(r.store, a)
	r.acquire(r.store, a)
}

func leaseOneOwner(t TB, h StoreHarness) {
	r, other := h.pair(t)
	a, b := r.create(r.session(1)).ID, r.create(r.session(2)).ID
	r.acquire(r.store, a)
	r.wantActive(other, a)
	r.acquire(other, b)
	r.wantActive(r.store, b)
	r.acquire(r.store, a)
	r.wantActive(other, a)
	if _, err := other.Load(r.ctx, a); err != nil {
		t.Errorf("load of a session another process has: %v", err)
	}
}

func leaseRelease(t TB, h StoreHarness) {
	r, other := h.pair(t)
	id := r.create(r.session(1)).ID
	for range 3 {
		r.acquire(r.store, id)
		r.wantActive(other, id)
		r.release(r.store, id)
		r.acquire(other, id)
		r.wantActive(r.store, id)
		r.release(other, id)
	}
}

func leaseReleaseForeign(t TB, h StoreHarness) {
	r, other := h.pair(t)
	id := r.create(r.session(1)).ID
	r.acquire(r.store, id)
	r.release(other, id)
	r.wantActive(other, id)
	r.append(id, 0, said("still mine"))
}

func leaseFencesAppend(t TB, h StoreHarness) {
	r, other := h.pair(t)
	id := r.create(r.session(1)).ID
	if _, err := other.Append(r.ctx, id, 0, said("nobody owns it")); err != nil {
		t.Fatalf("append to a free session: %v", err)
	}
	r.acquire(r.store, id)
	before := r.load(id)
	_, err := other.Append(r.ctx, id, 1, said("no"), domain.TitleSet{Title: "no"})
	r.wantCode(err, domain.Conflict, "append to a session another process has")
	r.wantSame(r.load(id), before, "the session")
	r.append(id, 1, said("mine"))
	r.release(r.store, id)
	r.acquire(other, id)
	_, err = r.store.Append(r.ctx, id, 2, said("late"))
	r.wantCode(err, domain.Conflict, "append of the owner before")
	r.wantEntries(id, said("nobody owns it"), said("mine"))
}

func leaseRace(t TB, h StoreHarness) {
	r, other := h.pair(t)
	for n := range 20 {
		id := r.create(r.session(n)).ID
		var won atomic.Int32
		var wg sync.WaitGroup
		for _, s := range []ports.Store{r.store, other} {
			wg.Go(func() {
				switch err := s.Acquire(r.ctx, id); {
				case err == nil:
					won.Add(1)
				case !domain.HasCode(err, domain.SessionActive):
					t.Errorf("acquire: %v", err)
				}
			})
		}
		wg.Wait()
		if got := won.Load(); got != 1 {
			t.Errorf("session %d: %d of two got the lease", n, got)
		}
	}
}

func leaseClose(t TB, h StoreHarness) {
	r, other := h.pair(t)
	a, b := r.create(r.session(1)).ID, r.create(r.session(2)).ID
	r.acquire(other, a)
	r.acquire(other, b)
	r.wantActive(r.store, a)
	if err := other.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	r.append(a, 0, said("free"))
	r.acquire(r.store, a)
	r.acquire(r.store, b)
}

func leaseCrash(t TB, h StoreHarness) {
	r, _ := h.pair(t)
	if h.Crash == nil {
		t.Skipf("this store cannot be made to crash")
	}
	id := r.create(r.session(1)).ID
	for n := range 3 {
		victim := h.Other(t, r.store)
		r.acquire(victim, id)
		if _, err := victim.Append(r.ctx, id, domain.Seq(n), said("of the victim")); err != nil {
			t.Fatalf("append: %v", err)
		}
		r.wantActive(r.store, id)
		h.Crash(t, victim)
		r.acquire(r.store, id)
		r.release(r.store, id)
	}
	if n := len(r.entries(id, 0)); n != 3 {
		t.Errorf("the journal holds %d records, want the 3 of the killed owners", n)
	}
}

func leaseDelete(t TB, h StoreHarness) {
	r, other := h.pair(t)
	row := r.create(r.session(1))
	r.acquire(r.store, row.ID)
	if err := r.store.Delete(r.ctx, row.ID); err != nil {
		t.Fatalf("delete: %v", err)
	}
	r.release(r.store, row.ID)
	r.create(row)
	r.acquire(other, row.ID)
}

func leaseCancelled(t TB, h StoreHarness) {
	r, other := h.pair(t)
	id := r.create(r.session(1)).ID
	mine := errors.New("mine")
	if err := r.store.Acquire(cancelledWith(r, mine), id); !errors.Is(err, mine) {
		t.Errorf("acquire with a cancelled context returned %v", err)
	}
	r.acquire(other, id)
	if err := other.Release(cancelledWith(r, mine), id); !errors.Is(err, mine) {
		t.Errorf("release with a cancelled context returned %v", err)
	}
	r.wantActive(r.store, id)
}
