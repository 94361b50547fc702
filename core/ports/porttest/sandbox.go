package porttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// SandboxHarness proves a ports.Sandbox.
type SandboxHarness struct {
	// Open returns one that was not asked yet.
	Open func(TB) ports.Sandbox
	// Agents are aliases whose posture can be asked for, at least one.
	Agents []string
	// Stuck, if not nil, returns one that would try for ever.
	Stuck func(TB) ports.Sandbox
}

// Sandbox is the conformance suite of ports.Sandbox.
func Sandbox(t TB, h SandboxHarness) {
	t.Helper()
	runChecks(t, h, sandboxChecks())
}

func sandboxChecks() []check[SandboxHarness] {
	return []check[SandboxHarness]{
		{"sandbox-word", "the posture is one of the words that sessions, doctor and editors know", sandboxWord},
		{"sandbox-backend", "what confines has a name, and what does not confine has none", sandboxBackend},
		{"sandbox-reason", "whoever gets less than all is told why and what is open", sandboxReason},
		{"sandbox-stable", "what was printed is what holds: asked again it says the same", sandboxStable},
		{"sandbox-together", "many sessions may ask at once", sandboxTogether},
		{"sandbox-impatient", "a caller that has gone is told that nothing is known, and spoils it for nobody", sandboxImpatient},
		{"sandbox-known", "what is told before trying is what trying shows, and once tried it is known", sandboxKnown},
		{"sandbox-stuck", "a probe that hangs holds nobody up", sandboxStuck},
	}
}

// postureWords are the postures there are.
func postureWords() []domain.PostureWord {
	return []domain.PostureWord{domain.PostureStrong, domain.PosturePartial, domain.PostureNone, domain.PostureOff}
}

func sandboxWord(t TB, h SandboxHarness) {
	s := h.Open(t)
	for _, a := range h.Agents {
		if p := s.Posture(t.Context(), a); !slices.Contains(postureWords(), p.Word) {
			t.Errorf("%s: the posture is %q", a, p.Word)
		}
	}
}

func sandboxBackend(t TB, h SandboxHarness) {
	s := h.Open(t)
	for _, a := range h.Agents {
		if p := s.Posture(t.Context(), a); (p.Backend != "") != p.Confined() {
			t.Errorf("%s: the posture is %s and the backend %q", a, p.Word, p.Backend)
		}
	}
}

func sandboxReason(t TB, h SandboxHarness) {
	s := h.Open(t)
	for _, a := range h.Agents {
		p := s.Posture(t.Context(), a)
		switch strong := p.Word == domain.PostureStrong; {
		case strong && p.Reason != "":
			t.Errorf("%s: strong, and still a reason why not: %s", a, p.Reason)
		case !strong && len(strings.Fields(p.Reason)) < 2:
			t.Errorf("%s: %s for the reason %q", a, p.Word, p.Reason)
		case p.Word == domain.PosturePartial && len(p.Lacks) == 0:
			t.Errorf("%s: partial, and nothing is said to be open", a)
		}
		for _, l := range append(slices.Clone(p.Lacks), p.Reason) {
			if strings.TrimSpace(l) != l || strings.ContainsAny(l, "\r\n") {
				t.Errorf("%s: %q does not fit into a line", a, l)
			}
		}
		if slices.Contains(p.Lacks, "") {
			t.Errorf("%s: something empty is open: %q", a, p.Lacks)
		}
	}
}

func sandboxStable(t TB, h SandboxHarness) {
	s := h.Open(t)
	for _, a := range h.Agents {
		first := s.Posture(t.Context(), a)
		was := fmt.Sprintf("%+v", first)
		for i := range first.Lacks {
			first.Lacks[i] = "changed by a caller"
		}
		if again := fmt.Sprintf("%+v", s.Posture(t.Context(), a)); again != was {
			t.Errorf("%s: first %s, then %s", a, was, again)
		}
	}
}

func sandboxTogether(t TB, h SandboxHarness) {
	s := h.Open(t)
	var group sync.WaitGroup
	seen := make([]string, 8)
	for i := range seen {
		group.Go(func() { seen[i] = fmt.Sprintf("%+v", s.Posture(t.Context(), h.Agents[0])) })
	}
	group.Wait()
	slices.Sort(seen)
	if told := slices.Compact(seen); len(told) != 1 {
		t.Errorf("asked at once it says %q", told)
	}
}

func sandboxImpatient(t TB, h SandboxHarness) {
	want := fmt.Sprintf("%+v", h.Open(t).Posture(t.Context(), h.Agents[0]))
	s := h.Open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p := s.Posture(ctx, h.Agents[0]); fmt.Sprintf("%+v", p) != want && (p.Word != domain.PostureNone || p.Reason == "") {
		t.Errorf("without time to try it says %+v", p)
	}
	if now := fmt.Sprintf("%+v", s.Posture(t.Context(), h.Agents[0])); now != want {
		t.Errorf("after a caller that went away it says %s, want %s", now, want)
	}
}

func sandboxKnown(t TB, h SandboxHarness) {
	s := h.Open(t)
	for _, a := range h.Agents {
		before, told := s.Known(a)
		was := fmt.Sprintf("%+v", before)
		is := fmt.Sprintf("%+v", s.Posture(t.Context(), a))
		if told && was != is {
			t.Errorf("%s: %s was known before it was tried, and it is %s", a, was, is)
		}
		after, told := s.Known(a)
		if now := fmt.Sprintf("%+v", after); !told || now != is {
			t.Errorf("%s: tried and found %s; known is %s (%t)", a, is, now, told)
		}
		for i := range after.Lacks {
			after.Lacks[i] = "changed by a caller"
		}
		if again, _ := s.Known(a); fmt.Sprintf("%+v", again) != is {
			t.Errorf("%s: asked again, %+v is known, not %s", a, again, is)
		}
	}
}

func sandboxStuck(t TB, h SandboxHarness) {
	if h.Stuck == nil {
		t.Skipf("nothing here can hang")
	}
	s := h.Stuck(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan domain.Posture, 1)
	go func() { got <- s.Posture(ctx, h.Agents[0]) }() // joined below, or left behind by an adapter that fails here
	cancel()
	select {
	case p := <-got:
		if p.Word != domain.PostureNone || p.Reason == "" {
			t.Errorf("when nothing is known it says %+v", p)
		}
	case <-time.After(hangLimit):
		t.Errorf("still trying %v after the context ended", hangLimit)
	}
	known := make(chan bool, 1)
	go func() { // joined below, or left behind by an adapter that fails here
		_, told := s.Known(h.Agents[0])
		known <- told
	}()
	select {
	case told := <-known:
		if told {
			t.Errorf("it knows what a probe that hangs would show")
		}
	case <-time.After(hangLimit):
		t.Errorf("asking what is known waits for the probe")
	}
}
