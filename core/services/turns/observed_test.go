package turns_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// What metrics and traces need of a turn is in its events: who worked, how
// long each part took, what was tried again, and what it cost.
func TestTurn_IsObserved(t *testing.T) {
	slow := reader("look")
	slow.run = takes(3 * time.Second)
	bubble(t, []ports.Tool{slow}, func(w *world) {
		cents := domain.MicroUSD(20_000)
		w.model.play(
			delayed(time.Second, events(domain.FinishCalls,
				domain.Retrying{Attempt: 1, Reason: "busy"}, domain.Retrying{Attempt: 2, Reason: "busy"},
				domain.CallRequested{Call: domain.ModelCall{ProviderID: "p", Name: "look", Args: []byte(`{"x":1}`)}},
				domain.UsageReported{Usage: domain.Usage{Input: 5, Output: 2}, Cost: &cents})),
			delayed(time.Second, says("seen")),
			says("again"),
		)
		first := w.begin("first")
		trace := domain.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
		blocks := []domain.Block{domain.Text{Text: "second"}}
		second, err := w.tryBlocks(domain.Prompt{Blocks: blocks, Queue: true, Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		first.want(domain.StopEndTurn)
		second.want(domain.StopEndTurn)

		ref := domain.ModelRef{Provider: "test", Model: "one"}
		var steps []domain.StepDone
		var calls []domain.CallDone
		var done []domain.TurnDone
		var began []domain.TurnBegan
		for _, ev := range w.observer.seen() {
			switch ev := ev.(type) {
			case domain.StepDone:
				ev.Turn = ""
				steps = append(steps, ev)
			case domain.CallDone:
				ev.Turn, ev.Call = "", ""
				calls = append(calls, ev)
			case domain.TurnDone:
				done = append(done, ev)
			case domain.TurnBegan:
				began = append(began, ev)
			}
		}
		want := []domain.StepDone{
			{Session: w.id, Model: ref, Usage: domain.Usage{Input: 5, Output: 2}, Duration: time.Second, Agent: "default", Asked: ref, Retries: 2, Cost: &cents, Finish: domain.FinishCalls},
			{Session: w.id, Model: ref, Usage: domain.Usage{Input: 10, Output: 1}, Duration: time.Second, Agent: "default", Asked: ref, FirstText: time.Second, Finish: domain.FinishStop},
		}
		if diff := cmp.Diff(want, steps[:2]); diff != "" {
			t.Errorf("model requests (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]domain.CallDone{{
			Session: w.id, Tool: "look", Status: domain.CallCompleted, Duration: 3 * time.Second, Args: []byte(`{"x":1}`), Result: "done",
		}}, calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if d := done[0]; d.Agent != "default" || d.Waited != 0 || d.FirstText != 5*time.Second || d.Duration != 5*time.Second || d.Text != "seen" {
			t.Errorf("the first turn: %+v", d)
		}
		if d := done[1]; d.Waited != 5*time.Second || d.Text != "again" {
			t.Errorf("the second turn: %+v", d)
		}
		if !slices.ContainsFunc(began, func(b domain.TurnBegan) bool { return b.Trace == trace && cmp.Equal(blocks, b.Prompt) }) {
			t.Errorf("the turns began with %+v", began)
		}
	})
}

// A prompt that is cancelled while it waits is its agent's as well.
func TestTurn_CancelledInTheQueueIsObserved(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(delayed(time.Hour, says("late")))
		first, second := w.begin("first"), w.begin("second")
		synctest.Wait()
		if !w.stop() {
			t.Fatal("there is nothing to cancel")
		}
		first.want(domain.StopCancelled)
		second.want(domain.StopCancelled)
		var agents []string
		for _, ev := range w.observer.seen() {
			if d, ok := ev.(domain.TurnDone); ok {
				agents = append(agents, d.Agent)
			}
		}
		if !slices.Equal(agents, []string{"default", "default"}) {
			t.Errorf("the turns were those of %q", agents)
		}
	})
}

// A tool that a model made up is marked: its name is nobody's but the model's.
func TestTurn_UnknownToolIsObserved(t *testing.T) {
	bubble(t, nil, func(w *world) {
		w.model.play(wants("", "made_up"), says("sorry"))
		w.begin("go").want(domain.StopEndTurn)
		for _, ev := range w.observer.seen() {
			if c, ok := ev.(domain.CallDone); ok {
				if !c.Unknown || c.Tool != "made_up" || c.Status != domain.CallFailed {
					t.Errorf("observed %+v", c)
				}
				return
			}
		}
		t.Error("no call was observed")
	})
}

// delayed plays a step a while after it was asked for.
func delayed(d time.Duration, next step) step {
	return func(ctx context.Context, req domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		if err := pause(ctx, d); err != nil {
			yield(nil, err)
			return
		}
		next(ctx, req, yield)
	}
}
