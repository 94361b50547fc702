package porttest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// StoreHarness tells the suites how to make the store under test. A nil
// function means that the adapter has no such thing; the cases that need it
// are skipped by name.
type StoreHarness struct {
	// Open returns an empty store that stamps with the clock. The suite closes
	// it.
	Open func(TB, ports.Clock) ports.Store
	// Reopen opens what a closed store kept.
	Reopen func(TB, ports.Store, ports.Clock) ports.Store
	// Other returns a second store over the same data, as another process
	// would have it. The suite closes it.
	Other func(TB, ports.Store) ports.Store
	// Crash ends a store from Other as a kill would: nothing is released or
	// written.
	Crash func(TB, ports.Store)
}

// Store proves a ports.Store: its Sessions, its Journal and its Ledger. Leases has a
// suite of its own.
func Store(t TB, h StoreHarness) {
	t.Helper()
	runChecks(t, h, storeChecks())
}

// storeChecks returns every case of the suite.
func storeChecks() []check[StoreHarness] {
	return slices.Concat(sessionChecks(), listChecks(), journalChecks(), ledgerChecks(), valueChecks(), lifeChecks())
}

// rig is one store under test with what a case needs beside it.
type rig struct {
	t     TB
	ctx   context.Context
	store ports.Store
	clock *steps
}

// open makes a rig; the store is closed when the case ends.
func (h StoreHarness) open(t TB) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	clock := newSteps()
	r := &rig{t: t, ctx: ctx, clock: clock, store: h.Open(t, clock.Now)}
	t.Cleanup(func() {
		cancel()
		if err := r.store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// steps is a clock that moves only when it is told to.
type steps struct {
	mu  sync.Mutex
	now time.Time
}

// newSteps starts at a time that has more digits and another zone than a
// store keeps.
func newSteps() *steps {
	return &steps{now: time.Date(2026, 3, 29, 2, 30, 0, 123456789, time.FixedZone("here", 2*60*60))}
}

// Now is a ports.Clock.
func (s *steps) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *steps) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// micro is t as a store gives it back.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// session returns a complete row; n tells rows apart and orders them by time.
func (r *rig) session(n int) domain.Session {
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
	at := micro(r.clock.Now()).Add(time.Duration(n) * time.Second)
	return domain.Session{
		ID: domain.SessionID(id), Key: "acp:" + id, Agent: "default",
		Cwd: "/projects/one", CwdGiven: "/projects/./one", Additional: []string{"/projects/lib", "/projects/ünï"},
		Workspace: "/data/agents/default/workspace", Title: "Session " + fmt.Sprint(n), Client: "suite 1.0",
		CreatedAt: at, UpdatedAt: at,
	}
}

// create adds row or ends the case.
func (r *rig) create(row domain.Session) domain.Session {
	r.t.Helper()
	if err := r.store.Create(r.ctx, row); err != nil {
		r.t.Fatalf("create %s: %v", row.ID, err)
	}
	return row
}

func (r *rig) load(id domain.SessionID) domain.Session {
	r.t.Helper()
	row, err := r.store.Load(r.ctx, id)
	if err != nil {
		r.t.Fatalf("load %s: %v", id, err)
	}
	return row
}

func (r *rig) append(id domain.SessionID, after domain.Seq, recs ...domain.Record) domain.Seq {
	r.t.Helper()
	pos, err := r.store.Append(r.ctx, id, after, recs...)
	if err != nil {
		r.t.Fatalf("append to %s after %d: %v", id, after, err)
	}
	return pos
}

// entries reads a journal to its end.
func (r *rig) entries(id domain.SessionID, after domain.Seq) []domain.Entry {
	r.t.Helper()
	var all []domain.Entry
	for e, err := range r.store.Records(r.ctx, id, after) {
		if err != nil {
			r.t.Fatalf("records of %s after %d: %v", id, after, err)
		}
		all = append(all, e)
	}
	return all
}

// wantEntries checks a whole journal: positions from 1 without a hole and the
// records in order.
func (r *rig) wantEntries(id domain.SessionID, want ...domain.Record) {
	r.t.Helper()
	got := r.entries(id, 0)
	if len(got) != len(want) {
		r.t.Fatalf("the journal of %s holds %d records, want %d", id, len(got), len(want))
	}
	for i, e := range got {
		if e.Seq != domain.Seq(i)+1 {
			r.t.Errorf("record %d of %s stands at position %d", i+1, id, e.Seq)
		}
		r.wantSame(e.Record, want[i], fmt.Sprintf("record %d of %s", i+1, id))
	}
}

func (r *rig) wantSame(got, want any, what string) {
	r.t.Helper()
	if !reflect.DeepEqual(got, want) {
		r.t.Errorf("%s came back as\n\t%.400s\nwant\n\t%.400s", what, fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want))
	}
}

func (r *rig) wantCode(err error, code domain.Code, what string) {
	r.t.Helper()
	if !domain.HasCode(err, code) {
		r.t.Errorf("%s: got %v (code %v), want the code %q", what, err, domain.CodeOf(err), code)
	}
}

// said is a record told apart by its text.
func said(text string) domain.Record {
	return domain.AssistantSaid{Turn: "t", Parts: []domain.MessagePart{{ID: "m", Text: text}}}
}

// saidN returns n records "prefix1" to "prefixN".
func saidN(prefix string, n int) []domain.Record {
	recs := make([]domain.Record, n)
	for i := range recs {
		recs[i] = said(fmt.Sprint(prefix, i+1))
	}
	return recs
}

// textOf is the inverse of said.
func textOf(rec domain.Record) string {
	if a, ok := rec.(domain.AssistantSaid); ok && len(a.Parts) == 1 {
		return a.Parts[0].Text
	}
	return fmt.Sprintf("%#v", rec)
}

// cancelledWith returns a context that has ended for the cause.
func cancelledWith(r *rig, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(r.ctx)
	cancel(cause)
	return ctx
}
