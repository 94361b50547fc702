package turns_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// cents is an amount in hundredths of a dollar.
func cents(n int64) domain.MicroUSD { return domain.MicroUSD(n * 10_000) }

// charges answers with a text that cost so many cents, by the provider's word.
func charges(n int64) step {
	cost := cents(n)
	return events(domain.FinishStop, domain.TextDelta{Text: "ok"}, domain.UsageReported{Usage: domain.Usage{Input: 10, Output: 1}, Cost: &cost})
}

func TestCost_IsKnownLiveAndLater(t *testing.T) {
	other := domain.ModelInfo{Ref: domain.ModelRef{Provider: "test", Model: "two"}, ContextWindow: 500, InputPrice: 1_000_000}
	usage := domain.UsageReported{Usage: domain.Usage{Input: 2, Output: 1}}
	stated := cents(300)
	for name, c := range map[string]struct {
		step step
		want float64 // dollars; 0 when unknown
	}{
		"by the model's prices":         {events(domain.FinishStop, domain.TextDelta{Text: "a"}, usage), 2*3 + 15},
		"by the provider's word":        {events(domain.FinishStop, domain.TextDelta{Text: "a"}, domain.UsageReported{Usage: usage.Usage, Cost: &stated}), 3},
		"by the prices of who stood in": {events(domain.FinishStop, domain.FellBack{To: other, Reason: "busy"}, domain.TextDelta{Text: "a"}, usage), 2},
		"unknown":                       {events(domain.FinishStop, domain.FellBack{To: domain.ModelInfo{ContextWindow: 9}, Reason: "busy"}, domain.TextDelta{Text: "a"}, usage), 0},
		"not counted":                   {events(domain.FinishStop, domain.TextDelta{Text: "a"}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				w.model.info = &domain.ModelInfo{ContextWindow: 100_000, InputPrice: 3_000_000, OutputPrice: 15_000_000}
				w.model.play(c.step)
				for range 2 {
					w.begin("hi").want(domain.StopEndTurn)
				}
				var told []*domain.Cost
				for _, u := range w.client.log() {
					if usage, ok := u.(domain.UsageChanged); ok {
						told = append(told, usage.Cost)
					}
				}
				for i, got := range told {
					if want := c.want * float64(i+1); (want == 0) != (got == nil) || got != nil && *got != (domain.Cost{Amount: want, Currency: "USD"}) {
						t.Errorf("after turn %d the client was told %v, want %v", i+1, got, want)
					}
				}
				if spent, err := w.store.Spent(t.Context(), "default", time.Now()); err != nil || spent.Dollars() != 2*c.want {
					t.Errorf("the ledger holds %v, %v", spent, err)
				}
				w.check()
			})
		})
	}
}

// What a reply that broke off had cost is counted, shown or not.
func TestCost_OfWhatFailed(t *testing.T) {
	bubble(t, nil, func(w *world) {
		cost := cents(5)
		w.model.play(func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			if yield(domain.UsageReported{Usage: domain.Usage{Input: 1}, Cost: &cost}, nil) {
				yield(nil, domain.Errorf(domain.Unavailable, "cut"))
			}
		})
		<-w.begin("hi").done
		if spent, _ := w.store.Spent(t.Context(), "default", time.Now()); spent != cost {
			t.Errorf("the ledger holds %v", spent)
		}
		w.check()
	})
}

func TestCost_Limits(t *testing.T) {
	for name, c := range map[string]struct {
		agent   domain.Agent
		setting string
		instead string
	}{
		"of a session": {domain.Agent{MaxCostPerSession: cents(100)}, "agents.default.max_cost_per_session", "begin a new session"},
		"of a day":     {domain.Agent{MaxCostPerDay: cents(100)}, "agents.default.max_cost_per_day", "midnight"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				w.agents.agent.MaxCostPerSession, w.agents.agent.MaxCostPerDay = c.agent.MaxCostPerSession, c.agent.MaxCostPerDay
				w.model.play(charges(30))
				for range 4 {
					w.begin("more").want(domain.StopEndTurn)
				}
				before := w.records()
				for range 2 {
					r := w.begin("too much")
					<-r.done
					if !domain.HasCode(r.err, domain.CostLimit) {
						t.Fatalf("the error is %v", r.err)
					}
					for _, part := range []string{"$1.20", "$1.00", c.setting, c.instead} {
						if !strings.Contains(r.err.Error(), part) {
							t.Errorf("it does not say %q: %v", part, r.err)
						}
					}
				}
				if diff := cmp.Diff(before, w.records()); diff != "" {
					t.Errorf("refused prompts left (-before +after):\n%s", diff)
				}
				var warnings []string
				for _, u := range w.client.log() {
					if n, ok := u.(domain.Notice); ok {
						warnings = append(warnings, n.Title+" "+n.Detail)
					}
				}
				if len(warnings) != 1 || !strings.Contains(warnings[0], "$0.90 of the $1.00 allowed") || !strings.Contains(warnings[0], c.setting) {
					t.Errorf("warnings: %q", warnings)
				}
				w.agents.agent.MaxCostPerSession, w.agents.agent.MaxCostPerDay = 0, 0
				w.begin("raised").want(domain.StopEndTurn)
				w.check()
			})
		})
	}
}

// A limit that is reached in mid-turn ends the turn before the next request.
func TestCost_LimitInMidTurn(t *testing.T) {
	look := reader("look")
	bubble(t, []ports.Tool{look}, func(w *world) {
		w.agents.agent.MaxCostPerSession = cents(50)
		cost := cents(60)
		w.model.play(events(domain.FinishCalls, domain.UsageReported{Usage: domain.Usage{Input: 1}, Cost: &cost},
			domain.CallRequested{Call: domain.ModelCall{Name: "look", Args: []byte("{}")}}))
		r := w.begin("dig")
		<-r.done
		if !domain.HasCode(r.err, domain.CostLimit) || len(w.model.seen()) != 1 || look.ran() != 1 {
			t.Errorf("after %d requests and %d calls: %v", len(w.model.seen()), look.ran(), r.err)
		}
		recs := w.records()
		end, ok := recs[len(recs)-1].(domain.TurnFinished)
		if !ok || end.Failure == nil || end.Failure.Code != domain.CostLimit {
			t.Errorf("the journal ends with %+v", recs[len(recs)-1])
		}
		w.check()
	})
}

// A day's money is shared by all sessions and new the next day.
func TestCost_TheNextDay(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.agents.agent.MaxCostPerDay = cents(50)
		w.model.play(charges(60))
		w.begin("more").want(domain.StopEndTurn)
		first := w.id
		opened, err := w.sessions.New(t.Context(), w.client, domain.NewSession{Dirs: domain.Directories{Cwd: "/project"}})
		if err != nil {
			t.Fatal(err)
		}
		w.id = opened.Session.ID
		r := w.begin("another session")
		<-r.done
		if !domain.HasCode(r.err, domain.CostLimit) {
			t.Errorf("another session: %v", r.err)
		}
		w.id = first
		now := time.Now().UTC()
		time.Sleep(time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, time.UTC).Sub(now))
		w.begin("the next day").want(domain.StopEndTurn)
	})
}

// The money for a summary counts, and is not spent when there is none left.
func TestCost_OfSummaries(t *testing.T) {
	bubble(t, nil, func(w *world) {
		holds(w, 8000)
		w.client.info.Compaction = true
		w.agents.agent.MaxCostPerSession = cents(50)
		w.model.play(sumsUp(charges(60), replies(tokens(1500, "answer"))))
		for range 3 {
			w.begin("more").want(domain.StopEndTurn)
		}
		r := w.begin("the summary is too dear")
		<-r.done
		if !domain.HasCode(r.err, domain.CostLimit) {
			t.Errorf("after the summary: %v", r.err)
		}
		if rec := w.lastCompaction(); rec.Summary != "ok" || rec.Cost == nil || *rec.Cost != cents(60) {
			t.Errorf("the journal says %+v", rec)
		}
		w.check()
	})
}

func TestThoughts_AreTheAgents(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.begin("one").want(domain.StopEndTurn)
		w.agents.agent.Thoughts = domain.ThoughtsHigh
		w.begin("two").want(domain.StopEndTurn)
		seen := w.model.seen()
		if got := fmt.Sprint(seen[0].Thoughts, "|", seen[1].Thoughts); got != "|high" {
			t.Errorf("the model was told %s", got)
		}
	})
}

// Before anything was spent there is nothing to warn of, however small the
// limit.
func TestCost_NothingSpent(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.agents.agent.MaxCostPerSession = 1
		w.model.play(charges(30))
		w.begin("first").want(domain.StopEndTurn)
		for _, u := range w.client.log() {
			if n, ok := u.(domain.Notice); ok {
				t.Errorf("it is warned of %q", n.Title)
			}
		}
		w.check()
	})
}
