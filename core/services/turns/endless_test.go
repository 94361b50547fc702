package turns_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// endless streams pieces until it is stopped; slowly, with a pause between them.
func endless(piece domain.ModelEvent, slowly time.Duration, stopped *bool) step {
	return func(ctx context.Context, _ domain.ModelRequest, yield func(domain.ModelEvent, error) bool) {
		for range 2000 { // 125 MiB
			if pause(ctx, slowly) != nil || !yield(piece, nil) {
				*stopped = true
				return
			}
		}
		yield(domain.Finish{Reason: domain.FinishStop}, nil)
	}
}

// A reply that does not end is ended: the model is not read further, the turn
// fails with a code, what was shown is kept as of a reply that broke off, and
// the session goes on.
func TestReply_ThatNeverEnds(t *testing.T) {
	const most = 16 << 20
	long := strings.Repeat("0123456789abcdef", 4<<10)
	call := domain.ModelCall{ProviderID: "p", Name: "look", Args: []byte(`{"x":"` + long + `"}`)}
	for name, c := range map[string]struct {
		piece  domain.ModelEvent
		slowly time.Duration
		shown  int // bytes
	}{
		"text":         {piece: domain.TextDelta{Text: long}, shown: most},
		"slow text":    {piece: domain.TextDelta{Text: long}, slowly: 100 * time.Millisecond, shown: most},
		"slow thought": {piece: domain.ThoughtDelta{Text: long}, slowly: 100 * time.Millisecond, shown: most},
		"calls":        {piece: domain.CallRequested{Call: call}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(w *world) {
				w.model.info = &domain.ModelInfo{Ref: domain.ModelRef{Provider: "test", Model: "one"}}
				stopped := false
				w.model.play(endless(c.piece, c.slowly, &stopped))
				r := w.begin("go")
				<-r.done
				if !domain.HasCode(r.err, domain.TooLarge) || !strings.Contains(r.err.Error(), "16 MiB") {
					t.Errorf("the turn ended with %v", r.err)
				}
				if !stopped {
					t.Error("the model was read to its end")
				}
				shown, kept := 0, 0
				for _, u := range w.client.log() {
					switch u := u.(type) {
					case domain.AgentText:
						shown += len(u.Text)
					case domain.AgentThought:
						shown += len(u.Text)
					}
				}
				var failure *domain.Failure
				for _, rec := range w.records() {
					switch rec := rec.(type) {
					case domain.AssistantSaid:
						for _, p := range rec.Parts {
							kept += len(p.Text)
						}
						if !rec.Truncated || len(rec.Calls) > 0 {
							t.Errorf("the reply is kept with truncated %v and %d calls", rec.Truncated, len(rec.Calls))
						}
					case domain.TurnFinished:
						failure = rec.Failure
					}
				}
				if shown != c.shown || kept != shown {
					t.Errorf("%d bytes were shown and %d are kept, want %d", shown, kept, c.shown)
				}
				if failure == nil || failure.Code != domain.TooLarge {
					t.Errorf("the journal has the turn end with %+v", failure)
				}
				w.model.play(says("fresh"))
				w.begin("next").want(domain.StopEndTurn)
				w.check()
			})
		})
	}
}
