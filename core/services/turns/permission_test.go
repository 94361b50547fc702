package turns_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

func TestPermission_Answers(t *testing.T) {
	selected := func(id string) domain.Decision {
		return domain.Decision{Outcome: domain.Selected, Option: id}
	}
	rule := func(allow bool) []domain.Rule {
		return []domain.Rule{{Allow: allow, Tool: "change", Scope: "/project"}}
	}
	cases := []struct {
		name     string
		decision domain.Decision
		err      error
		runs     bool
		reads    string // what the model reads of a call that did not run, in part
		rule     []domain.Rule
		outcome  domain.Outcome
	}{
		{"allow once", selected("allow-once"), nil, true, "", nil, domain.Selected},
		{"allow always", selected("allow-always"), nil, true, "", rule(true), domain.Selected},
		{"reject once", selected("reject-once"), nil, false, "the user rejected this call", nil, domain.Selected},
		{"reject always", selected("reject-always"), nil, false, "the user rejected this call", rule(false), domain.Selected},
		{"an option nobody offered", selected("allow-everything"), nil, false, "there was no answer", nil, domain.Unanswered},
		{"no option", selected(""), nil, false, "there was no answer", nil, domain.Unanswered},
		{"an option without the outcome", domain.Decision{Option: "allow-once"}, nil, false, "there was no answer", nil, domain.Unanswered},
		{"an unknown outcome", domain.Decision{Outcome: 9, Option: "allow-once"}, nil, false, "there was no answer", nil, domain.Unanswered},
		{"an error", selected("allow-once"), errors.New("method not found"), false, "the client could not be asked", nil, domain.Unanswered},
		{"no answer, with a reason", domain.Decision{Note: "it has no screen"}, nil, false, "(it has no screen)", nil, domain.Unanswered},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			change := editor("change")
			bubble(t, []ports.Tool{change}, func(w *world) {
				w.client.answer = func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
					return c.decision, c.err
				}
				w.model.play(wants("", "change"), says("went on"))
				r := w.begin("go")
				r.want(domain.StopEndTurn) // a refusal does not end the turn
				if change.ran() == 1 != c.runs {
					t.Errorf("the call ran %d times", change.ran())
				}
				var given []domain.PermissionGiven
				for _, rec := range w.records() {
					if g, ok := rec.(domain.PermissionGiven); ok {
						given = append(given, g)
					}
				}
				want := []domain.PermissionGiven{{Turn: r.outcome.Turn, Call: domain.CallID(r.outcome.Turn + "-c1"), Outcome: c.outcome, Rules: c.rule}}
				if c.outcome == domain.Selected {
					want[0].Option = c.decision.Option
				}
				if diff := cmp.Diff(want, given); diff != "" {
					t.Errorf("the journal's permissions (-want +got):\n%s", diff)
				}
				for _, m := range w.model.seen()[1].Messages {
					if out, ok := m.(domain.ToolOutput); ok && (out.Failed == c.runs || !strings.Contains(out.Text, c.reads)) {
						t.Errorf("the model reads %q", out.Text)
					}
				}
				w.check()
			})
		})
	}
}

func TestPermission_RequestShowsWhatWillHappen(t *testing.T) {
	change := editor("change")
	change.plan = func() domain.ToolPlan {
		return domain.ToolPlan{Title: "Edit a.go", Kind: domain.KindEdit, Locations: []domain.Location{{Path: "/project/a.go", Line: 3}},
			Content: []domain.CallContent{domain.Diff{Path: "/project/a.go", OldText: "a", NewText: "b"}},
			Access:  domain.Access{Class: domain.AccessEdit, Tool: "something else", Scope: "/project", Reason: "it changes a file"}}
	}
	bubble(t, []ports.Tool{change}, func(w *world) {
		w.client.answer = func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
			last := w.client.log()[len(w.client.log())-1]
			opened, ok := last.(domain.CallOpened)
			if !ok || opened.Status != domain.CallPending {
				t.Errorf("when the question is asked the last update is %T%+v", last, last)
			}
			time.Sleep(3 * time.Second)
			if again := w.client.log()[len(w.client.log())-1]; !cmp.Equal(again, last) {
				t.Errorf("while the question is open the client was told %T%+v", again, again)
			}
			return domain.Decision{Outcome: domain.Selected, Option: "allow-once"}, nil
		}
		w.model.play(wants("", "change"), says("ok"))
		w.begin("go").want(domain.StopEndTurn)
		ask := w.client.asked[0]
		want := domain.PermissionRequest{
			Session: w.id, Turn: w.turns[0].outcome.Turn, Reason: "it changes a file",
			Call: domain.CallOpened{
				ID: ask.Call.ID, Name: "change", Title: "Edit a.go", Kind: domain.KindEdit, Status: domain.CallPending, RawInput: []byte(`{"x":1}`),
				Locations: []domain.Location{{Path: "/project/a.go", Line: 3}}, Content: []domain.CallContent{domain.Diff{Path: "/project/a.go", OldText: "a", NewText: "b"}},
			},
			Options: []domain.PermissionOption{
				{ID: "allow-once", Name: "Allow once", Kind: domain.AllowOnce},
				{ID: "allow-always", Name: "Always allow change in /project in this session", Kind: domain.AllowAlways},
				{ID: "reject-once", Name: "Reject", Kind: domain.RejectOnce},
				{ID: "reject-always", Name: "Never allow change in /project in this session", Kind: domain.RejectAlways},
			},
		}
		if diff := cmp.Diff(want, ask); diff != "" {
			t.Errorf("the request (-want +got):\n%s", diff)
		}
		w.check()
	})
}

// Always-options are left out where nothing may be remembered, and such an
// answer is then no answer.
func TestPermission_AlwaysIsOnlyOfferedWhereItHolds(t *testing.T) {
	for name, set := range map[string]func(*tool, *world){
		"no scope":   func(x *tool, _ *world) { x.access.Scope = "" },
		"protected":  func(x *tool, _ *world) { x.access.Protected = true },
		"always ask": func(_ *tool, w *world) { w.agents.agent.Policy.AlwaysAsk = []domain.ToolRule{{Tool: "change"}} },
	} {
		t.Run(name, func(t *testing.T) {
			change := editor("change")
			bubble(t, []ports.Tool{change}, func(w *world) {
				set(change, w)
				w.client.answer = choose("allow-always")
				w.model.play(wants("", "change"), says("ok"))
				w.begin("go").want(domain.StopEndTurn)
				if len(w.client.asked[0].Options) != 2 || change.ran() != 0 {
					t.Errorf("offered %v; ran %d times", w.client.asked[0].Options, change.ran())
				}
				w.check()
			})
		})
	}
}

func TestPermission_RememberedForTheSession(t *testing.T) {
	for _, c := range []struct {
		option string
		runs   int
	}{{"allow-always", 6}, {"reject-always", 0}} {
		t.Run(c.option, func(t *testing.T) {
			change, other := editor("change"), editor("other")
			bubble(t, []ports.Tool{change, other}, func(w *world) {
				w.client.answer = choose(c.option)
				w.model.play(wants("", "change", "change", "change"), says("ok"))
				w.begin("go").want(domain.StopEndTurn)
				if w.client.questions() != 1 || change.ran() != c.runs/2 {
					t.Errorf("asked %d times, ran %d times", w.client.questions(), change.ran())
				}
				// It survives the session's leaving memory and coming back.
				w.reopen()
				w.model.play(wants("", "change", "change", "change"), says("ok"))
				w.begin("go").want(domain.StopEndTurn)
				if w.client.questions() != 1 || change.ran() != c.runs {
					t.Errorf("after a load: asked %d times, ran %d times", w.client.questions(), change.ran())
				}
				// Another tool asks for itself.
				w.client.answer = choose("allow-once")
				w.model.play(wants("", "other"), says("ok"))
				w.begin("go").want(domain.StopEndTurn)
				w.model.play(wants("", "other"), says("ok"))
				w.begin("go").want(domain.StopEndTurn)
				if w.client.questions() != 3 || other.ran() != 2 {
					t.Errorf("another tool: asked %d times, ran %d times", w.client.questions(), other.ran())
				}
				// Another session knows nothing of it.
				opened, err := w.sessions.New(w.t.Context(), w.client, domain.NewSession{Dirs: domain.Directories{Cwd: "/project"}})
				if err != nil {
					t.Fatal(err)
				}
				w.check()
				first := w.id
				w.id = opened.Session.ID
				w.model.play(wants("", "change"), says("ok"))
				w.begin("go").want(domain.StopEndTurn)
				if w.client.questions() != 4 {
					t.Errorf("in another session %d questions were asked", w.client.questions())
				}
				w.id = first
			})
		})
	}
}

// reopen closes the session and opens it again, as after a restart.
func (w *world) reopen() {
	w.t.Helper()
	end, err := w.sessions.Close(w.client, w.id)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := end(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	open, err := w.sessions.Open(w.client, domain.OpenSession{ID: w.id})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := open(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

// "cancelled" for one call ends the turn; nothing later of that reply runs.
func TestPermission_Withdrawn(t *testing.T) {
	change, look := editor("change"), reader("look")
	bubble(t, []ports.Tool{change, look}, func(w *world) {
		w.client.answer = func(context.Context, domain.PermissionRequest) (domain.Decision, error) {
			return domain.Decision{Outcome: domain.Withdrawn}, nil
		}
		w.model.play(wants("a", "change", "change", "look"), says("never"))
		w.begin("go").want(domain.StopCancelled)
		if change.ran()+look.ran() != 0 || len(w.model.seen()) != 1 || w.client.questions() != 1 {
			t.Errorf("ran %d, %d; asked the model %d times and the person %d times", change.ran(), look.ran(), len(w.model.seen()), w.client.questions())
		}
		if got := kinds(w.client.log()); got != "TurnStarted InfoChanged AgentText CallOpened failed TurnEnded" {
			t.Errorf("told %q: a call that never was announced needs no end", got)
		}
		w.check()
		w.client.answer = nil
		after(w)
	})
}

// A tool that asks the person something itself ends the turn as a permission
// does when the person cancels.
func TestTool_CancelledByThePersonItAsks(t *testing.T) {
	ask := editor("ask")
	ask.access = domain.Access{Class: domain.AccessNone}
	ask.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
		return domain.ToolResult{}, fmt.Errorf("ask: %w", domain.CancelledByClient)
	}
	bubble(t, []ports.Tool{ask}, func(w *world) {
		w.model.play(wants("a", "ask"), says("never"))
		w.begin("go").want(domain.StopCancelled)
		if len(w.model.seen()) != 1 {
			t.Errorf("asked the model %d times", len(w.model.seen()))
		}
		w.check()
		ask.run = nil
		after(w)
	})
}

func TestPermission_NobodyAnswersInTime(t *testing.T) {
	change := editor("change")
	bubble(t, []ports.Tool{change}, func(w *world) {
		w.client.answer = func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
			<-ctx.Done()
			return domain.Decision{}, context.Cause(ctx)
		}
		w.model.play(wants("", "change"), says("ok"))
		start := time.Now()
		r := w.begin("go")
		r.want(domain.StopEndTurn)
		if took := r.at.Sub(start); took != askLimit || change.ran() != 0 {
			t.Errorf("after %v the call ran %d times", took, change.ran())
		}
		if out := w.model.seen()[1].Messages[2].(domain.ToolOutput); !strings.Contains(out.Text, "nobody answered in time") {
			t.Errorf("the model reads %q", out.Text)
		}
		w.check()
	})
}

// An answer that comes together with the cancel, or after it, allows nothing.
func TestPermission_LateAllowRunsNothing(t *testing.T) {
	change := editor("change")
	bubble(t, []ports.Tool{change}, func(w *world) {
		w.client.answer = func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
			<-ctx.Done()
			return domain.Decision{Outcome: domain.Selected, Option: "allow-always"}, nil
		}
		w.model.play(wants("", "change"))
		r := w.begin("go")
		synctest.Wait()
		w.stop()
		r.want(domain.StopCancelled)
		if change.ran() != 0 || count[domain.PermissionGiven](w.records()) != 0 {
			t.Errorf("it ran %d times and the journal holds %+v", change.ran(), w.records())
		}
		w.check()
		w.client.answer = nil
		after(w)
	})
}

func TestPermission_Disconnect(t *testing.T) {
	change := editor("change")
	bubble(t, []ports.Tool{change}, func(w *world) {
		gone := make(chan struct{})
		w.client.answer = func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
			select {
			case <-gone:
				return domain.Decision{}, fmt.Errorf("ask: %w", domain.Disconnected)
			case <-ctx.Done():
				return domain.Decision{}, context.Cause(ctx)
			}
		}
		w.model.play(wants("", "change"), says("never read"))
		r := w.begin("go")
		synctest.Wait()
		w.client.gone()
		close(gone) // the question fails a moment before the session hears of it
		w.sessions.Detach(w.client, domain.Disconnected)
		r.want(domain.StopCancelled)
		synctest.Wait()
		if change.ran() != 0 {
			t.Error("a call ran although nobody allowed it")
		}
		checkJournal(w)
		if left := w.box.left(); left != 0 {
			t.Errorf("%d toolsets are open after the client has gone", left)
		}
	})
}

func TestPermission_PolicyRefusesWithoutAQuestion(t *testing.T) {
	change, look := editor("change"), reader("look")
	bubble(t, []ports.Tool{change, look}, func(w *world) {
		w.agents.agent.Policy = domain.Policy{Level: domain.LevelReadOnly}
		w.model.play(wants("", "change", "look"), says("ok"))
		w.begin("go").want(domain.StopEndTurn)
		if w.client.questions() != 0 || change.ran() != 0 || look.ran() != 1 {
			t.Errorf("asked %d times; ran %d, %d", w.client.questions(), change.ran(), look.ran())
		}
		w.check()
	})
}
