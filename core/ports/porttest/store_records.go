package porttest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func recordsMiddle(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	const n = 1500
	for pos := domain.Seq(0); pos < n; {
		pos = r.append(id, pos, saidN(fmt.Sprint(pos, "+"), 100)...)
	}
	for _, after := range []domain.Seq{0, 1, 99, 100, 750, n - 1, n, n + 1, -5} {
		got := r.entries(id, after)
		want := int(n - min(max(after, 0), n))
		if len(got) != want {
			t.Errorf("after %d there are %d records, want %d", after, len(got), want)
			continue
		}
		for i, e := range got {
			seq := max(after, 0) + domain.Seq(i) + 1
			text := fmt.Sprint((seq-1)/100*100, "+", (seq-1)%100+1)
			if e.Seq != seq || textOf(e.Record) != text {
				t.Fatalf("after %d, record %d is %d %q, want %d %q", after, i, e.Seq, textOf(e.Record), seq, text)
			}
		}
	}
}

func recordsStamp(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	var want []time.Time
	for pos := domain.Seq(0); pos < 6; {
		r.clock.advance(1500 * time.Microsecond)
		want = append(want, micro(r.clock.Now()), micro(r.clock.Now()))
		pos = r.append(id, pos, said("a"), said("b"))
	}
	for i, e := range r.entries(id, 0) {
		if !e.At.Equal(want[i]) || e.At.Location() != time.UTC {
			t.Errorf("record %d is of %v, want %v", i+1, e.At, want[i])
		}
	}
}

func recordsAsOfStart(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	r.append(id, 0, saidN("a", 900)...)
	n := 0
	for e, err := range r.store.Records(r.ctx, id, 0) {
		if err != nil {
			t.Fatalf("records: %v", err)
		}
		if n++; n == 1 {
			r.append(id, 900, saidN("b", 20)...)
		}
		if int(e.Seq) != n {
			t.Fatalf("record %d stands at position %d", n, e.Seq)
		}
	}
	if n != 900 {
		t.Errorf("a reader that started with 900 records saw %d", n)
	}
}

func recordsBreak(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	r.append(id, 0, saidN("a", 50)...)
	for i := range 100 {
		// A store that leaks what the loop held runs out and never answers.
		ctx, cancel := context.WithTimeout(r.ctx, hangLimit)
		for _, err := range r.store.Records(ctx, id, 0) {
			if err != nil {
				t.Fatalf("reader %d: %v", i, err)
			}
			break
		}
		cancel()
	}
	r.append(id, 50, said("after"))
	if n := len(r.entries(id, 0)); n != 51 {
		t.Errorf("the journal holds %d records, want 51", n)
	}
}

func recordsInside(t TB, h StoreHarness) {
	r := h.open(t)
	id, other := r.create(r.session(1)).ID, r.create(r.session(2)).ID
	r.append(id, 0, saidN("a", 10)...)
	var nest func(depth int)
	nest = func(depth int) {
		for e, err := range r.store.Records(r.ctx, id, 0) {
			if err != nil {
				t.Fatalf("at depth %d: %v", depth, err)
			}
			if e.Seq != 1 {
				continue
			}
			r.append(other, domain.Seq(depth), said("inside"))
			r.load(id)
			if depth < 9 {
				nest(depth + 1)
			}
		}
	}
	nest(0)
	if n := len(r.entries(other, 0)); n != 10 {
		t.Errorf("10 appends inside loops left %d records", n)
	}
}

func recordsMissing(t TB, h StoreHarness) {
	r := h.open(t)
	r.create(r.session(1))
	n := 0
	for e, err := range r.store.Records(r.ctx, "none", 0) {
		n++
		r.wantCode(err, domain.SessionNotFound, "records")
		if e.Record != nil {
			t.Errorf("a record beside the error: %v", e)
		}
	}
	if n != 1 {
		t.Errorf("the journal of an unknown session yielded %d times, want one error", n)
	}
}

func recordsCancel(t TB, h StoreHarness) {
	r := h.open(t)
	id := r.create(r.session(1)).ID
	for pos := domain.Seq(0); pos < 4000; {
		pos = r.append(id, pos, saidN("a", 500)...)
	}
	mine := errors.New("mine")
	ctx, cancel := context.WithCancelCause(r.ctx)
	defer cancel(nil)
	var last error
	n, after := 0, 0
	for _, err := range r.store.Records(ctx, id, 0) {
		if last != nil {
			after++
		}
		last = err
		if n++; n == 10 {
			cancel(mine)
		}
	}
	if last == nil || n >= 4000 {
		t.Fatalf("the reader went on to record %d and ended with %v", n, last)
	}
	if after > 0 {
		t.Errorf("%d more values came after the error", after)
	}
	if !errors.Is(last, mine) {
		t.Errorf("the reader ended with %v, which does not hold the context's cause", last)
	}
}
