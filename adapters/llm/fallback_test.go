package llm

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// player is a provider without a wire: it plays replies by the rules of
// Stream and of refusals.
type player struct {
	replies []porttest.Reply

	mu      sync.Mutex
	asked   []domain.ModelRef
	limits  []int // of output, as asked for
	running int
}

// played is a model of a player.
type played struct {
	*player
	info    domain.ModelInfo
	retries int
}

func (p *played) Info() domain.ModelInfo { return p.info }

func (p *played) Stream(ctx context.Context, req domain.ModelRequest) iter.Seq2[domain.ModelEvent, error] {
	return Stream(ctx, p.retries, func(ctx context.Context, emit Emit) error {
		p.mu.Lock()
		p.asked = append(p.asked, req.Model)
		p.limits = append(p.limits, req.MaxOutputTokens)
		n := len(p.asked)
		p.running++
		p.mu.Unlock()
		defer func() { p.mu.Lock(); p.running--; p.mu.Unlock() }()
		if n > len(p.replies) {
			return domain.Errorf(domain.ProviderRejected, "request %d, but there are %d replies", n, len(p.replies))
		}
		return play(ctx, p.replies[n-1], emit)
	})
}

// play is one attempt.
func play(ctx context.Context, r porttest.Reply, emit Emit) error {
	x := &Exchange{provider: &Provider{ProviderConfig: ProviderConfig{Name: "played"}}, ctx: ctx}
	if f := r.Refusal; f != nil {
		return x.refuse(parseRefusal(f.Kind.Status(), http.Header{"Retry-After": {f.RetryAfter}}, []byte(`{"error":{"message":"`+wordsOf(*f)+`"}}`)))
	}
	for _, part := range r.Parts {
		var ev domain.ModelEvent
		switch part := part.(type) {
		case porttest.SendText:
			ev = domain.TextDelta{Text: string(part)}
		case porttest.SendThought:
			ev = domain.ThoughtDelta{Text: string(part)}
		}
		if !emit(ev) {
			return nil
		}
	}
	switch r.End {
	case porttest.EndComplete:
		emit(domain.Finish{Reason: domain.FinishStop})
		return nil
	case porttest.EndSilent:
		<-ctx.Done()
		return x.Cut(ctx.Err())
	case porttest.EndMalformed:
		return x.Broken("it is none")
	}
	return x.Cut(nil)
}

// wordsOf are a provider's words of a kind of refusal.
func wordsOf(f porttest.Refusal) string {
	switch f.Kind {
	case porttest.TooLong:
		return f.Words + ": maximum context length"
	case porttest.SpentQuota:
		return f.Words + ": insufficient credits"
	}
	return f.Words
}

const playedRetries = 2

// chainOf serves players as providers a, b, c, …, the first of which has the
// others as fallbacks.
func chainOf(t porttest.TB, change func([]ProviderConfig), lists ...[]porttest.Reply) (porttest.FallbackServed, []*player) {
	t.Helper()
	players := make([]*player, len(lists))
	refs := make([]domain.ModelRef, len(lists))
	providers := make([]ProviderConfig, len(lists))
	byName := map[string]*player{}
	for i, replies := range lists {
		name := string(rune('a' + i))
		players[i] = &player{replies: replies}
		byName[name] = players[i]
		refs[i] = domain.ModelRef{Provider: name, Model: name + "-1"}
		providers[i] = ProviderConfig{Name: name, Type: "played", MaxRetries: playedRetries}
	}
	providers[0].Fallback = refs[1:]
	if change != nil {
		change(providers)
	}
	ms, err := New(Config{Providers: providers}, map[string]Opener{"played": {
		Open: func(p Provider, info domain.ModelInfo) (ports.Model, error) {
			return &played{byName[p.Name], info, p.MaxRetries}, nil
		},
	}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(ms.Close)
	m, err := ms.Open(t.Context(), refs[0])
	if err != nil {
		t.Fatalf("%v", err)
	}
	return porttest.FallbackServed{
		Model: m, Refs: refs,
		Asked: func() (all [][]domain.ModelRef) {
			for _, p := range players {
				p.mu.Lock()
				all = append(all, append([]domain.ModelRef(nil), p.asked...))
				p.mu.Unlock()
			}
			return all
		},
		Running: func() (n int) {
			for _, p := range players {
				p.mu.Lock()
				n += p.running
				p.mu.Unlock()
			}
			return n
		},
	}, players
}

func TestFallback(t *testing.T) {
	porttest.Fallback(porttest.Bubble(t), porttest.FallbackHarness{
		Serve: func(t porttest.TB, replies ...[]porttest.Reply) porttest.FallbackServed {
			s, _ := chainOf(t, nil, replies...)
			return s
		},
		Retries: playedRetries, Rest: firstRest, Rested: firstRest,
	})
}

// outcome is how one request along a chain went.
func outcome(m ports.Model) (fell []domain.FellBack, text string, err error) {
	req := porttest.SampleRequest()
	for ev, e := range m.Stream(context.Background(), req) {
		switch ev := ev.(type) {
		case domain.FellBack:
			fell = append(fell, ev)
		case domain.TextDelta:
			text += ev.Text
		}
		err = e
	}
	return fell, text, err
}

func spentAccount() porttest.Reply {
	return porttest.Reply{Refusal: &porttest.Refusal{Kind: porttest.SpentQuota, Words: "blue moon"}}
}

func says(text string) porttest.Reply {
	return porttest.Reply{Parts: []porttest.ReplyPart{porttest.SendText(text)}}
}

// TestFallback_LeftOut: fallbacks that cannot be opened are passed over and
// named; the chain is as long as configured, once around.
func TestFallback_LeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]ProviderConfig)
		fell   string // "from>to" of each change
		text   string
		want   []string // in the reason, or in the error
	}{
		"without a key": {func(p []ProviderConfig) { p[1].APIKey = no },
			"a/a-1>c/c-1", "c", []string{"blue moon", `b/b-1 is left out: provider "b" has no API key`}},
		"not configured": {func(p []ProviderConfig) { p[0].Fallback[0].Provider = "x" },
			"a/a-1>c/c-1", "c", []string{"x/b-1 is left out", "not configured"}},
		"without a name": {func(p []ProviderConfig) { p[0].Fallback[0].Model = "" },
			"a/a-1>c/c-1", "c", []string{"names no model"}},
		"itself and twice": {func(p []ProviderConfig) {
			a, b := domain.ModelRef{Provider: "a", Model: "a-1"}, p[0].Fallback[0]
			p[0].Fallback = []domain.ModelRef{a, b, a, b}
		}, "a/a-1>b/b-1", "b", []string{"blue moon"}},
		"in a circle": {func(p []ProviderConfig) {
			p[1].MaxRetries = 0
			p[1].Fallback = []domain.ModelRef{{Provider: "a", Model: "a-1"}}
		}, "a/a-1>b/b-1", "b", []string{"blue moon"}},
		"all of them": {func(p []ProviderConfig) { p[1].APIKey, p[2].APIKey = no, no },
			"", "", []string{"blue moon", "No fallback could answer", "b/b-1 is left out", "c/c-1 is left out"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := chainOf(porttest.T(t), c.change, []porttest.Reply{spentAccount()}, []porttest.Reply{says("b")}, []porttest.Reply{says("c")})
			fell, text, err := outcome(s.Model)
			var ways []string
			told := ""
			for _, f := range fell {
				ways = append(ways, f.From.String()+">"+f.To.Ref.String())
				told = f.Reason
			}
			if err != nil {
				told = err.Error()
			}
			if strings.Join(ways, " ") != c.fell || text != c.text || (err != nil) != (c.text == "") {
				t.Errorf("%v, %q, %v", ways, text, err)
			}
			for _, w := range c.want {
				if !strings.Contains(told, w) {
					t.Errorf("%q does not tell %q", told, w)
				}
			}
		})
	}
}

// TestFallback_Circle: when two providers have each other as fallback, each is
// asked once and the request fails.
func TestFallback_Circle(t *testing.T) {
	s, _ := chainOf(porttest.T(t), func(p []ProviderConfig) {
		p[1].Fallback = []domain.ModelRef{{Provider: "a", Model: "a-1"}}
	}, []porttest.Reply{spentAccount()}, []porttest.Reply{spentAccount()})
	fell, _, err := outcome(s.Model)
	if len(fell) != 1 || !domain.HasCode(err, domain.QuotaExhausted) || len(s.Asked()[0])+len(s.Asked()[1]) != 2 {
		t.Errorf("%v, %v, asked %v", fell, err, s.Asked())
	}
}

// TestFallback_Limit: a fallback is not asked for more than it can write.
func TestFallback_Limit(t *testing.T) {
	s, players := chainOf(porttest.T(t), func(p []ProviderConfig) {
		p[0].Models = map[string]ModelFacts{"a-1": {MaxOutput: 10}}
		p[1].Models = map[string]ModelFacts{"b-1": {MaxOutput: 700}}
	}, []porttest.Reply{spentAccount()}, []porttest.Reply{spentAccount()}, []porttest.Reply{says("c")})
	if _, text, err := outcome(s.Model); text != "c" || err != nil {
		t.Fatalf("%q, %v", text, err)
	}
	for i, want := range []int{1000, 700, 1000} {
		if got := players[i].limits[0]; got != want {
			t.Errorf("model %d was asked for %d tokens, want %d", i, got, want)
		}
	}
}

// TestModels_Chain: one reference gives one model, with fallbacks too.
func TestModels_Chain(t *testing.T) {
	ms, err := New(Config{Providers: []ProviderConfig{
		{Name: "one", Type: "silent", Fallback: []domain.ModelRef{{Provider: "two", Model: "x"}}},
		{Name: "alone", Type: "silent", Fallback: []domain.ModelRef{{Provider: "alone", Model: "x"}}},
	}}, map[string]Opener{"silent": silentOpener(new(int))})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "alone"} {
		ref := domain.ModelRef{Provider: name, Model: "x"}
		a, errA := ms.Open(t.Context(), ref)
		b, errB := ms.Open(t.Context(), ref)
		if errA != nil || errB != nil || a != b {
			t.Errorf("%v, %v", errA, errB)
		}
		if _, chained := a.(*chain); chained != (name == "one") {
			t.Errorf("%s is a %T", name, a)
		}
	}
}

// TestCooling: how long a model rests.
func TestCooling(t *testing.T) {
	ref := domain.ModelRef{Provider: "a", Model: "a-1"}
	other := domain.ModelRef{Provider: "b", Model: "b-1"}
	unavailable := domain.Errorf(domain.Unavailable, "no")
	asked := func(d time.Duration) *domain.Error { e := *unavailable; e.RetryAfter = d; return &e }
	type step struct {
		after time.Duration
		err   *domain.Error // nil when it works
	}
	for name, c := range map[string]struct {
		steps []step
		rests time.Duration
	}{
		"once":                     {[]step{{0, unavailable}}, time.Minute},
		"twice in a row":           {[]step{{0, unavailable}, {time.Minute, unavailable}}, 2 * time.Minute},
		"twice at once":            {[]step{{0, unavailable}, {0, unavailable}}, time.Minute},
		"many times":               {[]step{{0, unavailable}, {time.Hour, unavailable}, {time.Hour, unavailable}, {time.Hour, unavailable}, {time.Hour, unavailable}, {time.Hour, unavailable}, {time.Hour, unavailable}}, longestRest},
		"and works again":          {[]step{{0, unavailable}, {time.Minute, nil}}, 0},
		"again after it worked":    {[]step{{0, unavailable}, {time.Minute, nil}, {0, unavailable}}, time.Minute},
		"as asked":                 {[]step{{0, asked(7 * time.Second)}}, 7 * time.Second},
		"asked for ever":           {[]step{{0, asked(48 * time.Hour)}}, longestRest},
		"spent":                    {[]step{{0, domain.Errorf(domain.QuotaExhausted, "no")}}, longestRest},
		"a key is wrong":           {[]step{{0, domain.Errorf(domain.AuthRequired, "no")}}, time.Minute},
		"the request is wrong":     {[]step{{0, domain.Errorf(domain.ProviderRejected, "no")}}, 0},
		"the request is long":      {[]step{{0, domain.Errorf(domain.ContextTooLong, "no")}}, 0},
		"a shorter wait comes too": {[]step{{0, unavailable}, {0, asked(time.Second)}}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cool cooling
				for _, s := range c.steps {
					time.Sleep(s.after)
					if s.err == nil {
						cool.works(ref)
					} else {
						cool.failed(ref, s.err)
					}
				}
				for _, at := range []struct {
					wait  time.Duration
					rests bool
				}{{0, c.rests > 0}, {max(0, c.rests-time.Millisecond), c.rests > 0}, {time.Millisecond, false}} {
					time.Sleep(at.wait)
					order, why := cool.order([]domain.ModelRef{ref, other})
					if rests := order[0] == other; rests != at.rests || (why != "") != at.rests || len(order) != 2 {
						t.Errorf("after %s: %v, %q", at.wait, order, why)
					}
				}
			})
		})
	}
}
