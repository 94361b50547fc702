package porttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// ObserverHarness proves a ports.Observer.
type ObserverHarness struct {
	// Open returns an observer that keeps everything it sees, and what gives
	// all it has made of it so far, as text.
	Open func(t TB) (observer ports.Observer, output func() string)
	// Stuck returns an observer whose far end takes nothing any more (a pipe
	// nobody reads). It is nil for one that has no far end.
	Stuck func(t TB) ports.Observer
	// Asked says that the observer was asked to pass on what was said.
	Asked bool
}

// Observer runs the conformance suite of ports.Observer.
func Observer(t TB, h ObserverHarness) {
	t.Helper()
	runChecks(t, h, observerChecks())
}

func observerChecks() []check[ObserverHarness] {
	return []check[ObserverHarness]{
		{"observe-every-kind", "every kind of event leaves a trace that names its session", observeEveryKind},
		{"observe-bare", "an event of which nothing is known brings nobody down", observeBare},
		{"observe-cancelled", "an event of a cancelled turn is seen: it is the one somebody will ask about", observeCancelled},
		{"observe-trouble", "trouble shows where it was and what it was", observeTrouble},
		{"observe-failure", "a turn that failed shows why, and a request that failed too", observeFailure},
		{"observe-order", "what one goroutine reports is seen in its order", observeOrder},
		{"observe-said", "what was said in a turn is passed on by no observer that was not asked to", observeSaid},
		{"observe-together", "many may report at once", observeTogether},
		{"observe-stuck", "whoever reports never waits, even when nobody takes what is made of it", observeStuck},
	}
}

// observed has one event of every kind, all of one session.
func observed(id domain.SessionID) []domain.Event {
	cause := errors.New("a cause")
	return []domain.Event{
		domain.TurnBegan{Session: id, Turn: "t1"},
		domain.TurnDone{Session: id, Turn: "t1", Stop: domain.StopCancelled, Cause: domain.CancelledByClient, Duration: time.Second, Usage: domain.Usage{Input: 1}, Requests: 2, Calls: 3},
		domain.StepDone{Session: id, Turn: "t1", Model: domain.ModelRef{Provider: "p", Model: "m"}, Duration: time.Second, Err: cause},
		domain.CallDone{Session: id, Turn: "t1", Call: "t1-c1", Tool: "read_file", Status: domain.CallCompleted, Duration: time.Second},
		domain.PermissionDone{Session: id, Call: "t1-c1", Tool: "write_file", Verdict: domain.Ask, Asked: true, Outcome: domain.Selected, Option: "allow-once"},
		domain.SessionOpened{Session: id, How: "new"},
		domain.SessionReleased{Session: id, How: "close"},
		domain.Trouble{Session: id, Where: "somewhere", Err: cause},
		domain.Escalated{Session: id, Turn: "t1", Call: "t1-c2", Urgency: "high", Summary: "the tests cannot run"},
		domain.Noted{Session: id, What: "something to read"},
		domain.PeerConnected{Connection: string(id), Request: "r-1", Remote: "127.0.0.1:1", Principal: "laptop", Transport: "websocket", Protocol: "acp.v1"},
		domain.PeerGone{Connection: string(id), Transport: "websocket", Duration: time.Second, Err: cause},
		domain.PeerRefused{Request: string(id), Remote: "127.0.0.1:1", Method: "GET", Path: "/acp", Status: 401, Why: "no token"},
	}
}

// bare has one event of every kind of which nothing is known.
func bare() []domain.Event {
	return []domain.Event{
		domain.TurnBegan{},
		domain.TurnDone{},
		domain.StepDone{},
		domain.CallDone{},
		domain.PermissionDone{},
		domain.SessionOpened{},
		domain.SessionReleased{},
		domain.Trouble{},
		domain.Escalated{},
		domain.Noted{},
		domain.PeerConnected{},
		domain.PeerGone{},
		domain.PeerRefused{},
	}
}

func observeEveryKind(t TB, h ObserverHarness) {
	for i := range observed("") {
		id := domain.SessionID(fmt.Sprintf("session-of-kind-%d", i))
		ev := observed(id)[i]
		o, output := h.Open(t)
		o.Observe(t.Context(), ev)
		if got := output(); !strings.Contains(got, string(id)) {
			t.Errorf("%T left %q", ev, got)
		}
	}
}

func observeBare(t TB, h ObserverHarness) {
	o, output := h.Open(t)
	for _, ev := range bare() {
		o.Observe(t.Context(), ev)
	}
	o.Observe(t.Context(), domain.Trouble{Session: "after-all", Where: "here", Err: errors.New("x")})
	if got := output(); !strings.Contains(got, "after-all") {
		t.Errorf("afterwards nothing is seen: %q", got)
	}
}

func observeCancelled(t TB, h ObserverHarness) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(domain.CancelledByClient)
	o, output := h.Open(t)
	for _, ev := range observed("cancelled-one") {
		o.Observe(ctx, ev)
	}
	if got := strings.Count(output(), "cancelled-one"); got < len(observed("")) {
		t.Errorf("%d of %d events were seen", got, len(observed("")))
	}
}

func observeTrouble(t TB, h ObserverHarness) {
	o, output := h.Open(t)
	o.Observe(t.Context(), domain.Trouble{Session: "s", Where: "turns: late update", Err: errors.New("it hung")})
	if got := output(); !strings.Contains(got, "turns: late update") || !strings.Contains(got, "it hung") {
		t.Errorf("it left %q", got)
	}
}

func observeFailure(t TB, h ObserverHarness) {
	o, output := h.Open(t)
	o.Observe(t.Context(), domain.TurnDone{Session: "s", Turn: "t", Err: domain.WrapError(domain.Internal, errors.New("deep down"), "An internal error")})
	o.Observe(t.Context(), domain.StepDone{Session: "s", Turn: "t", Err: errors.New("connection refused")})
	if got := output(); !strings.Contains(got, "deep down") || !strings.Contains(got, "connection refused") {
		t.Errorf("they left %q", got)
	}
}

func observeOrder(t TB, h ObserverHarness) {
	o, output := h.Open(t)
	const n = 100
	for i := range n {
		o.Observe(t.Context(), domain.Trouble{Session: "s", Where: fmt.Sprintf("place-%03d.", i), Err: errors.New("x")})
	}
	got, last := output(), -1
	for i := range n {
		at := strings.Index(got, fmt.Sprintf("place-%03d.", i))
		if at < last {
			t.Fatalf("event %d is missing or comes before the one that was reported first", i)
		}
		last = at
	}
	if last < 0 {
		t.Errorf("nothing was seen")
	}
}

func observeSaid(t TB, h ObserverHarness) {
	if h.Asked {
		t.Skipf("this observer was asked to pass it on")
	}
	const said = "words-of-a-person"
	o, output := h.Open(t)
	for _, ev := range []domain.Event{
		domain.TurnBegan{Session: "s", Turn: "t", Prompt: []domain.Block{domain.Text{Text: said}}},
		domain.CallDone{Session: "s", Turn: "t", Call: "c", Tool: "read_file", Status: domain.CallCompleted, Args: []byte(`{"x":"` + said + `"}`), Result: said},
		domain.TurnDone{Session: "s", Turn: "t", Stop: domain.StopEndTurn, Text: said},
	} {
		o.Observe(t.Context(), ev)
	}
	if got := output(); strings.Contains(got, said) {
		t.Errorf("it is in %q", got)
	}
}

func observeTogether(t TB, h ObserverHarness) {
	o, output := h.Open(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for _, ev := range observed(domain.SessionID(fmt.Sprintf("session-%d.", i))) {
				o.Observe(t.Context(), ev)
			}
		})
	}
	group.Wait()
	got := output()
	for i := range 8 {
		if n := strings.Count(got, fmt.Sprintf("session-%d.", i)); n < len(observed("")) {
			t.Errorf("of reporter %d, %d of %d events were seen", i, n, len(observed("")))
		}
	}
}

func observeStuck(t TB, h ObserverHarness) {
	if h.Stuck == nil {
		t.Skipf("this observer has no far end")
	}
	o := h.Stuck(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			for _, ev := range observed("s") {
				o.Observe(t.Context(), ev)
			}
		}
	}()
	limit := time.NewTimer(hangLimit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		t.Errorf("after %v it still waits", hangLimit)
	}
}
