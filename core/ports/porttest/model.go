package porttest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// ModelHarness proves a ports.Model.
type ModelHarness struct {
	// Serve starts a provider that answers the n-th request with the n-th
	// reply, and returns a model that asks it. Everything it starts ends with
	// the case. It is nil for a model that cannot be told what to say; then
	// only the cases that hold for every model are run, over Open.
	Serve func(t TB, replies ...Reply) Served
	// Open returns a model for the cases that hold for every model, with
	// requests it answers without an error. It is not used beside Serve.
	Open func(t TB) (ports.Model, []domain.ModelRequest)
	// Retries is how many attempts Serve's model may add to a failed one. With
	// 0 the cases of retrying are skipped.
	Retries int
	// FirstByte and Idle are the limits of Serve's model: on the first sign of
	// an answer, and on a silence within one. Zero skips their cases. Cases
	// wait so long, so they want a Bubble.
	FirstByte time.Duration
	Idle      time.Duration
	// NoThoughtCount is set for a wire that does not count thoughts apart.
	NoThoughtCount bool
	// NoCacheCount is set for a wire that does not tell what came from a cache.
	NoCacheCount bool
}

// Served is a model with the provider behind it.
type Served struct {
	Model ports.Model
	// Key is the secret the model was configured with; "" when it has none.
	Key string
	// Requests returns how many requests have reached the provider.
	Requests func() int
	// Running returns how many exchanges the provider still serves; nil when
	// there is no wire.
	Running func() int
	// Problems returns what was wrong with the requests so far, in the words of
	// a strict provider: a call without an output or an output without a call,
	// two messages of one role where the wire wants them to alternate, opaque
	// data that did not come back as it was sent. Nil when nobody looks.
	Problems func() []string
	// Sent returns the body of the newest request; nil when there is no wire.
	Sent func() string
}

// Model runs the conformance suite of ports.Model.
func Model(t TB, h ModelHarness) {
	t.Helper()
	if h.Serve == nil {
		runChecks(t, h, everyModelChecks())
		return
	}
	runChecks(t, h, replyChecks())
	runChecks(t, h, callChecks())
	runChecks(t, h, turnChecks())
	runChecks(t, h, failureChecks())
	runChecks(t, h, retryChecks())
	runChecks(t, h, endChecks())
	runChecks(t, h, limitChecks())
}

// result is what one stream gave. Collecting it checks what every stream must
// keep to, whatever it says.
type result struct {
	text     string
	thought  string
	calls    []domain.ModelCall
	usage    domain.Usage
	usages   int
	retrying []domain.Retrying
	fell     []domain.FellBack
	attempt  int // the last one that failed, of the model asked now
	finish   *domain.Finish
	err      error
	events   int
	took     time.Duration
}

// ask streams one request to its end.
func ask(t TB, m ports.Model, req domain.ModelRequest) result {
	t.Helper()
	return collect(t, t.Context(), m, req, nil)
}

// collect streams a request and calls each, if there is one, after every
// event; each returns false to leave the loop.
func collect(t TB, ctx context.Context, m ports.Model, req domain.ModelRequest, each func(domain.ModelEvent) bool) result {
	t.Helper()
	var r result
	began := time.Now()
	for ev, err := range m.Stream(ctx, req) {
		r.events++
		switch {
		case r.finish != nil:
			t.Errorf("%s came after Finish", describe(ev, err))
			return r
		case r.err != nil:
			t.Errorf("%s came after the error %v", describe(ev, err), r.err)
			return r
		case err != nil:
			if ev != nil {
				t.Errorf("the error %v came with an event %T", err, ev)
			}
			r.err = err
			continue
		}
		r.take(t, ev)
		if each != nil && !each(ev) {
			r.took = time.Since(began)
			return r
		}
	}
	r.took = time.Since(began)
	r.check(t)
	return r
}

func describe(ev domain.ModelEvent, err error) string {
	if err != nil {
		return fmt.Sprintf("the error %v", err)
	}
	return fmt.Sprintf("a %T", ev)
}

// take adds one event and checks it by itself.
func (r *result) take(t TB, ev domain.ModelEvent) {
	t.Helper()
	if _, ok := ev.(domain.Finish); !ok && len(r.calls) > 0 {
		if _, ok := ev.(domain.CallRequested); !ok {
			t.Errorf("a %T came between a CallRequested and Finish", ev)
		}
	}
	switch ev.(type) {
	case domain.Retrying, domain.FellBack:
		if r.events > len(r.retrying)+len(r.fell)+1 {
			t.Errorf("a %T came after something of a reply was passed on", ev)
		}
	}
	switch ev := ev.(type) {
	case domain.TextDelta:
		if ev.Text == "" || !utf8.ValidString(ev.Text) {
			t.Errorf("TextDelta %q is empty or holds half a character", ev.Text)
		}
		r.text += ev.Text
	case domain.ThoughtDelta:
		if ev.Text == "" || !utf8.ValidString(ev.Text) {
			t.Errorf("ThoughtDelta %q is empty or holds half a character", ev.Text)
		}
		r.thought += ev.Text
	case domain.CallRequested:
		r.calls = append(r.calls, ev.Call)
		var args map[string]any
		if err := json.Unmarshal(ev.Call.Args, &args); err != nil || args == nil {
			t.Errorf("the arguments %q of a call are not a JSON object", ev.Call.Args)
		}
		if ev.Call.Name == "" || ev.Call.ID != "" {
			t.Errorf("the call %+v has no name, or an ID, which is the engine's to give", ev.Call)
		}
	case domain.UsageReported:
		r.usage = ev.Usage
		r.usages++
	case domain.Retrying:
		r.retrying = append(r.retrying, ev)
		r.attempt++
		if ev.Attempt != r.attempt || ev.Reason == "" || ev.Wait < 0 {
			t.Errorf("Retrying %+v is not the one after attempt %d, or gives no reason", ev, r.attempt)
		}
	case domain.FellBack:
		r.fell = append(r.fell, ev)
		r.attempt = 0 // the attempts of another model
		if ev.From == ev.To.Ref || ev.Reason == "" {
			t.Errorf("FellBack %+v names no change, or gives no reason", ev)
		}
	case domain.Finish:
		r.finish = &ev
	default:
		t.Errorf("event %T is no model event", ev)
	}
}

// check looks at a stream that was read to its end.
func (r *result) check(t TB) {
	t.Helper()
	switch {
	case r.finish == nil && r.err == nil:
		t.Errorf("the stream ended with neither Finish nor an error")
	case r.err != nil && len(r.calls) > 0 && !domain.HasCode(r.err, domain.Cancelled):
		t.Errorf("calls %v were requested by a reply that failed with %v", r.calls, r.err)
	case r.err != nil && domain.CodeOf(r.err) == domain.Internal:
		t.Errorf("the error %v is not coded", r.err)
	case r.finish != nil && len(r.calls) > 0 && r.finish.Reason != domain.FinishCalls:
		t.Errorf("calls came with the finish reason %q", r.finish.Reason)
	}
}

// done demands a complete reply.
func (r result) done(t TB, reason domain.FinishReason) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("the stream failed: %v", r.err)
	}
	if r.finish == nil || r.finish.Reason != reason {
		t.Fatalf("the stream ended with %+v, want the reason %q", r.finish, reason)
	}
}

// failed demands an error of that code.
func (r result) failed(t TB, code domain.Code) {
	t.Helper()
	switch {
	case r.err == nil:
		t.Fatalf("the stream ended with %+v, want an error coded %v", r.finish, code)
	case domain.CodeOf(r.err) != code:
		t.Fatalf("the error is coded %v (%v), want %v", domain.CodeOf(r.err), r.err, code)
	}
}

// SampleRequest is the request most cases send: a system prompt, a user's
// message, one tool.
func SampleRequest() domain.ModelRequest {
	return domain.ModelRequest{
		Session: "7b0f4d36-5d0e-4f0e-9a35-0d2f6b1f0a11",
		Model:   domain.ModelRef{Provider: "fake", Model: "fake-1"},
		System:  "You are a test. Nobody may quote this sentence in an error.",
		Messages: []domain.ModelMessage{
			domain.UserInput{Blocks: []domain.Block{domain.Text{Text: samplePrompt}}},
		},
		Tools: []domain.ToolSpec{{
			Name: "read_file", Description: "Reads a file.", Kind: domain.KindRead, ReadOnly: true,
			Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`),
		}},
		MaxOutputTokens: 1000,
	}
}

const samplePrompt = "The quick brown fox asks for its private diary: page forty-two, please."

// everyModelChecks hold for a model that says what it likes.
func everyModelChecks() []check[ModelHarness] {
	return []check[ModelHarness]{
		{"info", "a model says which one it is and stays it", func(t TB, h ModelHarness) {
			m, _ := h.Open(t)
			if ref := m.Info().Ref; ref.Provider == "" || ref.Model == "" || m.Info() != m.Info() {
				t.Errorf("Info is %+v", m.Info())
			}
		}},
		{"legal", "a stream is a legal reply that ends with one Finish", func(t TB, h ModelHarness) {
			m, reqs := h.Open(t)
			for _, req := range reqs {
				if r := ask(t, m, req); r.err != nil {
					t.Errorf("%v", r.err)
				}
			}
		}},
		{"cancel-anywhere", "a cancelled stream ends at once with the cause, after whatever it had said", func(t TB, h ModelHarness) {
			m, reqs := h.Open(t)
			for _, req := range reqs {
				for at := 1; cancelAfter(t, m, req, at); at++ {
				}
			}
		}},
		{"leave-anywhere", "leaving the loop ends the stream", func(t TB, h ModelHarness) {
			m, reqs := h.Open(t)
			for _, req := range reqs {
				total := ask(t, m, req).events
				for at := 1; at <= total; at++ {
					n := 0
					collect(t, t.Context(), m, req, func(domain.ModelEvent) bool { n++; return n < at })
				}
			}
		}},
		{"cancelled-before", "a request whose context has ended is not begun", func(t TB, h ModelHarness) {
			m, reqs := h.Open(t)
			checkCancelledBefore(t, m, reqs[0])
		}},
	}
}

// cancelAfter cancels after the at-th event and reports whether the stream
// had more than that.
func cancelAfter(t TB, m ports.Model, req domain.ModelRequest, at int) bool {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	n := 0
	r := collect(t, ctx, m, req, func(domain.ModelEvent) bool {
		if n++; n == at {
			cancel(domain.CancelledByClient)
		}
		return true
	})
	if n < at || (r.finish != nil && n == at) {
		return false
	}
	if r.err == nil || !errors.Is(r.err, domain.CancelledByClient) || n > at {
		t.Errorf("cancelled after event %d: %d events, then %+v, error %v", at, n, r.finish, r.err)
		return false
	}
	return true
}

func checkCancelledBefore(t TB, m ports.Model, req domain.ModelRequest) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(domain.CancelledByClient)
	r := collect(t, ctx, m, req, nil)
	r.failed(t, domain.Cancelled)
	if r.events != 1 || !errors.Is(r.err, domain.CancelledByClient) {
		t.Errorf("the error %v after %d events does not carry the cause alone", r.err, r.events)
	}
}

// eventually waits for something that follows at once.
func eventually(t TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(hangLimit); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s", what)
		}
	}
}

// sameText compares text without printing a page of it.
func sameText(t TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s, want %s", what, clip(got), clip(want))
	}
}

func clip(s string) string {
	if len(s) > 200 {
		return fmt.Sprintf("%q… (%d bytes)", s[:200], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// wordsIn reports which of several texts stand in an error.
func wordsIn(err error, texts ...string) string {
	for _, s := range texts {
		if s != "" && strings.Contains(fmt.Sprintf("%v\n%+v", err, err), s) {
			return s
		}
	}
	return ""
}
