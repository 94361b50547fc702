package porttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

func journalChecks() []check[StoreHarness] {
	return []check[StoreHarness]{
		{"append-positions", "positions count from 1 and every append tells the new one", appendPositions},
		{"append-nothing", "appending no records is no operation", appendNothing},
		{"append-missing", "records of an unknown session are refused and make no session", appendMissing},
		{"append-conflict", "a writer holding an old position must be told, not merged", appendConflict},
		{"append-all-or-none", "records of one append are there all or not at all", appendAllOrNone},
		{"append-row", "an append moves the session's time and applies a title, with the records", appendRow},
		{"append-clock-back", "a clock that jumps back does not take a session out of its place", appendClockBack},
		{"append-concurrent", "concurrent appends keep each session's order and lose nothing", appendConcurrent},
		{"records-middle", "reading goes on from any position", recordsMiddle},
		{"records-stamp", "a record carries the time of its append", recordsStamp},
		{"records-as-of-start", "a reader sees the journal as of the moment it started", recordsAsOfStart},
		{"records-break", "leaving the loop early releases everything", recordsBreak},
		{"records-inside", "the store can be used inside the loop", recordsInside},
		{"records-missing", "the journal of an unknown session is an error, not an empty history", recordsMissing},
		{"records-cancel", "a reader whose context ended is told, and only once", recordsCancel},
		{"cancelled", "a cancelled context leaves nothing half-written", cancelledLeavesNothing},
	}
}

func appendPositions(t TB, h StoreHarness) {
	r := h.open(t)
	a, b := r.create(r.session(1)).ID, r.create(r.session(2)).ID
	var want []domain.Record
	for i, n := range []int{1, 2, 3, 1, 70} {
		recs := saidN(fmt.Sprint(i, "-"), n)
		if pos := r.append(a, domain.Seq(len(want)), recs...); pos != domain.Seq(len(want)+n) {
			t.Errorf("%d records after %d gave the position %d", n, len(want), pos)
		}
		want = append(want, recs...)
		r.append(b, domain.Seq(i), said(fmt.Sprint(i)))
	}
	r.wantEntries(a, want...)
	if got := len(r.entries(b, 0)); got != 5 {
		t.Errorf("the other session holds %d records, want 5", got)
	}
}

func appendNothing(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	r.append(row.ID, 0, said("one"))
	before := r.load(row.ID)
	r.clock.advance(time.Hour)
	if pos := r.append(row.ID, 1); pos != 1 {
		t.Errorf("appending nothing gave the position %d, want 1", pos)
	}
	r.wantSame(r.load(row.ID), before, "the session")
	r.wantEntries(row.ID, said("one"))
}

func appendMissing(t TB, h StoreHarness) {
	r := h.open(t)
	_, err := r.store.Append(r.ctx, "none", 0, said("x"))
	r.wantCode(err, domain.SessionNotFound, "append")
	_, err = r.store.Load(r.ctx, "none")
	r.wantCode(err, domain.SessionNotFound, "load")
}

func appendConflict(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	r.append(row.ID, 0, said("one"), said("two"))
	before := r.load(row.ID)
	r.clock.advance(time.Hour)
	for _, after := range []domain.Seq{0, 1, 3, -1, 1 << 40} {
		_, err := r.store.Append(r.ctx, row.ID, after, said("late"), domain.TitleSet{Title: "late"})
		r.wantCode(err, domain.Conflict, fmt.Sprintf("append after %d of 2", after))
	}
	r.wantEntries(row.ID, said("one"), said("two"))
	r.wantSame(r.load(row.ID), before, "the session")
}

func appendAllOrNone(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	r.append(row.ID, 0, said("one"))
	before := r.load(row.ID)
	r.clock.advance(time.Hour)
	_, err := r.store.Append(r.ctx, row.ID, 1, domain.TitleSet{Title: "no"}, said("good"), said("bad \xff"), said("good"))
	r.wantCode(err, domain.InvalidArgument, "append of four records, one not UTF-8")
	_, err = r.store.Append(r.ctx, row.ID, 1, said("good"), nil)
	r.wantCode(err, domain.InvalidArgument, "append of a nil record")
	r.wantEntries(row.ID, said("one"))
	r.wantSame(r.load(row.ID), before, "the session")
	r.append(row.ID, 1, said("two"))
}

func appendRow(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	r.clock.advance(time.Hour)
	r.append(row.ID, 0, said("one"))
	want := row
	want.UpdatedAt = micro(r.clock.Now())
	r.wantSame(r.load(row.ID), want, "the session after an append")
	r.clock.advance(time.Hour)
	r.append(row.ID, 1, domain.TitleSet{Title: "first"}, said("two"), domain.TitleSet{Title: "second 🚢"})
	want.UpdatedAt, want.Title = micro(r.clock.Now()), "second 🚢"
	r.wantSame(r.load(row.ID), want, "the session after a title was set twice")
	r.append(row.ID, 4, domain.TitleSet{})
	want.Title = ""
	r.wantSame(r.load(row.ID), want, "the session after the title was taken away")
}

func appendClockBack(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	r.clock.advance(time.Hour)
	r.append(row.ID, 0, said("one"))
	newest := r.load(row.ID).UpdatedAt
	r.clock.advance(-24 * 365 * time.Hour)
	r.append(row.ID, 1, said("two"))
	if got := r.load(row.ID).UpdatedAt; got.Before(newest) {
		t.Errorf("the session's time went back from %v to %v", newest, got)
	}
	r.wantEntries(row.ID, said("one"), said("two"))
}

// appendConcurrent has writers race for shared sessions, each retrying from
// the position a conflict leaves it with.
func appendConcurrent(t TB, h StoreHarness) {
	const sessions, writers, each = 3, 4, 15
	r := h.open(t)
	errs := make(chan error, sessions*writers)
	var wg sync.WaitGroup
	for s := range sessions {
		id := r.create(r.session(s)).ID
		for w := range writers {
			wg.Go(func() { errs <- insist(r.ctx, r.store, id, fmt.Sprint(w, ":"), each) })
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatalf("append: %v", err)
		}
	}
	for s := range sessions {
		r.wantInterleaved(r.session(s).ID, writers, each)
	}
}

// insist appends "prefix1" to "prefixN" two by two, reading on after each
// conflict.
func insist(ctx context.Context, store ports.Store, id domain.SessionID, prefix string, n int) error {
	pos := domain.Seq(0)
	for i := 0; i < n; {
		recs := []domain.Record{said(fmt.Sprint(prefix, i+1))}
		if i+1 < n {
			recs = append(recs, said(fmt.Sprint(prefix, i+2)))
		}
		next, err := store.Append(ctx, id, pos, recs...)
		if err == nil {
			pos, i = next, i+len(recs)
			continue
		}
		if !domain.HasCode(err, domain.Conflict) {
			return err
		}
		for e, err := range store.Records(ctx, id, pos) {
			if err != nil {
				return err
			}
			pos = e.Seq
		}
	}
	return nil
}

// wantInterleaved checks that every writer's records are there once, in its
// own order, pairs together.
func (r *rig) wantInterleaved(id domain.SessionID, writers, each int) {
	r.t.Helper()
	got := r.entries(id, 0)
	if len(got) != writers*each {
		r.t.Errorf("session %s holds %d records, want %d", id, len(got), writers*each)
	}
	next := make([]int, writers)
	last := -1
	for i, e := range got {
		var w, n int
		if _, err := fmt.Sscanf(textOf(e.Record), "%d:%d", &w, &n); err != nil {
			r.t.Fatalf("record %d of %s is %q", i+1, id, textOf(e.Record))
		}
		next[w]++
		if e.Seq != domain.Seq(i)+1 || n != next[w] {
			r.t.Errorf("position %d of %s holds record %d of writer %d, want its record %d", e.Seq, id, n, w, next[w])
		}
		if n%2 == 0 && last != w {
			r.t.Errorf("the records of one append of %s were torn apart at position %d", id, e.Seq)
		}
		last = w
	}
}

func cancelledLeavesNothing(t TB, h StoreHarness) {
	r := h.open(t)
	row := r.create(r.session(1))
	r.append(row.ID, 0, said("one"))
	before := r.load(row.ID)
	r.clock.advance(time.Hour)
	mine := errors.New("mine")
	ctx := cancelledWith(r, mine)
	for name, do := range map[string]func() error{
		"create": func() error { return r.store.Create(ctx, r.session(2)) },
		"load":   func() error { _, err := r.store.Load(ctx, row.ID); return err },
		"update": func() error {
			return r.store.Update(ctx, row.ID, func(s *domain.Session) error { s.Title = "changed"; return nil })
		},
		"append": func() error { _, err := r.store.Append(ctx, row.ID, 1, said("two"), said("three")); return err },
		"delete": func() error { return r.store.Delete(ctx, row.ID) },
		"list":   func() error { _, err := r.store.List(ctx, domain.SessionQuery{}); return err },
	} {
		err := do()
		if !errors.Is(err, mine) {
			t.Errorf("%s with a cancelled context returned %v, which does not hold its cause", name, err)
		}
	}
	r.wantSame(r.load(row.ID), before, "the session")
	r.wantEntries(row.ID, said("one"))
	_, err := r.store.Load(r.ctx, r.session(2).ID)
	r.wantCode(err, domain.SessionNotFound, "load of the session whose creation was cancelled")
	r.append(row.ID, 1, said("two"))
}
