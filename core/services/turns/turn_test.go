package turns_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

func TestTurn_TextIsStreamedStoredAndAnswered(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(events(domain.FinishStop, domain.ThoughtDelta{Text: "hm"}, domain.TextDelta{Text: "he"}, domain.TextDelta{Text: "llo"},
			domain.UsageReported{Usage: domain.Usage{Input: 7, Output: 3}}))
		r := w.begin("greet me")
		r.want(domain.StopEndTurn)
		if got, want := kinds(w.client.log()), "TurnStarted InfoChanged AgentThought AgentText UsageChanged TurnEnded"; got != want {
			t.Errorf("the client was told %q, want %q", got, want)
		}
		usage := domain.Usage{Input: 7, Output: 3}
		if r.outcome.Text != "hello" || r.outcome.Usage != usage || r.outcome.Total != usage || r.outcome.Turn == "" {
			t.Errorf("outcome %+v", r.outcome)
		}
		row, err := w.store.Load(w.t.Context(), w.id)
		if err != nil || row.Title != "greet me" {
			t.Errorf("the session is called %q, %v", row.Title, err)
		}
		second := w.begin("again")
		second.want(domain.StopEndTurn)
		if want := usage.Plus(usage); second.outcome.Total != want || second.outcome.Usage != usage {
			t.Errorf("second turn used %+v of %+v", second.outcome.Usage, second.outcome.Total)
		}
		w.check()
	})
}

func TestTurn_PromptIsDurableBeforeTheModelIsAsked(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			if n := count[domain.UserSaid](w.records()); n != 1 {
				t.Errorf("the journal holds %d prompts when the model is asked", n)
			}
			if yield(domain.TextDelta{Text: "x"}, nil) {
				yield(domain.Finish{Reason: domain.FinishStop}, nil)
			}
		})
		w.begin("hi").want(domain.StopEndTurn)
		w.check()
	})
}

func TestTurn_CallsRunAndTheModelReadsTheirResults(t *testing.T) {
	a, b := reader("look"), editor("change")
	bubble(t, []ports.Tool{a, b}, func(w *world) {
		w.model.play(wants("let me", "look", "change"), says("done"))
		r := w.begin("go")
		r.want(domain.StopEndTurn)
		want := "TurnStarted InfoChanged AgentText CallOpened in_progress completed CallOpened in_progress completed AgentText UsageChanged TurnEnded"
		if got := kinds(w.client.log()); got != want {
			t.Errorf("told %q\nwant %q", got, want)
		}
		if r.outcome.Text != "done" {
			t.Errorf("the final message is %q", r.outcome.Text)
		}
		reqs := w.model.seen()
		var outputs []string
		for _, m := range reqs[1].Messages {
			if out, ok := m.(domain.ToolOutput); ok {
				outputs = append(outputs, out.Text)
			}
		}
		if diff := cmp.Diff([]string{"done by look", "done by change"}, outputs); diff != "" {
			t.Errorf("the model reads (-want +got):\n%s", diff)
		}
		if w.client.questions() != 1 || a.ran() != 1 || b.ran() != 1 || a.closed != 1 || b.closed != 1 {
			t.Errorf("asked %d times; ran %d, %d; closed %d, %d", w.client.questions(), a.ran(), b.ran(), a.closed, b.closed)
		}
		w.check()
	})
}

// An intent is durable before the call can have an effect, and so is the
// permission that allowed it.
func TestTurn_IntentAndPermissionAreDurableBeforeTheEffect(t *testing.T) {
	change := editor("change")
	bubble(t, []ports.Tool{change}, func(w *world) {
		change.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
			recs := w.records()
			if count[domain.CallBegan](recs) != 1 || count[domain.PermissionGiven](recs) != 1 || count[domain.AssistantSaid](recs) != 1 {
				t.Errorf("while the call runs the journal holds %T", recs)
			}
			return domain.ToolResult{Text: "ok"}, nil
		}
		w.model.play(wants("", "change"), says("done"))
		w.begin("go").want(domain.StopEndTurn)
		if change.ran() != 1 {
			t.Errorf("ran %d times", change.ran())
		}
		w.check()
	})
}

func TestTurn_ReadOnlyCallsRunSideBySide(t *testing.T) {
	look, change := reader("look"), editor("change")
	look.run, change.run = takes(time.Second), takes(time.Second)
	bubble(t, []ports.Tool{look, change}, func(w *world) {
		w.client.answer = choose("allow-once")
		w.model.play(wants("", "look", "look", "look", "look", "look", "look", "change", "look"), says("done"))
		start := time.Now()
		w.begin("go").want(domain.StopEndTurn)
		if look.most != 4 || change.most != 1 {
			t.Errorf("%d readers and %d editors ran at once, want 4 and 1", look.most, change.most)
		}
		if took := time.Since(start); took != 4*time.Second { // 4 + 2 readers, the editor, a reader
			t.Errorf("the calls took %v, want 4s", took)
		}
		var opened []string
		for _, u := range w.client.log() {
			if o, ok := u.(domain.CallOpened); ok {
				opened = append(opened, o.Name)
			}
		}
		if want := []string{"look", "look", "look", "look", "look", "look", "change", "look"}; !slices.Equal(opened, want) {
			t.Errorf("announced %v", opened)
		}
		w.check()
	})
}

// The order on the wire is the order in the journal, also when calls end at
// the same moment and the client is slow.
func TestTurn_ParallelEndsAreToldInJournalOrder(t *testing.T) {
	look := reader("look")
	bubble(t, []ports.Tool{look}, func(w *world) {
		w.client.setSend(func(ctx context.Context, _ domain.Update) error { return pause(ctx, 3*time.Millisecond) })
		look.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
			return domain.ToolResult{Text: "ok", Plan: []domain.PlanEntry{{Content: fmt.Sprint(look.ran())}}}, nil
		}
		w.model.play(wants("", "look", "look", "look", "look"), says("done"))
		w.begin("go").want(domain.StopEndTurn)
		var live, stored []domain.Update
		for _, u := range w.client.log() {
			if c, ok := u.(domain.CallChanged); ok && c.Status.Final() {
				live = append(live, u)
			}
			if _, ok := u.(domain.PlanChanged); ok {
				live = append(live, u)
			}
		}
		for _, r := range w.records() {
			switch r.(type) {
			case domain.CallFinished, domain.PlanSet:
				stored = append(stored, domain.Updates(r)...)
			}
		}
		if diff := cmp.Diff(stored, live); diff != "" || len(live) != 8 {
			t.Errorf("the wire and the journal differ (-journal +wire):\n%s", diff)
		}
		w.check()
	})
}

func TestTurn_InterleavedThoughtAndTextKeepTheirOrder(t *testing.T) {
	bubble(t, nil, func(w *world) {
		var evs []domain.ModelEvent
		var want strings.Builder
		for i := range 500 {
			evs = append(evs, domain.TextDelta{Text: fmt.Sprint("t", i, ";")}, domain.ThoughtDelta{Text: fmt.Sprint("h", i, ";")})
			fmt.Fprint(&want, "t", i, ";h", i, ";")
		}
		w.model.play(events(domain.FinishStop, evs...))
		w.client.setSend(func(ctx context.Context, _ domain.Update) error { return pause(ctx, time.Millisecond) }) // a slow reader
		w.begin("go").want(domain.StopEndTurn)
		var got strings.Builder
		for _, u := range w.client.log() {
			if x, ok := u.(domain.AgentText); ok {
				got.WriteString(x.Text)
			}
			if x, ok := u.(domain.AgentThought); ok {
				got.WriteString(x.Text)
			}
		}
		if got.String() != want.String() {
			t.Error("chunks were lost or jumbled")
		}
		w.check()
	})
}

func TestTurn_Stops(t *testing.T) {
	look := reader("look")
	cases := []struct {
		name  string
		steps []step
		want  domain.Stop
		text  string
		ran   int
	}{
		{"end", []step{says("a")}, domain.StopEndTurn, "a", 0},
		{"calls finish without calls", []step{events(domain.FinishCalls, domain.TextDelta{Text: "a"})}, domain.StopEndTurn, "a", 0},
		{"stop finish with calls runs them", []step{events(domain.FinishStop, domain.CallRequested{Call: domain.ModelCall{Name: "look", Args: []byte("{}")}}), says("b")}, domain.StopEndTurn, "b", 1},
		{"cut at the token limit", []step{events(domain.FinishLength, domain.TextDelta{Text: "a"})}, domain.StopMaxTokens, "a", 0},
		{"a cut reply's calls never run", []step{events(domain.FinishLength, domain.TextDelta{Text: "a"}, domain.CallRequested{Call: domain.ModelCall{Name: "look", Args: []byte("{}")}})}, domain.StopMaxTokens, "a", 0},
		{"nothing but a cut", []step{events(domain.FinishLength)}, domain.StopMaxTokens, "", 0},
		{"refused", []step{events(domain.FinishRefusal, domain.TextDelta{Text: "no"})}, domain.StopRefusal, "no", 0},
		{"a refusing reply's calls never run", []step{events(domain.FinishRefusal, domain.CallRequested{Call: domain.ModelCall{Name: "look", Args: []byte("{}")}})}, domain.StopRefusal, "", 0},
		{"as many requests as it may", []step{wants("again", "look")}, domain.StopMaxTurnRequests, "again", 10},
		{"an empty last reply after work was done", []step{wants("a", "look"), events(domain.FinishStop)}, domain.StopEndTurn, "", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			look.runs = 0
			bubble(t, []ports.Tool{look}, func(w *world) {
				w.model.play(c.steps...)
				r := w.begin("go")
				r.want(c.want)
				if r.outcome.Text != c.text || look.ran() != c.ran {
					t.Errorf("text %q, %d calls ran; want %q, %d", r.outcome.Text, look.ran(), c.text, c.ran)
				}
				recs := w.records()
				if end, ok := recs[len(recs)-1].(domain.TurnFinished); !ok || end.Stop != c.want {
					t.Errorf("the journal ends with %+v", recs[len(recs)-1])
				}
				if said, ok := recs[len(recs)-2].(domain.AssistantSaid); ok && len(said.Calls) > 0 {
					t.Errorf("the last reply asks for calls that never run: %+v", said)
				}
				w.check()
				w.model.play(says("next"))
				w.begin("next").want(domain.StopEndTurn)
				w.check()
			})
		})
	}
}

func TestTurn_RequestLimitIsTruthful(t *testing.T) {
	look := reader("look")
	for _, most := range []int{1, 2, 5} {
		bubble(t, []ports.Tool{look}, func(w *world) {
			w.agents.agent.MaxTurnRequests = most
			w.model.play(wants("again", "look"))
			w.begin("go").want(domain.StopMaxTurnRequests)
			if n := len(w.model.seen()); n != most {
				t.Errorf("the model was asked %d times, allowed are %d", n, most)
			}
			w.check()
			last := len(w.model.seen())
			w.model.play(says("ok"))
			w.begin("next").want(domain.StopEndTurn)
			msgs := w.model.seen()[last].Messages
			if _, ok := msgs[len(msgs)-2].(domain.ToolOutput); !ok {
				t.Errorf("before the next prompt stands %T", msgs[len(msgs)-2])
			}
		})
	}
}

func TestTurn_RefusalDropsTheTurnFromTheContext(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(says("fine"), events(domain.FinishRefusal, domain.TextDelta{Text: "no"}), says("ok"))
		w.begin("one").want(domain.StopEndTurn)
		w.begin("two").want(domain.StopRefusal)
		w.begin("three").want(domain.StopEndTurn)
		var said []string
		for _, m := range w.model.seen()[2].Messages {
			if in, ok := m.(domain.UserInput); ok {
				said = append(said, domain.PromptText(in.Blocks))
			}
		}
		if diff := cmp.Diff([]string{"one", "three"}, said); diff != "" {
			t.Errorf("the model still sees (-want +got):\n%s", diff)
		}
		w.check()
	})
}

func TestTurn_ModelFailuresAreErrorsAndTheSessionGoesOn(t *testing.T) {
	look := reader("look")
	for _, code := range domain.Codes() {
		for _, partial := range []string{"", "half an answer"} {
			t.Run(fmt.Sprintf("%v after %q", code, partial), func(t *testing.T) {
				bubble(t, []ports.Tool{look}, func(w *world) {
					w.model.play(wants("", "look"), fails(partial, domain.WrapError(code, errors.New("secret detail"), "It did not work")), says("better"))
					r := w.begin("go")
					<-r.done
					if !domain.HasCode(r.err, code) {
						t.Errorf("the error is %v, want code %v", r.err, code)
					}
					recs := w.records()
					end, ok := recs[len(recs)-1].(domain.TurnFinished)
					want := domain.Failure{Code: code, Msg: "It did not work"}
					if code == domain.ContextTooLong && partial == "" {
						want.Msg = "The conversation is too long for test/one, and making it shorter did not help: " +
							"send a shorter prompt, begin a new session, or choose a model with a larger window"
					}
					if !ok || end.Failure == nil || *end.Failure != want {
						t.Errorf("the journal ends with %+v", recs[len(recs)-1])
					}
					if partial != "" && !strings.Contains(words(w.client.log()), partial) {
						t.Error("the half was not shown")
					}
					w.check() // live and replay agree, the half included
					w.begin("again").want(domain.StopEndTurn)
					w.check()
				})
			})
		}
	}
}

func TestTurn_WhatIsNoReplyIsAnError(t *testing.T) {
	call := domain.CallRequested{Call: domain.ModelCall{Name: "look", Args: []byte("{}")}}
	raw := func(evs ...domain.ModelEvent) step {
		return func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			for _, ev := range evs {
				if !yield(ev, nil) {
					return
				}
			}
		}
	}
	cases := map[string]step{
		"a stream without a finish":           raw(domain.TextDelta{Text: "half"}),
		"a stream without a finish but calls": raw(domain.TextDelta{Text: "half"}, call),
		"an empty stream":                     raw(),
		"an empty reply":                      events(domain.FinishStop, domain.UsageReported{Usage: domain.Usage{Input: 1}}),
		"a reply with nothing it promised":    events(domain.FinishCalls),
	}
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			look := reader("look")
			bubble(t, []ports.Tool{look}, func(w *world) {
				w.model.play(s, says("ok"))
				r := w.begin("go")
				<-r.done
				if !domain.HasCode(r.err, domain.Unavailable) || look.ran() != 0 {
					t.Errorf("error %v, %d calls ran", r.err, look.ran())
				}
				w.check()
				w.begin("again").want(domain.StopEndTurn)
			})
		})
	}
}

func TestTurn_UncodedFailuresAreNotShown(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(fails("", errors.New("password=hunter2")))
		r := w.begin("go")
		<-r.done
		if r.err == nil || domain.HasCode(r.err, domain.Internal) {
			t.Errorf("the error is %v", r.err)
		}
		for _, rec := range w.records() {
			if strings.Contains(fmt.Sprintf("%+v", rec), "hunter2") {
				t.Errorf("the detail stands in the journal: %+v", rec)
			}
		}
		if strings.Contains(show(w.client.log()), "hunter2") {
			t.Error("the detail was shown")
		}
		w.check()
	})
}

func TestTurn_ARetryIsShown(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(events(domain.FinishStop, domain.Retrying{Attempt: 1, Wait: 1500 * time.Millisecond, Reason: "The provider is busy"}, domain.TextDelta{Text: "a"}))
		w.begin("go").want(domain.StopEndTurn)
		for _, u := range w.client.log() {
			if n, ok := u.(domain.Notice); ok {
				if want := "The provider is busy. Attempt 2 follows in 1.5s."; n.Detail != want {
					t.Errorf("notice %q, want %q", n.Detail, want)
				}
				return
			}
		}
		t.Error("no notice was sent")
	})
}

func TestTurn_ToolFailuresAreResultsTheModelReads(t *testing.T) {
	refuse := func(err error) func(context.Context, domain.ToolCall) error {
		return func(context.Context, domain.ToolCall) error { return err }
	}
	cases := []struct {
		name string
		make func() *tool
		call string
		want string // what the model reads
		ran  int
	}{
		{"an unknown tool", func() *tool { return reader("look") }, "lok", `There is no tool "lok". Tools: update_plan, look.`, 0},
		{"wrong arguments", func() *tool {
			x := reader("look")
			x.prepare = refuse(domain.Errorf(domain.InvalidArgument, "path is missing"))
			return x
		}, "look", "path is missing", 0},
		{"an uncoded error of Prepare", func() *tool { x := reader("look"); x.prepare = refuse(errors.New("secret")); return x }, "look",
			"The tool look failed internally; try something else.", 0},
		{"a panic of Prepare", func() *tool {
			x := reader("look")
			x.prepare = func(context.Context, domain.ToolCall) error { panic("secret") }
			return x
		}, "look", "The tool look failed internally; try something else.", 0},
		{"a panic of Plan", func() *tool { x := editor("look"); x.plan = func() domain.ToolPlan { panic("secret") }; return x }, "look",
			"The tool look failed internally; try something else.", 0},
		{"a failed result", func() *tool {
			x := reader("look")
			x.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
				return domain.ToolResult{Failed: true, Text: "no such line"}, nil
			}
			return x
		}, "look", "no such line", 1},
		{"an uncoded error of Run", func() *tool {
			x := reader("look")
			x.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
				return domain.ToolResult{}, errors.New("secret")
			}
			return x
		}, "look", "The tool look failed internally; try something else.", 1},
		{"a panic of Run", func() *tool {
			x := reader("look")
			x.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) { panic("secret") }
			return x
		}, "look", "The tool look failed internally; try something else.", 1},
	}
	for _, c := range cases {
		for _, level := range []domain.Level{domain.LevelSupervised, domain.LevelFull} {
			t.Run(c.name+" "+string(level), func(t *testing.T) {
				x := c.make()
				bubble(t, []ports.Tool{x}, func(w *world) {
					w.agents.agent.Policy.Level = level
					w.model.play(wants("", c.call, c.call), says("done"))
					w.begin("go").want(domain.StopEndTurn)
					for _, m := range w.model.seen()[1].Messages {
						if out, ok := m.(domain.ToolOutput); ok && (out.Text != c.want || !out.Failed) {
							t.Errorf("the model reads %q, failed %v; want %q", out.Text, out.Failed, c.want)
						}
					}
					if x.ran() != 2*c.ran || w.client.questions() != 0 {
						t.Errorf("it ran %d times and asked %d times", x.ran(), w.client.questions())
					}
					if strings.Contains(show(w.client.log()), "secret") {
						t.Error("an internal detail was shown")
					}
					w.check()
				})
			})
		}
	}
}

func TestTurn_APanicEndsThisTurnAlone(t *testing.T) {
	boom := func(context.Context, domain.ModelRequest, func(domain.ModelEvent, error) bool) { panic("secret") }
	half := func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		yield(domain.TextDelta{Text: "half"}, nil)
		panic("secret")
	}
	cases := map[string]func(*world){
		"in the model":            func(w *world) { w.model.play(boom, says("ok")) },
		"in the model mid-stream": func(w *world) { w.model.play(half, says("ok")) },
		"in the question of a parallel call": func(w *world) {
			w.agents.agent.Policy.AlwaysAsk = []domain.ToolRule{{Tool: "look"}}
			w.client.answer = func(context.Context, domain.PermissionRequest) (domain.Decision, error) { panic("secret") }
			w.model.play(wants("a", "look", "look"), says("ok"))
		},
		"in the question of a single call": func(w *world) {
			w.client.answer = func(context.Context, domain.PermissionRequest) (domain.Decision, error) { panic("secret") }
			w.model.play(wants("a", "change"), says("ok"))
		},
		"in opening the model": func(w *world) {
			first := true
			w.models.onOpen = func(context.Context) error {
				if first {
					first = false
					panic("secret")
				}
				return nil
			}
			w.model.play(says("ok"))
		},
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, []ports.Tool{reader("look"), editor("change")}, func(w *world) {
				set(w)
				r := w.begin("go")
				<-r.done
				if r.err == nil {
					t.Fatalf("the turn ended with %v", r.outcome.Stop)
				}
				w.check()
				if strings.Contains(show(w.client.log()), "secret") || strings.Contains(fmt.Sprint(w.records()), "secret") {
					t.Error("the panic's value reached the client or the journal")
				}
				if !slices.ContainsFunc(w.observer.troubles(), func(s string) bool { return strings.Contains(s, "secret") }) {
					t.Error("the observer saw no panic")
				}
				w.client.answer = nil
				w.begin("again").want(domain.StopEndTurn)
				w.check()
			})
		})
	}
}

// An end that is journalled and could not be told is told when the turn ends,
// and no other.
func TestTurn_AnEndThatCouldNotBeTold(t *testing.T) {
	change := editor("change")
	bubble(t, []ports.Tool{change}, func(w *world) {
		failed := false
		w.client.setSend(func(_ context.Context, u domain.Update) error {
			if c, ok := u.(domain.CallChanged); ok && c.Status.Final() && !failed {
				failed = true
				return errors.New("cannot be encoded")
			}
			return nil
		})
		w.model.play(wants("", "change"), says("ok"))
		r := w.begin("go")
		<-r.done
		if r.err == nil {
			t.Error("an update that could not be sent is no failure")
		}
		w.check()
		w.begin("again").want(domain.StopEndTurn)
		w.check()
	})
}

// A tool that goes on reporting after it has returned is not heard: its call
// has a final status.
func TestTurn_LateProgressIsDropped(t *testing.T) {
	look := reader("look")
	bubble(t, []ports.Tool{look}, func(w *world) {
		var late func(domain.ToolProgress)
		look.run = func(_ context.Context, progress func(domain.ToolProgress)) (domain.ToolResult, error) {
			progress(domain.ToolProgress{Title: "half way"})
			late = progress
			return domain.ToolResult{Text: "ok"}, nil
		}
		w.model.play(wants("", "look"), func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			late(domain.ToolProgress{Title: "in the next step"})
			if yield(domain.TextDelta{Text: "done"}, nil) {
				yield(domain.Finish{Reason: domain.FinishStop}, nil)
			}
		})
		w.begin("go").want(domain.StopEndTurn)
		late(domain.ToolProgress{Title: "after the turn"})
		if got := show(w.client.log()); !strings.Contains(got, "half way") || strings.Contains(got, "next step") || strings.Contains(got, "after the turn") {
			t.Errorf("told:\n%s", got)
		}
		if got := w.observer.troubles(); len(got) != 2 || !strings.Contains(got[0], "late progress") || !strings.Contains(got[1], "late progress") {
			t.Errorf("the observer saw %q", got)
		}
		w.check()
	})
}

func TestTurn_PlanIsTheSessions(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(events(domain.FinishCalls,
			domain.CallRequested{Call: domain.ModelCall{Name: "update_plan", Args: []byte(`{"entries":[{"content":"a","status":"in_progress"}]}`)}},
			domain.CallRequested{Call: domain.ModelCall{Name: "update_plan", Args: []byte(`{"entries":[]}`)}},
			domain.CallRequested{Call: domain.ModelCall{Name: "update_plan", Args: []byte(`{"entries":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`)}},
			domain.CallRequested{Call: domain.ModelCall{Name: "update_plan", Args: []byte(`{"entries":[{"content":" ","status":"done"}]}`)}},
			domain.CallRequested{Call: domain.ModelCall{Name: "update_plan", Args: []byte(`{"entries":[{"content":"a","status":"completed"}],"x":1}`)}},
		), says("ok"))
		w.begin("go").want(domain.StopEndTurn)
		var plans []domain.PlanChanged
		for _, u := range w.client.log() {
			if p, ok := u.(domain.PlanChanged); ok {
				plans = append(plans, p)
			}
		}
		want := []domain.PlanChanged{{Entries: []domain.PlanEntry{{Content: "a", Priority: "medium", Status: "in_progress"}}}}
		if diff := cmp.Diff(want, plans); diff != "" {
			t.Errorf("plans (-want +got):\n%s", diff)
		}
		if w.client.questions() != 0 {
			t.Error("a plan asks for permission")
		}
		w.check()
	})
}

// A tool of the session cannot stand in for one of the engine's, and a model
// is never offered a name twice.
func TestTurn_ToolNamesAreUnique(t *testing.T) {
	false1, false2, false3 := editor("update_plan"), reader("look"), reader("look")
	bubble(t, []ports.Tool{false1, false2, false3}, func(w *world) {
		w.model.play(says("ok"))
		w.begin("go").want(domain.StopEndTurn)
		var names []string
		for _, s := range w.model.seen()[0].Tools {
			names = append(names, s.Name)
		}
		if want := []string{"update_plan", "look"}; !slices.Equal(names, want) {
			t.Errorf("the model is offered %v, want %v", names, want)
		}
	})
}

func TestTurn_BlobsAreStoredBeforeThePromptIsJournalled(t *testing.T) {
	bubble(t, nil, func(w *world) {
		blob := func(n int) domain.Block {
			return domain.Resource{URI: "file:///x", MIME: "image/png", Blob: make([]byte, n), Binary: true}
		}
		r, err := w.tryBlocks(domain.Prompt{Blocks: []domain.Block{domain.Text{Text: "see"}, blob(3), domain.Resource{URI: "u", Text: "t"}, blob(5)}})
		if err != nil {
			t.Fatal(err)
		}
		r.want(domain.StopEndTurn)
		said := w.records()[0].(domain.UserSaid)
		var got []string
		for _, b := range said.Blocks {
			got = append(got, fmt.Sprintf("%T", b))
		}
		if want := []string{"domain.Text", "domain.Attachment", "domain.Resource", "domain.Attachment"}; !slices.Equal(got, want) {
			t.Errorf("the journal holds %v", got)
		}
		if text := domain.PromptText(w.model.seen()[0].Messages[0].(domain.UserInput).Blocks); !strings.Contains(text, "[IMAGE: /project/uploads/3.bin]") {
			t.Errorf("the model reads %q", text)
		}
		w.check()

		w.blobs.onStore = func(context.Context) error { return domain.Errorf(domain.TooLarge, "too large") }
		before := len(w.records())
		r, err = w.tryBlocks(domain.Prompt{Blocks: []domain.Block{blob(9)}})
		if err != nil {
			t.Fatal(err)
		}
		<-r.done
		if !domain.HasCode(r.err, domain.TooLarge) || len(w.records()) != before {
			t.Errorf("error %v; %d records were added: a prompt that is refused leaves no turn", r.err, len(w.records())-before)
		}
	})
}

// The first text names the session, also when the first prompt had none.
func TestTurn_Title(t *testing.T) {
	bubble(t, nil, func(w *world) {
		r, err := w.tryBlocks(domain.Prompt{Blocks: []domain.Block{domain.Link{URI: "file:///a", Name: "a"}}})
		if err != nil {
			t.Fatal(err)
		}
		r.want(domain.StopEndTurn)
		w.begin("second").want(domain.StopEndTurn)
		w.begin("third").want(domain.StopEndTurn)
		row, err := w.store.Load(w.t.Context(), w.id)
		if err != nil || row.Title != "second" || count[domain.TitleSet](w.records()) != 1 {
			t.Errorf("the title is %q, %v", row.Title, err)
		}
		w.check()
	})
}

func TestTurn_EmptyPromptIsRefusedAtOnce(t *testing.T) {
	bubble(t, nil, func(w *world) {
		_, err := w.tryBegin(" \n")
		if !domain.HasCode(err, domain.InvalidArgument) {
			t.Errorf("error %v", err)
		}
		if len(w.records()) != 0 || len(w.client.log()) != 0 {
			t.Error("it left a trace")
		}
	})
}

// Many sessions at once, each with turns of several steps, keep apart.
func TestTurn_ManySessionsKeepApart(t *testing.T) {
	look := reader("look")
	look.run = takes(5 * time.Millisecond)
	bubble(t, []ports.Tool{look}, func(w *world) {
		w.model.play(func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			if _, answered := req.Messages[len(req.Messages)-1].(domain.ToolOutput); answered {
				says("done for "+string(req.Session))(ctx, req, yield)
				return
			}
			wants("", "look")(ctx, req, yield)
		})
		var all []func() error
		for range 9 {
			c := &client{}
			opened, err := w.sessions.New(w.t.Context(), c, domain.NewSession{Dirs: domain.Directories{Cwd: "/project"}})
			if err != nil {
				t.Fatal(err)
			}
			id := opened.Session.ID
			done := make(chan error, 1)
			go func() {
				for range 20 {
					run, err := w.engine.Begin(w.t.Context(), c, id, domain.Prompt{Blocks: []domain.Block{domain.Text{Text: "go"}}})
					if err != nil {
						done <- err
						return
					}
					outcome, err := run()
					if err != nil || outcome.Text != "done for "+string(id) {
						done <- fmt.Errorf("outcome %+v, %w", outcome, err)
						return
					}
				}
				done <- wholeStory(c.log())
			}()
			all = append(all, func() error { return <-done })
		}
		for _, wait := range all {
			if err := wait(); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
	})
}

// A model that learns its window from its first answer has it told with that
// answer.
func TestTurn_WindowThatIsLearned(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.info = &domain.ModelInfo{Ref: domain.ModelRef{Provider: "test", Model: "one"}}
		w.model.play(func(_ context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
			learned := *w.model.info
			learned.ContextWindow = 4096
			w.model.info = &learned
			_ = yield(domain.TextDelta{Text: "hello"}, nil) && yield(domain.UsageReported{Usage: domain.Usage{Input: 7}}, nil) &&
				yield(domain.Finish{Reason: domain.FinishStop}, nil)
		})
		w.begin("go").want(domain.StopEndTurn)
		want := domain.UsageChanged{Used: 7, Size: 4096}
		if !slices.ContainsFunc(w.client.log(), func(u domain.Update) bool { got, ok := u.(domain.UsageChanged); return ok && got == want }) {
			t.Errorf("the window was not told: %v", w.client.log())
		}
		w.check()
	})
}

// Who answers in the model's place is told once a turn, and is the one whose
// steps are observed.
func TestTurn_FallbackIsToldOnce(t *testing.T) {
	look := reader("look")
	other := domain.ModelInfo{Ref: domain.ModelRef{Provider: "other", Model: "two"}}
	fell := domain.FellBack{From: domain.ModelRef{Provider: "test", Model: "one"}, To: other, Reason: "busy"}
	bubble(t, []ports.Tool{look}, func(w *world) {
		w.model.play(
			events(domain.FinishCalls, fell, domain.CallRequested{Call: domain.ModelCall{Name: "look", Args: []byte("{}")}}),
			events(domain.FinishStop, fell, domain.TextDelta{Text: "ok"}),
			events(domain.FinishStop, fell, domain.TextDelta{Text: "ok again"}),
		)
		w.begin("go").want(domain.StopEndTurn)
		told := func() (n int) {
			for _, u := range w.client.log() {
				if notice, ok := u.(domain.Notice); ok && notice.Title == "other/two answers in place of test/one" {
					n++
				}
			}
			return n
		}
		if n := told(); n != 1 {
			t.Errorf("a turn of two steps told it %d times", n)
		}
		w.begin("again").want(domain.StopEndTurn)
		if n := told(); n != 2 {
			t.Errorf("after the next turn it was told %d times", n)
		}
		for _, ev := range w.observer.seen() {
			if step, ok := ev.(domain.StepDone); ok && step.Model != other.Ref {
				t.Errorf("a step of %s was observed", step.Model)
			}
		}
		w.check()
	})
}
