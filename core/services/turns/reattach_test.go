package turns_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

var (
	reattachSeeds = flag.Int("reattach.seeds", 300, "how many stories TestReattach_Random plays")
	reattachSeed  = flag.Uint64("reattach.seed", 0, "the only story it plays; 0: 1 to -reattach.seeds")
)

// Whatever becomes of connections, and whenever, the one who has the session at
// the end has seen exactly what the journal shows, which is what it shows when
// no connection was ever lost, and nothing was done twice.
func TestReattach_Random(t *testing.T) {
	first, last := uint64(1), uint64(*reattachSeeds)
	if *reattachSeed != 0 {
		first, last = *reattachSeed, *reattachSeed
	}
	for seed := first; seed <= last && !t.Failed(); seed++ {
		calm := play(t, seed, false)
		if wild := play(t, seed, true); wild != calm && !cancels(seed) {
			t.Errorf("seed %d: what was lost made a difference (-undisturbed +disturbed):\n%s", seed, cmp.Diff(calm, wild))
		}
	}
}

// cancels reports whether turns of the story are cancelled, at times that what
// is done about connections moves.
func cancels(seed uint64) bool { return seed%4 == 0 }

// play plays the story of a seed and returns the history as it is in the end.
func play(t *testing.T, seed uint64, wild bool) (history string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStory(t, seed, wild)
		s.run()
		history = s.end()
	})
	if t.Failed() {
		t.Logf("seed %d, disturbed %v", seed, wild)
	}
	return history
}

// story is one session with several clients, one after the other.
type story struct {
	t      *testing.T
	seed   uint64
	wild   bool
	w      *world
	rng    *rand.Rand
	at     *person // who has the session; nil while nobody has
	before *person // who had it and was lost, and can go on from there; nil when nobody can
	people []*person
	seeing *person // who observes; nil when nobody does
	sent   int
	tasks  sync.WaitGroup
	did    map[domain.CallID]int

	mu       sync.Mutex
	requests map[*person][]context.CancelCauseFunc
	turns    int // prompts whose turn has not ended
}

func newStory(t *testing.T, seed uint64, wild bool) *story {
	s := &story{
		t: t, seed: seed, wild: wild, rng: rand.New(rand.NewPCG(seed, 2)), did: make(map[domain.CallID]int),
		requests: make(map[*person][]context.CancelCauseFunc),
	}
	mu := &sync.Mutex{}
	s.w = newWorldWith(t, time.Hour,
		&lever{name: "look", reads: true, mu: mu, did: s.did}, &lever{name: "turn", mu: mu, did: s.did})
	holds(s.w, 6000)
	if lag := rand.New(rand.NewPCG(seed, 3)); wild && seed%3 > 0 { // called with the store's mutex held
		s.w.store.lag = func() time.Duration { return time.Duration(lag.IntN(3)) * time.Millisecond }
	}
	s.w.model.play(s.model(rand.New(rand.NewPCG(seed, 1))))
	s.w.sessions.Detach(s.w.client, domain.SessionClosed)
	synctest.Wait()
	s.at = s.join(domain.OpenSession{ID: s.w.id})
	return s
}

// model answers requests with texts, thoughts and calls, for a while.
func (s *story) model(rng *rand.Rand) step {
	replies := 0
	return func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		replies++
		for i := range 1 + rng.IntN(6) {
			var ev domain.ModelEvent = domain.TextDelta{Text: fmt.Sprintf("<%d.%d>", replies, i)}
			if rng.IntN(3) == 0 && !isSummary(req) {
				ev = domain.ThoughtDelta{Text: fmt.Sprintf("(%d.%d)", replies, i)}
			}
			if err := pause(ctx, time.Duration(rng.IntN(4))*time.Millisecond); err != nil {
				yield(nil, err)
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
		finish := domain.FinishStop
		if !isSummary(req) && rng.IntN(3) > 0 {
			finish = domain.FinishCalls
			for range 1 + rng.IntN(3) {
				name := []string{"look", "look", "turn"}[rng.IntN(3)]
				args := fmt.Sprintf(`{"Ms":%d,"Steps":%d}`, rng.IntN(5), rng.IntN(4))
				if !yield(domain.CallRequested{Call: domain.ModelCall{ProviderID: "p", Name: name, Args: []byte(args)}}, nil) {
					return
				}
			}
		}
		if yield(domain.UsageReported{Usage: domain.Usage{Input: req.Estimate(), Output: 5}}, nil) {
			yield(domain.Finish{Reason: finish}, nil)
		}
	}
}

// join lets a new client open the session; nil when its connection breaks
// before that is done.
func (s *story) join(req domain.OpenSession) *person {
	p := s.w.person(fmt.Sprint("client ", len(s.people)+1))
	s.people = append(s.people, p)
	if s.before != nil && s.rng.IntN(2) == 0 { // it comes back, and knows what it saw
		p.told, req.Replay, req.Takeover = s.before.log(), false, false
		maps.Copy(p.own, s.before.own)
	}
	if s.wild && s.rng.IntN(4) == 0 {
		p.slow = time.Duration(1+s.rng.IntN(2)) * time.Millisecond
	}
	answered := make(chan struct{})
	req.Answered = answered
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer close(answered)
	run, err := s.w.sessions.Open(p, req)
	if err != nil {
		s.t.Errorf("%s cannot open the session: %v", p.name, err)
		return nil
	}
	holds := func() bool { return true }
	if s.wild && s.rng.IntN(5) == 0 {
		cut := time.AfterFunc(time.Duration(s.rng.IntN(20))*time.Millisecond, func() {
			p.breaks()
			cancel(domain.Disconnected)
			s.w.sessions.Lose(p)
		})
		holds = cut.Stop
	}
	opened, err := run(ctx)
	if err == nil && s.rng.IntN(3) == 0 {
		time.Sleep(time.Duration(s.rng.IntN(4)) * time.Millisecond) // the answer takes its time
	}
	if err == nil {
		s.before = nil // it was told what nobody had been
	}
	if !holds() {
		p.breaks()
		s.w.sessions.Lose(p)
		return nil
	}
	if err != nil {
		s.t.Errorf("%s cannot open the session: %v", p.name, err)
		return nil
	}
	if opened.Running != "" {
		s.await(p, opened.Running)
	}
	return p
}

// await waits for the turn that runs, as its prompt would.
func (s *story) await(p *person, turn domain.TurnID) {
	run, err := s.w.sessions.Await(p, s.w.id, turn)
	if err != nil {
		s.t.Errorf("await %s: %v", turn, err)
		return
	}
	s.tasks.Go(func() {
		out, err := run(context.Background())
		if err == nil && out.Turn != turn {
			s.t.Errorf("awaited %s, got %s", turn, out.Turn)
		}
	})
}

// prompt sends the next prompt.
func (s *story) prompt() {
	p := s.at
	ctx, cancel := context.WithCancelCause(context.Background())
	text := fmt.Sprintf("prompt %d %s", s.sent, tokens(300, "asked"))
	run, err := s.w.engine.Begin(ctx, p, s.w.id, domain.Prompt{Blocks: []domain.Block{domain.Text{Text: text}}, Queue: true})
	if domain.HasCode(err, domain.SessionBusy) {
		cancel(nil)
		return
	}
	if err != nil {
		s.t.Errorf("prompt: %v", err)
		cancel(nil)
		return
	}
	s.sent++
	p.own[short(text)] = true
	s.mu.Lock()
	s.requests[p] = append(s.requests[p], cancel)
	s.mu.Unlock()
	s.tasks.Go(func() {
		defer cancel(nil)
		if _, err := run(); err != nil && !p.isGone() {
			s.t.Errorf("%s's prompt failed: %v", p.name, err)
		} else if err != nil && !errors.Is(err, domain.Disconnected) {
			s.t.Errorf("a prompt of a lost client failed with %v", err)
		}
	})
}

// lose breaks the connection of the one who has the session, in the order in
// which a connection notices.
func (s *story) lose() {
	p := s.at
	s.at, s.before = nil, p
	p.breaks()
	time.Sleep(time.Duration(s.rng.IntN(6)) * time.Millisecond)
	s.mu.Lock()
	for _, cancel := range s.requests[p] {
		cancel(domain.Disconnected)
	}
	s.mu.Unlock()
	time.Sleep(time.Duration(s.rng.IntN(2)) * time.Millisecond)
	s.w.sessions.Lose(p)
	s.w.sessions.Lose(p) // when its last call was answered
}

// observe lets somebody watch from now on.
func (s *story) observe() {
	p := s.w.person("observer")
	p.rights = &domain.Rights{Name: "o", Observe: true}
	answered := make(chan struct{})
	run, err := s.w.sessions.Observe(p, s.w.id, true, answered)
	if err != nil {
		s.t.Errorf("observe: %v", err)
		return
	}
	if _, err := run(context.Background()); err != nil {
		s.t.Errorf("observe: %v", err)
	}
	close(answered)
	s.seeing = p
}

func (s *story) run() {
	prompts := 2 + int(s.seed%4)
	for s.sent < prompts || s.busy() {
		time.Sleep(time.Duration(s.rng.IntN(12)) * time.Millisecond)
		if s.t.Failed() {
			return
		}
		if !s.wild {
			if s.sent < prompts {
				s.prompt()
			}
			continue
		}
		switch n := s.rng.IntN(10); {
		case s.at == nil && n < 5:
			s.at = s.join(domain.OpenSession{ID: s.w.id, Replay: true, Takeover: n == 0})
		case s.at == nil:
		case n < 4 && s.sent < prompts:
			s.prompt()
		case n == 4 || n == 5:
			s.lose()
		case n == 6:
			old := s.at
			s.before = nil
			if p := s.join(domain.OpenSession{ID: s.w.id, Replay: true, Takeover: true}); p != nil {
				s.at = p
			} else {
				s.at = s.owner(old)
			}
		case n == 7 && s.seeing == nil:
			s.observe()
		case n == 8 && cancels(s.seed):
			s.w.engine.Cancel(s.at, s.w.id, domain.CancelledByClient)
		}
	}
}

// owner is the old client, if it has the session still.
func (s *story) owner(old *person) *person {
	if _, err := s.w.sessions.Event(old, s.w.id, domain.ClientEvent{Type: "ping"}); err != nil {
		return nil
	}
	return old
}

// busy reports whether a turn is admitted.
func (s *story) busy() bool {
	n := s.w.sessions.Stats()
	return n.Running > 0
}

// end compares what everybody was told with the journal.
func (s *story) end() string {
	s.tasks.Wait()
	synctest.Wait()
	if s.at == nil {
		if s.at = s.join(domain.OpenSession{ID: s.w.id, Replay: true}); s.at == nil {
			s.at = s.mustJoin()
		}
	}
	names := s.w.names()
	if err := wholeStory(s.at.log()); err != nil {
		s.t.Errorf("%s was told: %v\n%s", s.at.name, err, show(s.at.log()))
	}
	stored := s.replayed()
	want := plain(picture(stored), names)
	var foreign []string
	for _, said := range prompts(stored) {
		if !s.at.own[said] {
			foreign = append(foreign, said)
		}
	}
	if got := prompts(s.at.log()); !slices.Equal(got, foreign) {
		s.t.Errorf("seed %d: %s saw the prompts %q, want %q: its own are %v", s.seed, s.at.name, got, foreign, s.at.own)
	}
	if got := plain(picture(s.at.log()), names); got != want {
		s.t.Errorf("seed %d: %s saw something else than the journal shows (-journal +seen):\n%s", s.seed, s.at.name, cmp.Diff(want, got))
	}
	if s.seeing != nil {
		if got := prompts(s.seeing.log()); !slices.Equal(got, prompts(stored)) {
			s.t.Errorf("seed %d: the observer saw the prompts %q", s.seed, got)
		}
		if got := plain(picture(s.seeing.log()), names); got != want {
			s.t.Errorf("seed %d: the observer saw something else than the journal shows (-journal +seen):\n%s", s.seed, cmp.Diff(want, got))
		}
	}
	recs := s.w.records()
	if err := eachEndsOnce(recs); err != nil {
		s.t.Error(err)
	}
	for id, n := range s.did {
		if n != 1 {
			s.t.Errorf("call %s ran %d times", id, n)
		}
	}
	for _, tr := range s.w.observer.troubles() {
		s.t.Errorf("trouble: %s", tr)
	}
	s.w.shutdown()
	return want
}

// mustJoin opens the session for a client whose connection holds.
func (s *story) mustJoin() *person {
	s.wild = false
	defer func() { s.wild = true }()
	return s.join(domain.OpenSession{ID: s.w.id, Replay: true})
}

// replayed is what a load shows in the end.
func (s *story) replayed() []domain.Update {
	conv := domain.NewConversation(0)
	var ups []domain.Update
	for i, r := range s.w.records() {
		conv.Add(domain.Entry{Seq: domain.Seq(i + 1), Record: r})
		ups = append(ups, domain.Replay(r)...)
	}
	return append(ups, conv.State()...)
}

var _ ports.Tool = (*lever)(nil)
