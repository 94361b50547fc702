package porttest

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// TestModelSuite_Reference shows that the suite can be passed.
func TestModelSuite_Reference(t *testing.T) {
	Model(Bubble(t), referenceHarness(flaws{}))
}

// events is what a stream yields.
type events = iter.Seq2[domain.ModelEvent, error]

// each makes a flaw that handles every event by itself.
func each(fn func(ev domain.ModelEvent, err error, yield func(domain.ModelEvent, error) bool) bool) func(events) events {
	return func(in events) events {
		return func(yield func(domain.ModelEvent, error) bool) {
			for ev, err := range in {
				if !fn(ev, err, yield) {
					return
				}
			}
		}
	}
}

// edit makes a flaw that replaces events of one kind.
func edit[E domain.ModelEvent](fn func(E) []domain.ModelEvent) func(events) events {
	return each(func(ev domain.ModelEvent, err error, yield func(domain.ModelEvent, error) bool) bool {
		e, ok := ev.(E)
		if !ok {
			return yield(ev, err)
		}
		for _, out := range fn(e) {
			if !yield(out, nil) {
				return false
			}
		}
		return true
	})
}

// TestModelSuite_Mutants shows that every case of the suite can fail, and
// that none of these faults of a model would go unseen.
func TestModelSuite_Mutants(t *testing.T) {
	one := func(ev domain.ModelEvent) []domain.ModelEvent { return []domain.ModelEvent{ev} }
	mutants := []struct {
		name string
		flaw flaws
		want []string // cases that must fail
	}{
		{"drops every third piece", flaws{stream: dropThird()}, []string{"text", "long", "slow-reader"}},
		{"halves characters", flaws{stream: edit(func(e domain.TextDelta) []domain.ModelEvent {
			n := len(e.Text)/2 + 1
			return []domain.ModelEvent{domain.TextDelta{Text: e.Text[:n]}, domain.TextDelta{Text: e.Text[n:]}}
		})}, []string{"utf8"}},
		{"yields empty text", flaws{stream: edit(func(e domain.TextDelta) []domain.ModelEvent {
			return []domain.ModelEvent{domain.TextDelta{}, e}
		})}, []string{"text"}},
		{"takes thoughts for text", flaws{stream: edit(func(e domain.ThoughtDelta) []domain.ModelEvent {
			return one(domain.TextDelta(e))
		})}, []string{"thought", "utf8"}},
		{"forgets Finish", flaws{stream: edit(func(domain.Finish) []domain.ModelEvent { return nil })}, []string{"text", "empty", "call", "complete-closes"}},
		{"finishes twice", flaws{stream: edit(func(e domain.Finish) []domain.ModelEvent {
			return []domain.ModelEvent{e, e}
		})}, []string{"text", "empty"}},
		{"goes on after an error", flaws{stream: each(func(ev domain.ModelEvent, err error, yield func(domain.ModelEvent, error) bool) bool {
			if !yield(ev, err) {
				return false
			}
			return err == nil || yield(domain.Finish{Reason: domain.FinishStop}, nil)
		})}, []string{"cut", "broken", "refusal-400"}},
		{"loses usage", flaws{stream: edit(func(domain.UsageReported) []domain.ModelEvent { return nil })}, []string{"usage", "length"}},
		{"makes usage up", flaws{stream: edit(func(e domain.Finish) []domain.ModelEvent {
			return []domain.ModelEvent{domain.UsageReported{Usage: domain.Usage{Input: 1}}, e}
		})}, []string{"no-usage", "call"}},
		{"always finishes well", flaws{stream: edit(func(domain.Finish) []domain.ModelEvent {
			return one(domain.Finish{Reason: domain.FinishStop})
		})}, []string{"length", "refusal", "call", "calls"}},
		{"reverses calls", flaws{stream: reverseCalls}, []string{"calls"}},
		{"numbers calls itself", flaws{stream: edit(func(e domain.CallRequested) []domain.ModelEvent {
			e.Call.ID = "1"
			return one(e)
		})}, []string{"call"}},
		{"drops the end of arguments", flaws{stream: edit(func(e domain.CallRequested) []domain.ModelEvent {
			e.Call.Args = e.Call.Args[:len(e.Call.Args)/2]
			return one(e)
		})}, []string{"call", "split-arguments"}},
		{"tells calls apart by id", flaws{sameID: true}, []string{"same-ids", "no-ids"}},
		{"leaves empty arguments empty", flaws{rawEmpty: true}, []string{"no-arguments", "broken-arguments"}},
		{"mends arguments", flaws{mend: true}, []string{"broken-arguments"}},
		{"runs calls of incomplete replies", flaws{callsAnyway: true}, []string{"length-in-call", "refusal-in-call", "cut-in-call"}},
		{"takes a cut for the end", flaws{silentCut: true}, []string{"cut", "broken", "malformed", "cut-in-call"}},
		{"skips error objects", flaws{badText: true}, []string{"error-inside", "retry", "no-retry-after-text"}},
		{"shows the provider's words as they are", flaws{verbatim: true}, []string{"secrets"}},
		{"loses the provider's words", flaws{wordless: true}, []string{"error-inside", "refusal-400", "refusal-429"}},
		{"does not code errors", flaws{uncoded: true}, []string{"cut", "refusal-401", "cancel-mid-stream", "cancelled-before"}},
		{"does not say that a key was refused", flaws{keyless: true}, []string{"key-refused"}},
		{"never retries", flaws{attempts: -1}, []string{"retry", "refusal-429", "refusal-529", "retry-stalled-body"}},
		{"retries for ever", flaws{attempts: 1000}, []string{"refusal-500", "refusal-429"}},
		{"retries whatever happens", flaws{retryAll: true}, []string{"refusal-401", "refusal-quota", "refusal-too-long", "first-byte"}},
		{"retries what was shown", flaws{retryShown: true}, []string{"cut", "no-retry-after-text"}},
		{"does not wait as asked", flaws{noWait: true}, []string{"retry-after", "retry-after-date"}},
		{"waits as long as asked", flaws{believeWait: true}, []string{"retry-after-long"}},
		{"waits through a cancel", flaws{deafWait: true}, []string{"cancel-between-attempts"}},
		{"waits for events through a cancel", flaws{deaf: true}, []string{"cancel-while-waiting"}},
		{"sends although cancelled", flaws{eager: true}, []string{"cancelled-before"}},
		{"keeps exchanges open", flaws{leak: true}, []string{"leave", "cancel-mid-stream", "cancel-while-waiting"}},
		{"holds events back", flaws{late: true}, []string{"first-event"}},
		{"has no limits of time", flaws{unlimited: true}, []string{"first-byte", "idle"}},
		{"counts silence in all", flaws{total: true}, []string{"slow"}},
		{"loses opaque data", flaws{forgetful: true}, []string{"tool-turn", "tool-turn-later"}},
		{"gives opaque data to everybody", flaws{generous: true}, []string{"history"}},
		{"is blind", flaws{blind: true}, []string{"tool-media"}},
		{"calls a cancel a failure", flaws{stream: each(func(ev domain.ModelEvent, err error, yield func(domain.ModelEvent, error) bool) bool {
			if domain.HasCode(err, domain.Cancelled) {
				err = domain.Errorf(domain.Unavailable, "connection closed")
			}
			return yield(ev, err)
		})}, []string{"cancel-mid-stream", "cancel-while-waiting", "cancelled-before"}},
	}
	caught := make(map[string]bool)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures := Record(t, func(t TB) { Model(t, referenceHarness(m.flaw)) })
				wantFailures(t, failures, m.want)
				for _, name := range failedCases(failures) {
					caught[name] = true
				}
			})
		})
	}
	for _, checks := range [][]check[ModelHarness]{
		replyChecks(), callChecks(), turnChecks(), failureChecks(), retryChecks(), endChecks(), limitChecks(),
	} {
		for _, c := range checks {
			if !caught[c.name] {
				t.Errorf("no mutant makes case %q fail", c.name)
			}
		}
	}
}

func dropThird() func(events) events {
	return func(in events) events {
		return func(yield func(domain.ModelEvent, error) bool) {
			n := 0
			for ev, err := range in {
				if _, text := ev.(domain.TextDelta); text {
					if n++; n%3 == 0 {
						continue
					}
				}
				if !yield(ev, err) {
					return
				}
			}
		}
	}
}

func reverseCalls(in events) events {
	return func(yield func(domain.ModelEvent, error) bool) {
		var calls []domain.ModelEvent
		for ev, err := range in {
			if _, call := ev.(domain.CallRequested); call {
				calls = append([]domain.ModelEvent{ev}, calls...)
				continue
			}
			for _, c := range calls {
				if !yield(c, nil) {
					return
				}
			}
			calls = nil
			if !yield(ev, err) {
				return
			}
		}
	}
}

// wantFailures demands that the named cases failed.
func wantFailures(t *testing.T, failures, want []string) {
	t.Helper()
	failed := failedCases(failures)
	for _, name := range want {
		if !slices.Contains(failed, name) {
			t.Errorf("case %q did not fail; failed: %v", name, slices.Compact(failed))
		}
	}
}

// failedCases returns the names of the cases that failed.
func failedCases(failures []string) []string {
	var failed []string
	for _, f := range failures {
		name, _, _ := strings.Cut(f, ":")
		failed = append(failed, name[strings.LastIndex(name, "/")+1:])
	}
	return failed
}

// TestModelSuite_EveryModel shows that the cases for models that say what
// they like pass for the reference model and fail for broken ones.
func TestModelSuite_EveryModel(t *testing.T) {
	harness := func(f flaws) ModelHarness {
		return ModelHarness{Open: func(t TB) (ports.Model, []domain.ModelRequest) {
			reply := Reply{Parts: []ReplyPart{SendText("a"), SendThought("b"), SendCall{ID: "1", Name: "n", Args: "{}"}}, Usage: domain.Usage{Input: 1}}
			return serveReference(f)(t, slices.Repeat([]Reply{reply}, 100)...).Model, []domain.ModelRequest{SampleRequest(), SampleHistory()}
		}}
	}
	Model(Bubble(t), harness(flaws{}))
	for name, m := range map[string]struct {
		flaw flaws
		want []string
	}{
		"unnamed call": {flaws{stream: edit(func(e domain.CallRequested) []domain.ModelEvent {
			e.Call.Name = ""
			return []domain.ModelEvent{e}
		})}, []string{"legal"}},
		"text after calls": {flaws{stream: edit(func(e domain.Finish) []domain.ModelEvent {
			return []domain.ModelEvent{domain.TextDelta{Text: "x"}, e}
		})}, []string{"legal"}},
		"sends although cancelled": {flaws{eager: true}, []string{"cancelled-before"}},
		"deaf":                     {flaws{stream: deafStream}, []string{"cancel-anywhere"}},
		"cannot be left":           {flaws{stream: unleavable}, []string{"leave-anywhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			wantFailures(t, Record(t, func(t TB) { Model(t, harness(m.flaw)) }), m.want)
		})
	}
}

// deafStream replaces the error of a cancel by a finish.
func deafStream(in events) events {
	return each(func(ev domain.ModelEvent, err error, yield func(domain.ModelEvent, error) bool) bool {
		if domain.HasCode(err, domain.Cancelled) {
			return yield(domain.Finish{Reason: domain.FinishStop}, nil)
		}
		return yield(ev, err)
	})(in)
}

// unleavable goes on after its consumer has left.
func unleavable(in events) events {
	return func(yield func(domain.ModelEvent, error) bool) {
		for ev, err := range in {
			yield(ev, err)
		}
	}
}

// fakeModels is a Models without a wire, with flaws of its own.
type fakeModels struct {
	flaw string
	mu   sync.Mutex
	n    int
}

func (m *fakeModels) Open(ctx context.Context, ref domain.ModelRef) (ports.Model, error) {
	m.mu.Lock()
	m.n++
	n := m.n
	m.mu.Unlock()
	switch {
	case ctx.Err() != nil && m.flaw != "ignores contexts":
		return nil, domain.WrapError(domain.Cancelled, context.Cause(ctx), "cancelled")
	case m.flaw == "opens once" && n > 1:
		return nil, domain.Errorf(domain.Conflict, "open already")
	case ref.Provider == "locked" && m.flaw != "opens without a key":
		if m.flaw == "does not say whose key" {
			return nil, domain.Errorf(domain.AuthRequired, "unauthorized")
		}
		return nil, domain.Errorf(domain.AuthRequired, "provider locked has no API key")
	case ref.Provider != "fake" && ref.Provider != "locked" && m.flaw != "opens anything":
		if m.flaw == "does not name providers" {
			return nil, domain.Errorf(domain.InvalidArgument, "unknown provider %s", ref.Provider)
		}
		return nil, domain.Errorf(domain.InvalidArgument, "unknown provider %s; there are fake, locked", ref.Provider)
	case ref.Model == "" && m.flaw != "opens without a name":
		return nil, domain.Errorf(domain.InvalidArgument, "no model")
	}
	return namedModel{&reference{}, m.info(ref)}, nil
}

func (m *fakeModels) info(ref domain.ModelRef) domain.ModelInfo {
	if m.flaw == "opens another" {
		ref.Model += "x"
	}
	return domain.ModelInfo{Ref: ref, Title: ref.Model, ContextWindow: 100}
}

func (m *fakeModels) Describe(ref domain.ModelRef) domain.ModelInfo {
	info := m.info(ref)
	switch {
	case m.flaw == "describes other facts":
		info.ContextWindow = 7
	case m.flaw == "describes what is not there" || ref.Provider == "fake" || ref.Provider == "locked":
		return info
	default:
		return domain.ModelInfo{Ref: ref}
	}
	return info
}

func (m *fakeModels) Catalog(ctx context.Context) ([]domain.ModelInfo, error) {
	if ctx.Err() != nil && m.flaw != "ignores contexts" {
		return nil, domain.WrapError(domain.Cancelled, context.Cause(ctx), "cancelled")
	}
	list := []domain.ModelInfo{m.info(domain.ModelRef{Provider: "fake", Model: "fake-1"}), m.info(domain.ModelRef{Provider: "locked", Model: "m"})}
	switch m.flaw {
	case "lists twice":
		list = append(list, list[0])
	case "hides models without a key":
		list = list[:1]
	case "lists other facts":
		list[0].ContextWindow = 7
	}
	return list, nil
}

type namedModel struct {
	*reference
	info domain.ModelInfo
}

func (m namedModel) Info() domain.ModelInfo { return m.info }

// TestModelsSuite shows that the suite of Models passes and fails as it
// should.
func TestModelsSuite(t *testing.T) {
	harness := func(flaw string) ModelsHarness {
		asked := 0
		if flaw == "asks" {
			asked = 1
		}
		return ModelsHarness{
			Open:    func(TB) ports.Models { return &fakeModels{flaw: flaw} },
			Known:   domain.ModelRef{Provider: "fake", Model: "fake-1"},
			Keyless: domain.ModelRef{Provider: "locked", Model: "m"},
			Asked:   func() int { return asked },
		}
	}
	Models(T(t), harness(""))
	for flaw, want := range map[string]string{
		"opens another": "open", "opens once": "open-again", "asks": "not-asked", "opens anything": "unknown-provider",
		"does not name providers": "unknown-provider", "opens without a name": "no-model", "opens without a key": "no-key",
		"does not say whose key": "no-key", "lists twice": "catalog", "hides models without a key": "catalog",
		"lists other facts": "catalog-true", "describes other facts": "describe", "describes what is not there": "describe", "ignores contexts": "cancelled",
	} {
		t.Run(flaw, func(t *testing.T) {
			wantFailures(t, Record(t, func(t TB) { Models(t, harness(flaw)) }), []string{want})
		})
	}
}
