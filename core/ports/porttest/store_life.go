package porttest

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/core/domain"
)

func lifeChecks() []check[StoreHarness] {
	return []check[StoreHarness]{
		{"durable", "the store says truly whether sessions outlive the process", durable},
		{"reopen", "what was acknowledged is there after the store was closed and opened again", reopen},
		{"shared", "two processes over one store see each other's sessions and records at once", shared},
		{"closed", "a closed store says so and closing it again does no harm", closed},
	}
}

func durable(t TB, h StoreHarness) {
	r := h.open(t)
	if got, want := r.store.Durable(), h.Reopen != nil; got != want {
		t.Errorf("Durable is %v, but the harness can reopen: %v", got, want)
	}
}

func reopen(t TB, h StoreHarness) {
	if h.Reopen == nil {
		t.Skipf("nothing outlives this store")
	}
	r := h.open(t)
	rows := []domain.Session{r.create(r.session(1)), r.create(r.session(2)), r.create(r.session(3))}
	var want []domain.Record
	for _, rec := range recordTypes() {
		want = append(want, filled(rec, 1))
	}
	r.append(rows[0].ID, 0, want...)
	if err := r.store.Update(r.ctx, rows[1].ID, func(s *domain.Session) error { s.Title = "changed"; return nil }); err != nil {
		t.Fatalf("update: %v", err)
	}
	if err := r.store.Delete(r.ctx, rows[2].ID); err != nil {
		t.Fatalf("delete: %v", err)
	}
	first, second := r.load(rows[0].ID), r.load(rows[1].ID)
	for range 2 {
		if err := r.store.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		r.store = h.Reopen(t, r.store, r.clock.Now)
		r.wantSame(r.load(rows[0].ID), first, "the first session")
		r.wantSame(r.load(rows[1].ID), second, "the second session")
		_, err := r.store.Load(r.ctx, rows[2].ID)
		r.wantCode(err, domain.SessionNotFound, "load of the deleted session")
		r.wantEntries(rows[0].ID, want...)
	}
	r.append(rows[0].ID, domain.Seq(len(want)), said("more"))
	r.wantEntries(rows[0].ID, append(want, said("more"))...)
}

func shared(t TB, h StoreHarness) {
	if h.Other == nil {
		t.Skipf("this store cannot be shared")
	}
	r := h.open(t)
	row := r.create(r.session(1))
	other := *r
	other.store = h.Other(t, r.store)
	defer other.store.Close()
	r.wantSame(other.load(row.ID), row, "the session seen by another process")
	var want []domain.Record
	for i := range 10 {
		writer := []*rig{r, &other}[i%2]
		rec := said(fmt.Sprint(i))
		writer.append(row.ID, domain.Seq(i), rec)
		want = append(want, rec)
		r.wantEntries(row.ID, want...)
		other.wantEntries(row.ID, want...)
	}
	_, err := other.store.Append(r.ctx, row.ID, 3, said("late"))
	r.wantCode(err, domain.Conflict, "append of another process at an old position")
	if err := other.store.Delete(r.ctx, row.ID); err != nil {
		t.Fatalf("delete: %v", err)
	}
	_, err = r.store.Append(r.ctx, row.ID, 10, said("late"))
	r.wantCode(err, domain.SessionNotFound, "append to what another process deleted")
}

func closed(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	for range 2 {
		if err := r.store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	ctx := context.WithoutCancel(r.ctx)
	_, err := r.store.Load(ctx, row.ID)
	r.wantCode(err, domain.StoreUnavailable, "load from a closed store")
	_, err = r.store.Append(ctx, row.ID, 0, said("late"))
	r.wantCode(err, domain.StoreUnavailable, "append to a closed store")
	_, err = r.store.List(ctx, domain.SessionQuery{})
	r.wantCode(err, domain.StoreUnavailable, "list of a closed store")
	for _, err := range r.store.Records(ctx, row.ID, 0) {
		r.wantCode(err, domain.StoreUnavailable, "records of a closed store")
	}
}
