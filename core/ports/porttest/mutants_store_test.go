package porttest

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// faulty is a sound store with some methods replaced by broken ones. It
// claims to be durable, so that the cases of durable stores run too.
type faulty struct {
	ports.Store
	clock ports.Clock

	create  func(context.Context, domain.Session) error
	load    func(context.Context, domain.SessionID) (domain.Session, error)
	update  func(context.Context, domain.SessionID, func(*domain.Session) error) error
	del     func(context.Context, domain.SessionID) error
	list    func(context.Context, domain.SessionQuery) (domain.SessionPage, error)
	append  func(context.Context, domain.SessionID, domain.Seq, []domain.Record) (domain.Seq, error)
	records func(context.Context, domain.SessionID, domain.Seq) iter.Seq2[domain.Entry, error]
	spent   func(context.Context, string, time.Time) (domain.MicroUSD, error)
	acquire func(context.Context, domain.SessionID) error
	release func(context.Context, domain.SessionID) error
	close   func() error
	durable func() bool
}

func (f *faulty) Create(ctx context.Context, row domain.Session) error {
	if f.create != nil {
		return f.create(ctx, row)
	}
	return f.Store.Create(ctx, row)
}

func (f *faulty) Load(ctx context.Context, id domain.SessionID) (domain.Session, error) {
	if f.load != nil {
		return f.load(ctx, id)
	}
	return f.Store.Load(ctx, id)
}

func (f *faulty) Update(ctx context.Context, id domain.SessionID, fn func(*domain.Session) error) error {
	if f.update != nil {
		return f.update(ctx, id, fn)
	}
	return f.Store.Update(ctx, id, fn)
}

func (f *faulty) Delete(ctx context.Context, id domain.SessionID) error {
	if f.del != nil {
		return f.del(ctx, id)
	}
	return f.Store.Delete(ctx, id)
}

func (f *faulty) List(ctx context.Context, q domain.SessionQuery) (domain.SessionPage, error) {
	if f.list != nil {
		return f.list(ctx, q)
	}
	return f.Store.List(ctx, q)
}

func (f *faulty) Append(ctx context.Context, id domain.SessionID, after domain.Seq, recs ...domain.Record) (domain.Seq, error) {
	if f.append != nil {
		return f.append(ctx, id, after, recs)
	}
	return f.Store.Append(ctx, id, after, recs...)
}

func (f *faulty) Records(ctx context.Context, id domain.SessionID, after domain.Seq) iter.Seq2[domain.Entry, error] {
	if f.records != nil {
		return f.records(ctx, id, after)
	}
	return f.Store.Records(ctx, id, after)
}

func (f *faulty) Spent(ctx context.Context, agent string, t time.Time) (domain.MicroUSD, error) {
	if f.spent != nil {
		return f.spent(ctx, agent, t)
	}
	return f.Store.Spent(ctx, agent, t)
}

func (f *faulty) Acquire(ctx context.Context, id domain.SessionID) error {
	if f.acquire != nil {
		return f.acquire(ctx, id)
	}
	return f.Store.Acquire(ctx, id)
}

func (f *faulty) Release(ctx context.Context, id domain.SessionID) error {
	if f.release != nil {
		return f.release(ctx, id)
	}
	return f.Store.Release(ctx, id)
}

func (f *faulty) Close() error {
	if f.close != nil {
		return f.close()
	}
	return f.Store.Close()
}

func (f *faulty) Durable() bool {
	if f.durable != nil {
		return f.durable()
	}
	return true
}

// faultyHarness opens memory stores and breaks each of them.
func faultyHarness(breakIt func(*faulty)) StoreHarness {
	wrap := func(s ports.Store, clock ports.Clock) ports.Store {
		f := &faulty{Store: s, clock: clock}
		breakIt(f)
		return f
	}
	again := func(s ports.Store, clock ports.Clock) ports.Store {
		return wrap(s.(*faulty).Store.(*memory.Store).Other(), clock)
	}
	return StoreHarness{
		Open:   func(_ TB, clock ports.Clock) ports.Store { return wrap(memory.New(clock), clock) },
		Reopen: func(_ TB, s ports.Store, clock ports.Clock) ports.Store { return again(s, clock) },
		Other:  func(_ TB, s ports.Store) ports.Store { return again(s, s.(*faulty).clock) },
		Crash:  func(_ TB, s ports.Store) { s.(*faulty).Store.Close() },
	}
}

// storeMutants maps each case to a fault it must catch.
func storeMutants() map[string]func() StoreHarness {
	faults := make(map[string]func() StoreHarness)
	for _, group := range []map[string]func(*faulty){sessionFaults(), listFaults(), journalFaults(), ledgerFaults(), valueFaults(), lifeFaults(), leaseFaults()} {
		for name, fault := range group {
			faults[name] = func() StoreHarness { return faultyHarness(fault) }
		}
	}
	maps.Copy(faults, harnessFaults())
	return faults
}

func TestStoreMutants(t *testing.T) {
	mutants := storeMutants()
	for _, c := range append(storeChecks(), leaseChecks()...) {
		t.Run(c.name, func(t *testing.T) {
			only := func(h StoreHarness) func(TB) {
				return func(tb TB) { runChecks(tb, h, []check[StoreHarness]{c}) }
			}
			if failed := Record(t, only(faultyHarness(func(*faulty) {}))); len(failed) > 0 {
				t.Fatalf("the case fails on a sound store: %v", failed)
			}
			mutant, ok := mutants[c.name]
			if !ok {
				t.Fatalf("no fault proves that this case can fail")
			}
			failed := Record(t, only(mutant()))
			if len(failed) == 0 {
				t.Fatalf("the case passed on a store with its fault; rule: %s", c.rule)
			}
			if slices.ContainsFunc(failed, func(f string) bool { return strings.Contains(f, "panic") }) {
				t.Errorf("the case panicked instead of failing: %v", failed)
			}
			delete(mutants, c.name)
		})
	}
	for name := range mutants {
		t.Errorf("the fault %q belongs to no case", name)
	}
}

// TestStoreFillerKnowsEveryMember reads the source of the domain, so that a
// record, block or content added there cannot be left out of the suite.
func TestStoreFillerKnowsEveryMember(t *testing.T) {
	for union, known := range map[string][]reflect.Type{
		"isRecord":      typesOf(recordTypes()),
		"isBlock":       typesOf(blockTypes()),
		"isCallContent": typesOf(callContentTypes()),
	} {
		var names []string
		for _, k := range known {
			names = append(names, k.Name())
		}
		slices.Sort(names)
		if declared := receiversOf(t, "../../domain", union); !slices.Equal(names, declared) {
			t.Errorf("%s: the suite knows %v, the domain declares %v", union, names, declared)
		}
	}
}

// receiversOf returns the types of a package that have a method.
func receiversOf(t *testing.T, dir, method string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no source in %s: %v", dir, err)
	}
	var names []string
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Name.Name != method {
				continue
			}
			if recv, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
				names = append(names, recv.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}
