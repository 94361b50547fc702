package porttest

import (
	"errors"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// failureChecks are about replies that fail.
func failureChecks() []check[ModelHarness] {
	checks := []check[ModelHarness]{
		{"cut", "a stream that ends without its closing event is a failure, and what was said stays said", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("half "), SendText("an answer")}, End: EndCut})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.Unavailable)
			sameText(t, "the text", r.text, "half an answer")
			if n := s.Requests(); n != 1 || len(r.retrying) > 0 {
				t.Errorf("%d requests were made, want 1: text was shown already", n)
			}
		}},
		{"broken", "a connection that breaks in the middle is a failure", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("half")}, End: EndBroken})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.Unavailable)
			sameText(t, "the text", r.text, "half")
		}},
		{"malformed", "an event that cannot be read is a failure, not a gap", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Parts: []ReplyPart{SendText("half")}, End: EndMalformed})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.Unavailable)
			sameText(t, "the text", r.text, "half")
		}},
		{"error-inside", "an error object is an error whatever the status, in the provider's own words", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{
				Parts: []ReplyPart{SendText("half")}, End: EndError,
				Fault: Refusal{Kind: Overloaded, Words: "engine number five is overloaded"},
			})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.Unavailable)
			sameText(t, "the text", r.text, "half")
			if wordsIn(r.err, "engine number five is overloaded") == "" {
				t.Errorf("the error %v lost the provider's words", r.err)
			}
		}},
		{"secrets", "no key and nothing of the conversation stands in an error, even when the provider quotes it", func(t TB, h ModelHarness) {
			for _, kind := range []RefusalKind{KeyRefused, BadRequest, TooLong, LimitedRate, ServerError} {
				checkSecrets(t, h, kind)
			}
		}},
		{"key-refused", "a wrong key is told apart from a missing one", func(t TB, h ModelHarness) {
			s := h.Serve(t, Reply{Refusal: &Refusal{Kind: KeyRefused, Words: "nope"}})
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, domain.AuthRequired)
			var e *domain.Error
			if s.Key != "" && (!errors.As(r.err, &e) || errorDetail(e, "key") != "refused") {
				t.Errorf("the error %v does not carry the detail key=refused", r.err)
			}
		}},
	}
	for name, kind := range refusalKinds() {
		rule := "refusal " + name + " has its code, the provider's words, and is not repeated unless it may pass"
		checks = append(checks, check[ModelHarness]{"refusal-" + name, rule, func(t TB, h ModelHarness) {
			refusal := &Refusal{Kind: kind, Words: "reason: blue moon"}
			var replies []Reply
			for range h.Retries + 1 {
				replies = append(replies, Reply{Refusal: refusal})
			}
			s := h.Serve(t, replies...)
			r := ask(t, s.Model, SampleRequest())
			r.failed(t, kind.Code())
			if wordsIn(r.err, "blue moon") == "" {
				t.Errorf("the error %v lost the provider's words", r.err)
			}
			want := 1
			if kind.Passing() {
				want += h.Retries
			}
			if n := s.Requests(); n != want || len(r.retrying) != want-1 {
				t.Errorf("%d requests were made and %d retries told, want %d requests", n, len(r.retrying), want)
			}
		}})
	}
	return checks
}

func errorDetail(e *domain.Error, key string) any {
	for _, d := range e.Details {
		if d.Key == key {
			return d.Value
		}
	}
	return nil
}

// checkSecrets lets a provider quote the key and the conversation, in a
// refusal and in an error object inside an answer.
func checkSecrets(t TB, h ModelHarness, kind RefusalKind) {
	t.Helper()
	const shaped = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a"
	req := SampleRequest()
	key := h.Serve(t).Key
	if key == "" {
		key = shaped
	}
	words := "bad key " + key + " or " + shaped + " for: " + samplePrompt + " / " + req.System
	refusal := Refusal{Kind: kind, Words: words}
	for _, reply := range []Reply{{Refusal: &refusal}, {End: EndError, Fault: refusal}} {
		var replies []Reply
		for range h.Retries + 1 {
			replies = append(replies, reply)
		}
		s := h.Serve(t, replies...)
		if s.Key == "" {
			return // a model without a wire has nobody who could quote
		}
		r := ask(t, s.Model, req)
		texts := []string{s.Key, shaped, samplePrompt, req.System, samplePrompt[10:50]}
		if leak := wordsIn(r.err, texts...); leak != "" {
			t.Errorf("the error %v holds %q", r.err, leak)
		}
		for _, told := range r.retrying {
			if leak := wordsIn(errors.New(told.Reason), texts...); leak != "" {
				t.Errorf("the reason %q of a retry holds %q", told.Reason, leak)
			}
		}
	}
}

// retryChecks are about attempts that follow a failed one.
func retryChecks() []check[ModelHarness] {
	retrying := func(run func(TB, ModelHarness)) func(TB, ModelHarness) {
		return func(t TB, h ModelHarness) {
			if h.Retries == 0 {
				t.Skipf("this model does not retry")
			}
			run(t, h)
		}
	}
	ok := Reply{Parts: []ReplyPart{SendText("ok")}}
	refused := func(kind RefusalKind, after string) Reply {
		return Reply{Refusal: &Refusal{Kind: kind, Words: "later", RetryAfter: after}}
	}
	// recovers runs a failed attempt and one that works, and returns the wait.
	recovers := func(t TB, h ModelHarness, first Reply) (time.Duration, time.Duration) {
		t.Helper()
		s := h.Serve(t, first, ok)
		r := ask(t, s.Model, SampleRequest())
		r.done(t, domain.FinishStop)
		sameText(t, "the text", r.text, "ok")
		if len(r.retrying) != 1 {
			t.Fatalf("%d retries were told, want 1", len(r.retrying))
		}
		return r.retrying[0].Wait, r.took
	}
	return []check[ModelHarness]{
		{"retry", "what may pass is tried again, while nothing was passed on, and told", retrying(func(t TB, h ModelHarness) {
			firsts := map[string]Reply{
				"rate": refused(LimitedRate, ""), "500": refused(ServerError, ""), "529": refused(Overloaded, ""),
				"cut": {End: EndCut}, "broken": {End: EndBroken}, "malformed": {End: EndMalformed},
				"cut in a call": {End: EndCut, Parts: []ReplyPart{SendCall{ID: "1", Name: "read_file", Args: `{"pa`, Pieces: 1}}},
				"inside":        {End: EndError, Fault: Refusal{Kind: Overloaded, Words: "busy"}},
			}
			for name, first := range firsts {
				if wait, took := recovers(t, h, first); took < wait || wait > 10*time.Second {
					t.Errorf("%s: waited %s of %s", name, took, wait)
				}
			}
		})},
		{"retry-after", "a wait the provider asks for is kept", retrying(func(t TB, h ModelHarness) {
			if wait, took := recovers(t, h, refused(LimitedRate, "2")); wait < 2*time.Second || took < 2*time.Second || wait > 4*time.Second {
				t.Errorf("asked for 2s, waited %s, told %s", took, wait)
			}
		})},
		{"retry-after-date", "a wait until a date is kept", retrying(func(t TB, h ModelHarness) {
			at := time.Now().Add(3 * time.Second).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
			if wait, _ := recovers(t, h, refused(NotAvailable, at)); wait < time.Second || wait > 5*time.Second {
				t.Errorf("asked for about 3s, told %s", wait)
			}
		})},
		{"retry-after-nonsense", "a wait that cannot be understood is none", retrying(func(t TB, h ModelHarness) {
			for _, after := range []string{"soon", "-5", "NaN", "0x10", ""} {
				if wait, _ := recovers(t, h, refused(LimitedRate, after)); wait > 10*time.Second {
					t.Errorf("Retry-After %q made a wait of %s", after, wait)
				}
			}
		})},
		{"retry-after-long", "a wait beyond the bound is not waited for; the error says how long it is", retrying(func(t TB, h ModelHarness) {
			for after, want := range map[string]time.Duration{"7200": 2 * time.Hour, "999999999999": 0} {
				s := h.Serve(t, refused(LimitedRate, after))
				r := ask(t, s.Model, SampleRequest())
				r.failed(t, domain.RateLimited)
				var e *domain.Error
				if !errors.As(r.err, &e) || e.RetryAfter < time.Hour || (want > 0 && e.RetryAfter != want) {
					t.Errorf("Retry-After %s: the error tells to wait %s", after, e.RetryAfter)
				}
				if n := s.Requests(); n != 1 || r.took > time.Second {
					t.Errorf("%d requests in %s, want 1 at once", n, r.took)
				}
			}
		})},
		{"retry-stalled-body", "a refusal whose body never ends is understood by its status", retrying(func(t TB, h ModelHarness) {
			first := Reply{Refusal: &Refusal{Kind: LimitedRate, Words: "later", Stall: true}}
			if _, took := recovers(t, h, first); took > 15*time.Second {
				t.Errorf("it took %s", took)
			}
		})},
		{"no-retry-after-text", "nothing that was shown is shown twice", retrying(func(t TB, h ModelHarness) {
			for _, end := range []ReplyEnd{EndCut, EndBroken, EndMalformed, EndError} {
				for _, part := range []ReplyPart{SendText("shown"), SendThought("shown")} {
					s := h.Serve(t, Reply{Parts: []ReplyPart{part}, End: end, Fault: Refusal{Kind: Overloaded, Words: "busy"}}, ok)
					r := ask(t, s.Model, SampleRequest())
					r.failed(t, domain.Unavailable)
					if n := s.Requests(); n != 1 || strings.Contains(r.text, "ok") {
						t.Errorf("end %d: %d requests were made, want 1", end, n)
					}
				}
			}
		})},
	}
}
