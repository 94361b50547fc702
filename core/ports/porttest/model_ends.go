package porttest

import (
	"context"
	"errors"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// promptly is what a model may take to notice that it is not wanted any more.
const promptly = 250 * time.Millisecond

// endChecks are about streams that our side ends.
func endChecks() []check[ModelHarness] {
	return []check[ModelHarness]{
		{"cancel-mid-stream", "cancelling ends the stream with the cause and closes the exchange before Stream returns", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("one"), SendText("two")}, End: EndSilent})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			r := collect(t, ctx, s.Model, SampleRequest(), func(domain.ModelEvent) bool {
				cancel(domain.CancelledByClient)
				return true
			})
			cancelledAfter(t, r, 1)
			exchangeClosed(t, s)
		}},
		{"cancel-while-waiting", "cancelling ends a wait for the next event", func(t TB, h ModelHarness) {
			for _, parts := range [][]ReplyPart{nil, {SendText("one")}, {SendCall{ID: "1", Name: "read_file", Args: `{"pa`, Pieces: 1}}} {
				s := h.Serve(t, Reply{Parts: parts, End: EndSilent})
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := time.AfterFunc(50*time.Millisecond, func() { cancel(domain.CancelledByClient) })
				r := collect(t, ctx, s.Model, SampleRequest(), nil)
				stop.Stop()
				cancel(nil)
				r.failed(t, domain.Cancelled)
				if !errors.Is(r.err, domain.CancelledByClient) || r.took > 50*time.Millisecond+promptly {
					t.Errorf("the stream ended after %s with %v", r.took, r.err)
				}
				exchangeClosed(t, s)
			}
		}},
		{"cancel-between-attempts", "cancelling ends the wait for another attempt", func(t TB, h ModelHarness) {
			if h.Retries == 0 {
				t.Skipf("this model does not retry")
			}
			s := h.Serve(t, Reply{Refusal: &Refusal{Kind: LimitedRate, Words: "later", RetryAfter: "30"}})
			ctx, cancel := context.WithCancelCause(t.Context())
			stop := time.AfterFunc(50*time.Millisecond, func() { cancel(domain.CancelledByClient) })
			r := collect(t, ctx, s.Model, SampleRequest(), nil)
			stop.Stop()
			cancel(nil)
			r.failed(t, domain.Cancelled)
			if n := s.Requests(); n != 1 || r.took > 50*time.Millisecond+promptly {
				t.Errorf("%d requests in %s", n, r.took)
			}
		}},
		{"cancelled-before", "a request whose context has ended is not sent", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("never")}})
			checkCancelledBefore(t, s.Model, SampleRequest())
			if n := s.Requests(); n != 0 {
				t.Errorf("the provider saw %d requests", n)
			}
		}},
		{"leave", "leaving the loop closes the exchange before Stream returns, at any event", func(t TB, h ModelHarness) {
			for at := 1; at <= 3; at++ {
				s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("one"), SendThought("two"), SendText("three")}, End: EndSilent})
				n := 0
				r := collect(t, t.Context(), s.Model, SampleRequest(), func(domain.ModelEvent) bool { n++; return n < at })
				if n != at || r.took > promptly {
					t.Errorf("the loop was left at event %d, but %d came in %s", at, n, r.took)
				}
				exchangeClosed(t, s)
			}
		}},
		{"leave-at-end", "leaving the loop at a call or at Finish is no failure", func(t TB, h ModelHarness) {
			reply := Reply{Parts: []ReplyPart{SendText("x"), SendCall{ID: "1", Name: "read_file", Args: "{}", Pieces: 1}}}
			for at := 2; at <= 3; at++ {
				s := h.Serve(t, reply)
				n := 0
				collect(t, t.Context(), s.Model, SampleRequest(), func(domain.ModelEvent) bool { n++; return n < at })
				if n != at {
					t.Errorf("%d events came, want %d", n, at)
				}
				exchangeClosed(t, s)
			}
		}},
		{"complete-closes", "a complete reply leaves no exchange open", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("x")}})
			ask(t, s.Model, SampleRequest()).done(t, domain.FinishStop)
			exchangeClosed(t, s)
		}},
		{"first-event", "an event is passed on when it has come, not when the next one has", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("one"), Wait(3 * time.Second), SendText("two")}})
			began, first := time.Now(), time.Duration(-1)
			r := collect(t, t.Context(), s.Model, SampleRequest(), func(domain.ModelEvent) bool {
				if first < 0 {
					first = time.Since(began)
				}
				return true
			})
			if r.done(t, domain.FinishStop); first >= 3*time.Second {
				t.Errorf("the first event was held back for %s", first)
			}
		}},
	}
}

// cancelledAfter demands n events and then the error of a cancel.
func cancelledAfter(t TB, r result, n int) {
	t.Helper()
	r.failed(t, domain.Cancelled)
	if !errors.Is(r.err, domain.CancelledByClient) || r.events != n+1 || r.took > promptly {
		t.Errorf("%d events and %v after %s, want %d event and the cause at once", r.events-1, r.err, r.took, n)
	}
}

// exchangeClosed demands that the provider sees the exchange end.
func exchangeClosed(t TB, s Served) {
	t.Helper()
	if s.Running != nil {
		eventually(t, "the provider still serves an exchange that is over", func() bool { return s.Running() == 0 })
	}
}

// limitChecks are about providers that are silent.
func limitChecks() []check[ModelHarness] {
	limited := func(run func(TB, ModelHarness)) func(TB, ModelHarness) {
		return func(t TB, h ModelHarness) {
			if h.FirstByte == 0 || h.Idle == 0 {
				t.Skipf("this model knows no limits of time")
			}
			run(t, h)
		}
	}
	return []check[ModelHarness]{
		{"first-byte", "a provider that never begins to answer is given up after its limit, once", limited(func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{End: EndSilent})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.Unavailable)
			if n := s.Requests(); n != 1 || r.took < h.FirstByte || r.took > h.FirstByte+time.Second {
				t.Errorf("%d requests in %s, want 1 in %s", n, r.took, h.FirstByte)
			}
			exchangeClosed(t, s)
		})},
		{"idle", "a provider that falls silent in a reply is given up after its limit", limited(func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("one")}, End: EndSilent})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.Unavailable)
			sameText(t, "the text", r.text, "one")
			if r.took < h.Idle || r.took > h.Idle+time.Second {
				t.Errorf("it took %s, want %s", r.took, h.Idle)
			}
			exchangeClosed(t, s)
		})},
		{"slow", "a provider that is slow but alive is not given up", limited(func(t TB, h ModelHarness) {
			var parts []ReplyPart
			for range 5 {
				parts = append(parts, Wait(h.Idle*3/4), SendText("."))
			}
			s := h.Serve(t, Reply{Parts: parts})
			r := ask(t, s.Model, SampleRequest())
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, ".....")
		})},
		{"slow-reader", "a client that reads slowly does not make the provider look silent", limited(func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("1"), SendText("2"), SendText("3")}})
			r := collect(t, t.Context(), s.Model, SampleRequest(), func(domain.ModelEvent) bool {
				time.Sleep(2 * h.Idle)
				return true
			})
			r.done(t, domain.FinishStop)
			sameText(t, "the text", r.text, "123")
		})},
	}
}
