package turns_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// patient runs a test with a world in which lost clients are waited for, and a
// session that a person has.
func patient(t *testing.T, tools []ports.Tool, fn func(w *world, first *person)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, time.Hour, tools...)
		w.sessions.Detach(w.client, domain.SessionClosed)
		synctest.Wait()
		first := w.person("first")
		if _, err := w.open(first, domain.OpenSession{ID: w.id}); err != nil {
			t.Fatal(err)
		}
		fn(w, first)
		w.shutdown()
	})
}

func (w *world) open(p *person, req domain.OpenSession) (domain.OpenedSession, error) {
	req.ID = w.id
	run, err := w.sessions.Open(p, req)
	if err != nil {
		return domain.OpenedSession{}, err
	}
	return run(w.t.Context())
}

// says lets a person prompt, and returns how that ended when it has.
func (p *person) says(text string) <-chan error {
	p.w.t.Helper()
	run, err := p.w.engine.Begin(context.Background(), p, p.w.id, domain.Prompt{Blocks: []domain.Block{domain.Text{Text: text}}, Queue: true})
	if err != nil {
		p.w.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := run()
		done <- err
	}()
	return done
}

// leaves breaks the connection and says so.
func (p *person) leaves() {
	p.breaks()
	p.w.sessions.Lose(p)
}

// stages yields events, each when the test says so.
func stages(next <-chan struct{}, evs ...domain.ModelEvent) step {
	return func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		for _, ev := range append(evs, domain.Finish{Reason: domain.FinishStop}) {
			select {
			case <-next:
			case <-ctx.Done():
				yield(nil, context.Cause(ctx))
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func said(id domain.MessageID, s string) domain.Update { return domain.AgentText{ID: id, Text: s} }
func thought(id domain.MessageID, s string) domain.Update {
	return domain.AgentThought{ID: id, Text: s}
}

// without leaves out what is told as of now.
func without(ups []domain.Update) (out []domain.Update) {
	for _, u := range ups {
		switch u.(type) {
		case domain.InfoChanged, domain.UsageChanged, domain.TurnStarted, domain.TurnEnded:
		default:
			out = append(out, u)
		}
	}
	return out
}

// In the middle of a message whoever loads gets what there is of it in one
// piece, and the rest as it comes; whoever resumes gets what nobody was told.
func TestReattach_MidText(t *testing.T) {
	for _, replay := range []bool{true, false} {
		patient(t, nil, func(w *world, first *person) {
			next := make(chan struct{})
			w.model.play(stages(next, domain.ThoughtDelta{Text: "h"}, domain.ThoughtDelta{Text: "m"}, domain.TextDelta{Text: "a"}, domain.TextDelta{Text: "b"}, domain.TextDelta{Text: "c"}))
			ended := first.says("go")
			for range 3 {
				next <- struct{}{}
				synctest.Wait()
			}
			first.leaves()
			if err := <-ended; !errors.Is(err, domain.Disconnected) {
				t.Errorf("the prompt of a lost client got %v", err)
			}
			next <- struct{}{}
			synctest.Wait()
			second := w.person("second")
			opened, err := w.open(second, domain.OpenSession{Replay: replay})
			if err != nil {
				t.Fatal(err)
			}
			turn := opened.Running
			next <- struct{}{}
			next <- struct{}{}
			synctest.Wait()
			m1, m2 := domain.MessageID(turn+"-m1"), domain.MessageID(turn+"-m2")
			want := []domain.Update{
				domain.UserMessage{ID: domain.MessageID(turn + "-u"), Block: domain.Text{Text: "go"}},
				thought(m1, "hm"), said(m2, "ab"), said(m2, "c"),
			}
			if !replay {
				want = []domain.Update{said(m2, "b"), said(m2, "c")}
			}
			if diff := cmp.Diff(want, without(second.log())); diff != "" {
				t.Errorf("replay %v (-want +told):\n%s", replay, diff)
			}
		})
	}
}

// In the middle of a call whoever comes sees the call, where it stands and what
// it showed last, and then its end, and the call ran once.
func TestReattach_MidCall(t *testing.T) {
	for _, takeover := range []bool{true, false} {
		next := make(chan struct{})
		change := editor("change")
		change.run = func(_ context.Context, progress func(domain.ToolProgress)) (domain.ToolResult, error) {
			for _, s := range []string{"one", "two"} {
				<-next
				progress(domain.ToolProgress{Title: "Changing " + s})
			}
			<-next
			return domain.ToolResult{Text: "done"}, nil
		}
		patient(t, []ports.Tool{change}, func(w *world, first *person) {
			next = make(chan struct{}) // of this bubble
			first.decide = choose("allow-once")
			w.model.play(wants("", "change"), says("ok"))
			ended := first.says("go")
			next <- struct{}{}
			next <- struct{}{}
			synctest.Wait()
			second := w.person("second")
			if !takeover {
				first.leaves()
			}
			opened, err := w.open(second, domain.OpenSession{Replay: true, Takeover: takeover})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			call := domain.CallID(opened.Running + "-c1")
			var seen []domain.CallChanged
			for _, u := range second.log() {
				if c, ok := u.(domain.CallChanged); ok {
					seen = append(seen, c)
				}
			}
			if diff := cmp.Diff([]domain.CallChanged{{ID: call, Status: domain.CallInProgress, Title: "Changing two"}}, seen); diff != "" {
				t.Errorf("of the call it was told (-want +got):\n%s", diff)
			}
			next <- struct{}{}
			if err := <-ended; (err == nil) != takeover {
				t.Errorf("the prompt of the client before got %v", err)
			}
			synctest.Wait()
			if err := wholeStory(second.log()); err != nil || change.ran() != 1 {
				t.Errorf("it ran %d times, and was told as %v", change.ran(), err)
			}
			if takeover && slices.ContainsFunc(first.log(), func(u domain.Update) bool { c, ok := u.(domain.CallChanged); return ok && c.Status.Final() }) {
				t.Error("the client before was told how the call ended")
			}
		})
	}
}

// In the middle of a compaction whoever comes sees that it runs and the summary
// so far.
func TestReattach_MidCompaction(t *testing.T) {
	patient(t, nil, func(w *world, first *person) {
		holds(w, 8000)
		next := make(chan struct{})
		w.model.play(sumsUp(stages(next, domain.TextDelta{Text: "SUM"}, domain.TextDelta{Text: "MARY"}), replies(tokens(900, "answer"))))
		for range 2 {
			if err := <-first.says(tokens(900, "asked")); err != nil {
				t.Fatal(err)
			}
		}
		first.says("/compact")
		next <- struct{}{}
		synctest.Wait()
		first.leaves()
		second := w.person("second")
		if _, err := w.open(second, domain.OpenSession{Replay: true}); err != nil {
			t.Fatal(err)
		}
		if got := compactions(second.log()); got != "in_progress() +SUM" {
			t.Errorf("it was told %q", got)
		}
		next <- struct{}{}
		next <- struct{}{}
		synctest.Wait()
		if got := compactions(second.log()); got != "in_progress() +SUM +MARY completed(SUMMARY)" {
			t.Errorf("in the end it was told %q", got)
		}
	})
}

// A question waits while nobody is there, and the answer of the one who comes
// lets the call run, once.
func TestReattach_MidQuestion(t *testing.T) {
	change := editor("change")
	patient(t, []ports.Tool{change}, func(w *world, first *person) {
		first.decide = func(ctx context.Context, _ domain.PermissionRequest) (domain.Decision, error) {
			<-ctx.Done()
			return domain.Decision{}, context.Cause(ctx)
		}
		w.model.play(wants("", "change"), says("ok"))
		first.says("go")
		synctest.Wait()
		first.leaves()
		time.Sleep(30 * time.Minute)
		if change.ran() != 0 {
			t.Fatal("it ran although nobody allowed it")
		}
		second := w.person("second")
		second.decide = choose("allow-once")
		opened, err := w.open(second, domain.OpenSession{Replay: true})
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.sessions.Await(second, w.id, opened.Running)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := run(w.t.Context()); err != nil || out.Stop != domain.StopEndTurn || out.Text != "ok" || change.ran() != 1 {
			t.Errorf("awaited %+v, %v; it ran %d times", out, err, change.ran())
		}
	})
}

// A turn tells the one who comes nothing before that was answered.
func TestReattach_TheAnswerComesFirst(t *testing.T) {
	patient(t, nil, func(w *world, first *person) {
		next := make(chan struct{})
		w.model.play(stages(next, domain.TextDelta{Text: "a"}, domain.TextDelta{Text: "b"}))
		first.says("go")
		next <- struct{}{}
		synctest.Wait()
		first.leaves()
		second, answered := w.person("second"), make(chan struct{})
		if _, err := w.open(second, domain.OpenSession{Replay: true, Answered: answered}); err != nil {
			t.Fatal(err)
		}
		told := len(second.log())
		next <- struct{}{}
		synctest.Wait()
		if n := len(second.log()); n != told {
			t.Errorf("it was told %d things before it was answered", n-told)
		}
		close(answered)
		synctest.Wait()
		if n := len(second.log()); n != told+1 {
			t.Errorf("then it was told %d things, want the next chunk", n-told)
		}
		next <- struct{}{}
	})
}

// Nobody is there to see the end: who comes afterwards sees all of it, and a
// cancel of who came in time ends what hangs in time.
func TestReattach_Afterwards(t *testing.T) {
	patient(t, nil, func(w *world, first *person) {
		w.model.play(events(domain.FinishStop, domain.TextDelta{Text: "all of it"}))
		first.leaves()
		second := w.person("second")
		if _, err := w.open(second, domain.OpenSession{}); err != nil {
			t.Fatal(err)
		}
		second.says("go")
		second.leaves()
		synctest.Wait()
		third := w.person("third")
		opened, err := w.open(third, domain.OpenSession{Replay: true})
		if err != nil || opened.Running != "" {
			t.Fatalf("%+v, %v", opened, err)
		}
		if got := words(third.log()); !strings.Contains(got, "all of it") {
			t.Errorf("it was told %q", got)
		}
	})
}

func TestReattach_CancelWhatHangs(t *testing.T) {
	release := make(chan struct{})
	change := editor("change")
	change.run = func(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error) {
		<-release
		return domain.ToolResult{Text: "late"}, nil
	}
	patient(t, []ports.Tool{change}, func(w *world, first *person) {
		release = make(chan struct{})
		first.decide = choose("allow-once")
		w.model.play(wants("", "change"), says("fresh"))
		first.says("go")
		synctest.Wait()
		first.leaves()
		second := w.person("second")
		opened, err := w.open(second, domain.OpenSession{Replay: true})
		if err != nil {
			t.Fatal(err)
		}
		run, err := w.sessions.Await(second, w.id, opened.Running)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		w.engine.Cancel(second, w.id, domain.CancelledByClient)
		if out, err := run(w.t.Context()); err != nil || out.Stop != domain.StopCancelled || time.Since(start) > answerLimit {
			t.Errorf("after %v: %+v, %v", time.Since(start), out, err)
		}
		if err := wholeStory(second.log()); err != nil {
			t.Error(err)
		}
		// The next turn is told on a way of its own.
		if err := <-second.says("next"); err != nil || !strings.Contains(words(second.log()), "fresh") {
			t.Errorf("the next prompt: %v, %s", err, words(second.log()))
		}
		close(release)
	})
}

// The level of a client's rights bounds its prompts, whatever the agent may.
func TestRights_Level(t *testing.T) {
	for level, want := range map[domain.Level]struct{ asked, ran int }{
		"": {0, 1}, domain.LevelFull: {0, 1}, domain.LevelSupervised: {1, 1}, domain.LevelReadOnly: {0, 0},
	} {
		change := editor("change")
		patient(t, []ports.Tool{change}, func(w *world, _ *person) {
			w.agents.agent.Policy.Level = domain.LevelFull
			p := w.person("limited")
			p.rights, p.decide = &domain.Rights{Level: level}, choose("allow-once")
			if _, err := w.open(p, domain.OpenSession{Takeover: true}); err != nil {
				t.Fatal(err)
			}
			w.model.play(wants("", "change"), says("ok"))
			if err := <-p.says("go"); err != nil {
				t.Fatal(err)
			}
			if p.asked != want.asked || change.ran() != want.ran {
				t.Errorf("level %q: asked %d times and ran %d times, want %+v", level, p.asked, change.ran(), want)
			}
		})
	}
}
