package porttest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func askChecks() []check[ClientHarness] {
	return []check[ClientHarness]{
		{"client-ask-shown", "the person sees the call as it was announced, its diff and every option", askShown},
		{"client-ask-selected", "each option that was offered can be chosen", askSelected},
		{"client-ask-order", "what was sent before a question reaches the far end before it", askOrder},
		{"client-ask-unknown", "an option that was not offered is no answer", askUnknown},
		{"client-ask-fail", "an error is no answer, and the model can be told why", askFail},
		{"client-ask-garbled", "what cannot be understood is no answer", askGarbled},
		{"client-ask-withdrawn", "a question answered with cancelled is told apart from a refusal", askWithdrawn},
		{"client-ask-context", "a question ends with its context, promptly, with its cause; the far end is told", askContext},
		{"client-ask-late", "a late answer is discarded and answers nothing else", askLate},
		{"client-ask-several", "several open questions get each their own answer", askSeveral},
		{"client-ask-gone", "a question to a client that leaves ends, and is never a yes", askGone},
		{"client-ask-after-gone", "a question to a client that has gone fails with the cause Disconnected", askAfterGone},
	}
}

// question is a question with an answer of each kind.
func question() domain.PermissionRequest {
	return domain.PermissionRequest{
		Session: clientSession, Turn: "t1", Call: someCall(), Reason: "this file can start programs",
		Options: []domain.PermissionOption{
			{ID: "allow-once", Name: "Allow once", Kind: domain.AllowOnce},
			{ID: "allow-always", Name: "Always allow edits below /proj", Kind: domain.AllowAlways},
			{ID: "reject-once", Name: "Reject", Kind: domain.RejectOnce},
			{ID: "reject-always", Name: "Always reject edits below /proj", Kind: domain.RejectAlways},
		},
	}
}

// verdict is what Ask returned.
type verdict struct {
	domain.Decision
	err error
}

// ask asks in the background and returns the question as it arrived.
func (d *desk) ask(ctx context.Context, q domain.PermissionRequest) (Received, <-chan verdict) {
	d.t.Helper()
	done := background(func() verdict {
		got, err := d.client.Ask(ctx, q)
		return verdict{got, err}
	})
	r := d.next()
	if r.Ask == nil {
		d.t.Fatalf("something else than the question arrived: %s", label(r.Update))
	}
	return r, done
}

// settled waits for what Ask returned.
func (d *desk) settled(done <-chan verdict) verdict {
	d.t.Helper()
	select {
	case v := <-done:
		return v
	case <-time.After(hangLimit):
		d.t.Fatalf("Ask does not return")
	}
	return verdict{}
}

// unanswered demands a refusal that is no error and gives a reason.
func (d *desk) unanswered(v verdict) {
	d.t.Helper()
	if v.err != nil || v.Outcome != domain.Unanswered || v.Option != "" {
		d.t.Errorf("got %+v, error %v; want unanswered", v.Decision, v.err)
	}
	if v.Note == "" {
		d.t.Errorf("there is no note that says why")
	}
}

func askShown(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	want := question()
	got, done := d.ask(d.ctx, want)
	sameCall(t, got.Ask.Call, want.Call)
	if got.Session != want.Session {
		t.Errorf("session %s, want %s", got.Session, want.Session)
	}
	if len(got.Ask.Options) != len(want.Options) {
		t.Fatalf("%d options, want %d", len(got.Ask.Options), len(want.Options))
	}
	for i, o := range got.Ask.Options {
		if o != want.Options[i] {
			t.Errorf("option %+v, want %+v", o, want.Options[i])
		}
	}
	d.peer.Answer(got, "reject-once")
	d.settled(done)
}

func askSelected(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	for _, o := range question().Options {
		got, done := d.ask(d.ctx, question())
		d.peer.Answer(got, o.ID)
		if v := d.settled(done); v.err != nil || v.Outcome != domain.Selected || v.Option != o.ID {
			t.Errorf("%s chosen: got %+v, error %v", o.ID, v.Decision, v.err)
		}
	}
}

func askOrder(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	d.send(clientSession, someCall())
	done := background(func() verdict {
		got, err := d.client.Ask(d.ctx, question())
		return verdict{got, err}
	})
	if got := label(d.next().Update); got != "call call-1" {
		t.Errorf("first arrived %s, want the call", got)
	}
	d.peer.Answer(d.next(), "allow-once")
	d.settled(done)
}

func askUnknown(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	for _, id := range []string{"root", "", "Allow-Once", "allow_once", "allow-once "} {
		got, done := d.ask(d.ctx, question())
		d.peer.Answer(got, id)
		d.unanswered(d.settled(done))
	}
	narrow := question()
	narrow.Options = narrow.Options[:1]
	got, done := d.ask(d.ctx, narrow)
	d.peer.Answer(got, "allow-always") // known, but not offered here
	d.unanswered(d.settled(done))
}

func askFail(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	got, done := d.ask(d.ctx, question())
	d.peer.Fail(got)
	d.unanswered(d.settled(done))
}

func askGarbled(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	got, done := d.ask(d.ctx, question())
	d.peer.Garble(got)
	d.unanswered(d.settled(done))
}

func askWithdrawn(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	got, done := d.ask(d.ctx, question())
	d.peer.Withdraw(got)
	v := d.settled(done)
	if h.WithdrawalRefuses {
		d.unanswered(v)
		return
	}
	if v.err != nil || v.Outcome != domain.Withdrawn {
		t.Errorf("got %+v, error %v; want withdrawn", v.Decision, v.err)
	}
}

func askContext(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	ctx, cancel := context.WithCancelCause(d.ctx)
	got, done := d.ask(ctx, question())
	start := time.Now()
	cancel(domain.CancelledByClient)
	v := d.settled(done)
	if took := time.Since(start); took > hangLimit/2 {
		t.Errorf("Ask returned %s after the cancel", took)
	}
	if !errors.Is(v.err, domain.CancelledByClient) || v.Outcome == domain.Selected {
		t.Errorf("got %+v, error %v; want the cause", v.Decision, v.err)
	}
	if r := d.next(); r.Token != got.Token || r.Ask != nil || r.Update != nil {
		t.Errorf("the far end was not told that the question was taken back")
	}
}

func askLate(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	ctx, cancel := context.WithCancelCause(d.ctx)
	first, done := d.ask(ctx, question())
	cancel(domain.CancelledByClient)
	d.settled(done)
	d.next() // taken back
	second, done := d.ask(d.ctx, question())
	d.peer.Answer(first, "allow-once")
	d.peer.Answer(second, "reject-once")
	if v := d.settled(done); v.err != nil || v.Option != "reject-once" {
		t.Errorf("got %+v, error %v; the late answer to another question counted", v.Decision, v.err)
	}
}

func askSeveral(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	options := question().Options
	arrived := make([]Received, len(options))
	asked := make([]<-chan verdict, len(options))
	for i := range options {
		q := question()
		q.Call.ID += domain.CallID(strings.Repeat("x", i))
		arrived[i], asked[i] = d.ask(d.ctx, q)
	}
	for i := len(options) - 1; i >= 0; i-- {
		d.peer.Answer(arrived[i], options[i].ID)
	}
	for i, done := range asked {
		if v := d.settled(done); v.err != nil || v.Option != options[i].ID {
			t.Errorf("question %d: got %+v, error %v; want %s", i, v.Decision, v.err, options[i].ID)
		}
	}
}

func askGone(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	_, done := d.ask(d.ctx, question())
	d.peer.Leave()
	if v := d.settled(done); v.Outcome != domain.Unanswered || v.err != nil && !errors.Is(v.err, domain.Disconnected) {
		t.Errorf("got %+v, error %v; want no answer", v.Decision, v.err)
	}
}

func askAfterGone(t TB, h ClientHarness) {
	d := h.sit(t, domain.ClientInfo{})
	_, done := d.ask(d.ctx, question())
	d.peer.Leave()
	d.settled(done)
	done = background(func() verdict {
		got, err := d.client.Ask(d.ctx, question())
		return verdict{got, err}
	})
	if v := d.settled(done); !errors.Is(v.err, domain.Disconnected) || v.Outcome != domain.Unanswered {
		t.Errorf("got %+v, error %v; want Disconnected in the chain", v.Decision, v.err)
	}
}
