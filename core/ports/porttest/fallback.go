package porttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// FallbackHarness proves a ports.Model that asks others when it cannot answer.
// Its cases wait for minutes, so they want a Bubble.
type FallbackHarness struct {
	// Serve starts a provider for each list of replies and returns a model that
	// asks the first of them and has the others as fallbacks, in their order.
	// Each answers the n-th request with its n-th reply. Everything ends with
	// the case.
	Serve func(t TB, replies ...[]Reply) FallbackServed
	// Retries is how many attempts each of the models may add to a failed one.
	Retries int
	// Rest is for how long at least, and Rested for how long at most, a model
	// that failed once is not asked first.
	Rest, Rested time.Duration
}

// FallbackServed is a model with fallbacks and the providers behind it.
type FallbackServed struct {
	Model ports.Model
	Refs  []domain.ModelRef // the primary's and the fallbacks', all different
	// Asked returns the models that the requests of each provider named.
	Asked func() [][]domain.ModelRef
	// Running returns how many exchanges all providers still serve.
	Running func() int
}

// Fallback runs the conformance suite of models with fallbacks.
func Fallback(t TB, h FallbackHarness) {
	t.Helper()
	runChecks(t, h, fallbackChecks())
}

// again is a list of one reply, often enough for all attempts of one request.
func (h FallbackHarness) again(r Reply) []Reply { return slices.Repeat([]Reply{r}, h.Retries+1) }

// asked demands how often each provider was asked, and for its own model.
func (s FallbackServed) asked(t TB, want ...int) {
	t.Helper()
	for i, refs := range s.Asked() {
		if len(refs) != want[i] {
			t.Errorf("provider %d was asked %d times, want %d", i, len(refs), want[i])
		}
		for _, ref := range refs {
			if ref != s.Refs[i] {
				t.Errorf("provider %d was asked for %s, want %s", i, ref, s.Refs[i])
			}
		}
	}
}

// fell demands the changes from one model to another.
func (s FallbackServed) fell(t TB, r result, models ...int) {
	t.Helper()
	var got []domain.ModelRef
	for i, f := range r.fell {
		if i == 0 {
			got = append(got, f.From)
		} else if f.From != r.fell[i-1].To.Ref {
			t.Errorf("%s cannot answer, but %s was asked", f.From, r.fell[i-1].To.Ref)
		}
		got = append(got, f.To.Ref)
	}
	var want []domain.ModelRef
	for _, i := range models {
		want = append(want, s.Refs[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the change went over %v, want %v", got, want)
	}
}

// reason demands what the last change tells.
func reason(t TB, r result, words ...string) {
	t.Helper()
	if len(r.fell) == 0 {
		return
	}
	for _, w := range words {
		if told := r.fell[len(r.fell)-1].Reason; !strings.Contains(told, w) {
			t.Errorf("the reason %q does not tell %q", told, w)
		}
	}
}

func refusedWith(k RefusalKind, words string) Reply {
	return Reply{Refusal: &Refusal{Kind: k, Words: words}}
}

func saying(text string) Reply { return Reply{Parts: []ReplyPart{SendText(text)}} }

func fallbackChecks() []check[FallbackHarness] {
	return slices.Concat(fallsChecks(), staysChecks(), restChecks(), fallbackEndChecks())
}

// fallsChecks are about who is asked next.
func fallsChecks() []check[FallbackHarness] {
	return []check[FallbackHarness]{
		{"fallback-first", "a model that answers is the only one that is asked, and says it is itself", func(t TB, h FallbackHarness) {
			s := h.Serve(t, []Reply{saying("mine")}, []Reply{saying("other")})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, "mine")
			s.fell(t, r)
			s.asked(t, 1, 0)
			if s.Model.Info().Ref != s.Refs[0] {
				t.Errorf("it says it is %s", s.Model.Info().Ref)
			}
		}},
		{"fallback", "one that cannot answer now is followed by the next, with the reason, after its own attempts", func(t TB, h FallbackHarness) {
			for _, k := range []RefusalKind{LimitedRate, SpentQuota, ServerError, BadGateway, NotAvailable, GatewayTimeout, Overloaded} {
				s := h.Serve(t, h.again(refusedWith(k, "blue moon")), []Reply{saying("other")})
				r := ask(t, s.Model, SampleRequest())
				r.done(t, domain.FinishStop)
				sameText(t, "the text", r.text, "other")
				s.fell(t, r, 0, 1)
				reason(t, r, "blue moon")
				tries := 1
				if k.Passing() {
					tries += h.Retries
				}
				s.asked(t, tries, 1)
				if len(r.retrying) != tries-1 {
					t.Errorf("%d retries were told, want %d", len(r.retrying), tries-1)
				}
			}
		}},
		{"fallback-broken", "a reply that fails before anything of it was passed on is followed by another's", func(t TB, h FallbackHarness) {
			for _, end := range []ReplyEnd{EndCut, EndBroken, EndMalformed} {
				s := h.Serve(t, h.again(Reply{End: end}), []Reply{saying("other")})
				r := ask(t, s.Model, SampleRequest())
				r.done(t, domain.FinishStop)
				s.fell(t, r, 0, 1)
			}
		}},
		{"fallback-next", "fallbacks are asked in their order, and one that fails for whatever reason gives way", func(t TB, h FallbackHarness) {
			for _, k := range []RefusalKind{KeyRefused, NoSuchModel, TooLong, SpentQuota} {
				s := h.Serve(t, h.again(refusedWith(Overloaded, "blue moon")), []Reply{refusedWith(k, "red sun")}, []Reply{saying("third")})
				r := ask(t, s.Model, SampleRequest())
				r.done(t, domain.FinishStop)
				sameText(t, "the text", r.text, "third")
				s.fell(t, r, 0, 1, 2)
				reason(t, r, "red sun")
			}
		}},
		{"fallback-none", "when none answers the error is the primary's and tells of the others", func(t TB, h FallbackHarness) {
			s := h.Serve(t, []Reply{refusedWith(SpentQuota, "blue moon")}, h.again(refusedWith(Overloaded, "red sun")), []Reply{refusedWith(KeyRefused, "grey sky")})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.QuotaExhausted)
			for _, w := range []string{"blue moon", s.Refs[1].String(), "red sun", s.Refs[2].String(), "grey sky"} {
				if wordsIn(r.err, w) == "" {
					t.Errorf("the error %v does not tell %q", r.err, w)
				}
			}
			s.fell(t, r, 0, 1, 2)
		}},
	}
}

// staysChecks are about failures nobody else is asked for.
func staysChecks() []check[FallbackHarness] {
	return []check[FallbackHarness]{
		{"fallback-stays", "a wrong key, a wrong request and one that is too long are told, not handed on", func(t TB, h FallbackHarness) {
			for _, k := range []RefusalKind{KeyRefused, Forbidden, BadRequest, NoSuchModel, TooLong, TooManyTokens} {
				s := h.Serve(t, []Reply{refusedWith(k, "blue moon"), refusedWith(k, "blue moon")}, []Reply{saying("other")})
				for range 2 {
					r := ask(t, s.Model, SampleRequest())
					r.failed(t, k.Code())
					s.fell(t, r)
				}
				s.asked(t, 2, 0)
			}
		}},
		{"fallback-shown", "once something was passed on nobody else is asked", func(t TB, h FallbackHarness) {
			for _, part := range []ReplyPart{SendText("half"), SendThought("half")} {
				s := h.Serve(t, []Reply{{Parts: []ReplyPart{part}, End: EndCut}}, []Reply{saying("other")})
				r := ask(t, s.Model, SampleRequest())
				r.failed(t, domain.Unavailable)
				sameText(t, "what was said", r.text+r.thought, "half")
				s.fell(t, r)
				s.asked(t, 1, 0)
			}
		}},
		{"fallback-shown-later", "nor once a fallback has begun", func(t TB, h FallbackHarness) {
			s := h.Serve(t, []Reply{refusedWith(SpentQuota, "none")}, []Reply{{Parts: []ReplyPart{SendText("half")}, End: EndCut}}, []Reply{saying("third")})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.Unavailable)
			s.fell(t, r, 0, 1)
			s.asked(t, 1, 1, 0)
		}},
	}
}

// restChecks are about a model that failed a moment ago.
func restChecks() []check[FallbackHarness] {
	spent := refusedWith(SpentQuota, "blue moon")
	return []check[FallbackHarness]{
		{"fallback-rest", "the next request does not wait for the same failure again, and tells why", func(t TB, h FallbackHarness) {
			s := h.Serve(t, h.again(refusedWith(Overloaded, "blue moon")), []Reply{saying("one"), saying("two")})
			ask(t, s.Model, SampleRequest()).done(t, domain.FinishStop)
			time.Sleep(h.Rest - time.Second)
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, "two")
			s.fell(t, r, 0, 1)
			reason(t, r, "blue moon")
			s.asked(t, h.Retries+1, 2)
		}},
		{"fallback-rested", "after a while the first is asked first again", func(t TB, h FallbackHarness) {
			s := h.Serve(t, append(h.again(refusedWith(Overloaded, "blue moon")), saying("mine"), saying("mine")), []Reply{saying("other")})
			ask(t, s.Model, SampleRequest()).done(t, domain.FinishStop)
			time.Sleep(h.Rested)
			for range 2 {
				r := ask(t, s.Model, SampleRequest())
				r.done(t, domain.FinishStop)
				sameText(t, "the text", r.text, "mine")
				s.fell(t, r)
			}
			s.asked(t, h.Retries+3, 1)
		}},
		{"fallback-asked-to-wait", "a provider that says when is asked again then", func(t TB, h FallbackHarness) {
			limited := Reply{Refusal: &Refusal{Kind: LimitedRate, Words: "later", RetryAfter: "180"}}
			s := h.Serve(t, []Reply{limited, saying("mine")}, []Reply{saying("one"), saying("two")})
			ask(t, s.Model, SampleRequest()).done(t, domain.FinishStop)
			time.Sleep(170 * time.Second)
			sameText(t, "the text", ask(t, s.Model, SampleRequest()).text, "two")
			time.Sleep(11 * time.Second)
			sameText(t, "the text", ask(t, s.Model, SampleRequest()).text, "mine")
		}},
		{"fallback-returns", "before a request fails the first is asked too, although it rests", func(t TB, h FallbackHarness) {
			s := h.Serve(t, []Reply{spent, saying("mine")}, []Reply{saying("other"), spent})
			ask(t, s.Model, SampleRequest()).done(t, domain.FinishStop)
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, "mine")
			s.fell(t, r, 0, 1, 0)
		}},
		{"fallback-all-rest", "before a request fails everybody is asked, those too that failed a moment ago", func(t TB, h FallbackHarness) {
			s := h.Serve(t, []Reply{spent, saying("mine")}, []Reply{spent, spent})
			ask(t, s.Model, SampleRequest()).failed(t, domain.QuotaExhausted)
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, "mine")
		}},
	}
}

// fallbackEndChecks are about requests that our side ends.
func fallbackEndChecks() []check[FallbackHarness] {
	spent := []Reply{refusedWith(SpentQuota, "blue moon")}
	silent := []Reply{{Parts: []ReplyPart{SendText("one")}, End: EndSilent}}
	idle := func(t TB, s FallbackServed) {
		t.Helper()
		eventually(t, "a provider still serves an exchange that is over", func() bool { return s.Running() == 0 })
	}
	return []check[FallbackHarness]{
		{"fallback-cancel", "cancelling ends the fallback's exchange with the cause", func(t TB, h FallbackHarness) {
			for _, at := range []int{1, 2} { // at FellBack, at the text
				s := h.Serve(t, spent, silent)
				ctx, cancel := context.WithCancelCause(t.Context())
				n := 0
				r := collect(t, ctx, s.Model, SampleRequest(), func(domain.ModelEvent) bool {
					if n++; n == at {
						cancel(domain.CancelledByClient)
					}
					return true
				})
				cancelledAfter(t, r, at)
				idle(t, s)
				cancel(nil)
			}
		}},
		{"fallback-cancel-first", "a request that is cancelled while the first is asked asks nobody else", func(t TB, h FallbackHarness) {
			s := h.Serve(t, []Reply{{End: EndSilent}}, []Reply{saying("other")})
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := time.AfterFunc(50*time.Millisecond, func() { cancel(domain.CancelledByClient) })
			r := collect(t, ctx, s.Model, SampleRequest(), nil)
			stop.Stop()
			cancel(nil)
			r.failed(t, domain.Cancelled)
			if !errors.Is(r.err, domain.CancelledByClient) {
				t.Errorf("the error %v does not carry the cause", r.err)
			}
			s.fell(t, r)
			s.asked(t, 1, 0)
			idle(t, s)
		}},
		{"fallback-leave", "leaving the loop closes the exchange, at the change too", func(t TB, h FallbackHarness) {
			for _, at := range []int{1, 2} {
				s := h.Serve(t, spent, silent)
				n := 0
				collect(t, t.Context(), s.Model, SampleRequest(), func(domain.ModelEvent) bool { n++; return n < at })
				if n != at {
					t.Errorf("the loop was left at event %d, but %d came", at, n)
				}
				s.asked(t, 1, at-1)
				idle(t, s)
			}
		}},
	}
}
