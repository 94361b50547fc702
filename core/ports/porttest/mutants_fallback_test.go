package porttest

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// refRest is how long the reference rests a model that failed.
const refRest = time.Minute

// refChain asks reference models one after the other, with flaws.
type refChain struct {
	flaw   string
	models []*asked
	mu     sync.Mutex
	rests  map[int]time.Time
	why    string
}

// asked is a reference model that notes which models it was asked for.
type asked struct {
	*reference
	ref  domain.ModelRef
	refs []domain.ModelRef
}

func (a *asked) Info() domain.ModelInfo { return domain.ModelInfo{Ref: a.ref} }

// stream notes which model each request was for.
func (a *asked) stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		before := a.requests()
		defer func() {
			for range a.requests() - before {
				a.refs = append(a.refs, req.Model)
			}
		}()
		a.reference.Stream(ctx, req)(yield)
	}
}

var _ ports.Model = (*refChain)(nil)

func (c *refChain) Info() domain.ModelInfo { return c.models[0].Info() }

func (c *refChain) order() []int {
	var awake, resting []int
	for i := range c.models {
		if time.Now().Before(c.rests[i]) {
			resting = append(resting, i)
		} else {
			awake = append(awake, i)
		}
	}
	if c.flaw == "asks only those that do not rest" && len(awake) > 0 || c.flaw == "gives up while all rest" {
		return awake
	}
	return append(awake, resting...)
}

func (c *refChain) rest(i int, err *domain.Error) {
	d := refRest
	if err.RetryAfter > 0 && c.flaw != "rests as long as it likes" {
		d = err.RetryAfter
	}
	switch c.flaw {
	case "never rests":
		d = 0
	case "rests for ever":
		d = 1000 * time.Hour
	}
	c.rests[i] = time.Now().Add(d)
}

func (c *refChain) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return func(yield func(domain.ModelEvent, error) bool) {
		var first *domain.Error
		var notes []string
		now := 0
		order := c.order()
		if c.flaw == "asks the last first" && len(order) > 2 {
			slices.Reverse(order[1:])
		}
		if c.flaw == "asks a fallback first" {
			slices.Reverse(order)
		}
		for _, i := range order {
			m := c.models[i]
			if i != now {
				from := c.models[now].ref
				if c.flaw == "always names the first" {
					from = c.models[0].ref
				}
				ev := domain.FellBack{From: from, To: m.Info(), Reason: c.why}
				switch c.flaw {
				case "gives no reason":
					ev.Reason = ""
				case "names another reason":
					ev.Reason = "it could not"
				}
				if c.flaw != "does not tell" && !yield(ev, nil) && c.flaw != "cannot be left" {
					return
				}
				now = i
			}
			r := req
			if c.flaw != "asks for the first one's model" {
				r.Model = m.ref
			} else {
				r.Model = c.models[0].ref
			}
			inner := ctx
			if c.flaw == "forgets cancels" && i > 0 {
				inner = context.WithoutCancel(ctx)
			}
			begun, failed := false, error(nil)
			for ev, err := range m.stream(inner, r) {
				if err != nil {
					failed = err
					break
				}
				_, waits := ev.(domain.Retrying)
				begun = begun || !waits
				if waits && c.flaw == "hides attempts" {
					continue
				}
				if !yield(ev, nil) {
					return
				}
			}
			if failed == nil {
				return
			}
			code := domain.CodeOf(failed)
			passing := code == domain.Unavailable || code == domain.RateLimited || code == domain.QuotaExhausted
			switch c.flaw {
			case "falls back for everything":
				passing = true
			case "falls back for wrong keys":
				passing = passing || code == domain.AuthRequired
			case "falls back for nothing":
				passing = false
			case "does not fall back for spent accounts":
				passing = passing && code != domain.QuotaExhausted
			case "goes on after words":
				begun = false
			case "goes on after a cancel":
				passing = passing || code == domain.Cancelled
			}
			stop := code == domain.Cancelled && c.flaw != "goes on after a cancel" || i == 0 && !passing
			if c.flaw == "stops at a fallback's failure" && i > 0 && !passing {
				stop = true
			}
			if begun || stop {
				yield(nil, failed)
				return
			}
			e := failed.(*domain.Error)
			c.why = e.Msg
			c.rest(i, e)
			if i == 0 || c.flaw == "tells the last error" {
				first = e
			}
			if i > 0 {
				notes = append(notes, m.ref.String()+": "+e.Msg)
			}
		}
		if first == nil {
			first = domain.Errorf(domain.QuotaExhausted, "all rest")
		}
		err := *first
		if c.flaw != "does not tell who else was asked" {
			err.Msg += "; " + strings.Join(notes, "; ")
		}
		yield(nil, &err)
	}
}

func fallbackHarness(flaw string) FallbackHarness {
	return FallbackHarness{Retries: refRetries, Rest: refRest, Rested: refRest, Serve: func(_ TB, lists ...[]Reply) FallbackServed {
		c := &refChain{flaw: flaw, rests: map[int]time.Time{}}
		s := FallbackServed{Model: c}
		for i, replies := range lists {
			ref := domain.ModelRef{Provider: string(rune('a' + i)), Model: "m"}
			c.models = append(c.models, &asked{reference: &reference{replies: replies}, ref: ref})
			s.Refs = append(s.Refs, ref)
		}
		s.Asked = func() (all [][]domain.ModelRef) {
			for _, m := range c.models {
				all = append(all, m.refs)
			}
			return all
		}
		s.Running = func() (n int) {
			for _, m := range c.models {
				n += m.open()
			}
			return n
		}
		return s
	}}
}

// TestFallbackSuite shows that the suite can be passed, and that every case
// of it can fail.
func TestFallbackSuite(t *testing.T) {
	Fallback(Bubble(t), fallbackHarness(""))
	caught := map[string]bool{}
	for flaw, want := range map[string][]string{
		"asks the last first":                   {"fallback-next", "fallback-none"},
		"always names the first":                {"fallback-next"},
		"does not tell":                         {"fallback", "fallback-rest"},
		"gives no reason":                       {"fallback", "fallback-broken"},
		"names another reason":                  {"fallback", "fallback-next", "fallback-rest"},
		"asks for the first one's model":        {"fallback"},
		"falls back for everything":             {"fallback-stays"},
		"falls back for wrong keys":             {"fallback-stays"},
		"falls back for nothing":                {"fallback", "fallback-broken"},
		"does not fall back for spent accounts": {"fallback", "fallback-shown-later"},
		"stops at a fallback's failure":         {"fallback-next"},
		"goes on after words":                   {"fallback-shown", "fallback-shown-later"},
		"goes on after a cancel":                {"fallback-cancel-first"},
		"forgets cancels":                       {"fallback-cancel"},
		"cannot be left":                        {"fallback-leave"},
		"never rests":                           {"fallback-rest"},
		"rests for ever":                        {"fallback-rested"},
		"rests as long as it likes":             {"fallback-asked-to-wait"},
		"asks only those that do not rest":      {"fallback-returns"},
		"gives up while all rest":               {"fallback-all-rest"},
		"tells the last error":                  {"fallback-none"},
		"does not tell who else was asked":      {"fallback-none"},
		"hides attempts":                        {"fallback"},
		"asks a fallback first":                 {"fallback-first"},
	} {
		t.Run(flaw, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures := Record(t, func(t TB) { Fallback(t, fallbackHarness(flaw)) })
				wantFailures(t, failures, want)
				for _, name := range failedCases(failures) {
					caught[name] = true
				}
			})
		})
	}
	for _, c := range fallbackChecks() {
		if !caught[c.name] {
			t.Errorf("no mutant makes case %q fail", c.name)
		}
	}
}
