package turns

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// work is everything a turn does, from its place in the queue to its last
// record. It decides the stop in one place: a cancel wins over whatever error
// it caused on the way.
func (t *turn) work() {
	stop, err := t.guarded()
	stop, err = domain.StopFor(context.Cause(t.ctx), stop, err)
	ctx, cancel := t.settling()
	defer cancel()
	t.closeCalls(ctx, err)
	if err := t.finish(ctx, stop, err); err != nil && !errors.Is(err, errSealed) {
		t.e.trouble(ctx, t.sid, "turns: finish", err)
	}
}

// closeCalls gives a final status to calls that the loop left open because it
// broke off between their announcement and their end. The client is told even
// when the store is what broke.
func (t *turn) closeCalls(ctx context.Context, err error) {
	for _, id := range t.emit.unfinished() {
		text := "Cancelled before it finished."
		if err != nil {
			text = "The turn broke off before this call finished; it may or may not have taken effect."
		}
		rec := domain.CallFinished{Turn: t.id, Call: id, Failed: true, Interrupted: true, Text: text}
		if t.emit.record(ctx, rec) == nil {
			continue
		}
		for _, u := range domain.Updates(rec) {
			_ = t.emit.send(ctx, u) // fails only when nobody listens any more
		}
	}
}

// guarded runs the loop and turns a panic into an error of this turn alone.
func (t *turn) guarded() (stop domain.Stop, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in turn: %v\n%s", p, debug.Stack())
			t.e.trouble(t.ctx, t.sid, "turns: panic", err)
		}
	}()
	return t.loop()
}

// settling is the context of what must be written even after a cancel.
func (t *turn) settling() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.ctx), settleLimit)
}

// loop alternates model replies and tool calls until the turn has a stop (ACP
// v1, "The prompt turn").
func (t *turn) loop() (domain.Stop, error) {
	if err := t.ticket.Wait(t.ctx); err != nil {
		return 0, err
	}
	if err := t.begin(); err != nil {
		return 0, err
	}
	defer t.live.Drop()
	for n := 0; ; n++ {
		if n == t.view.Agent.MaxTurnRequests {
			return domain.StopMaxTurnRequests, nil
		}
		if t.ctx.Err() != nil {
			return 0, context.Cause(t.ctx)
		}
		said, err := t.step()
		if err != nil {
			return 0, err
		}
		if stop := stopAfter(said); stop != 0 {
			t.last = &said
			return stop, nil
		}
		if err := t.callAll(said); err != nil {
			return 0, err
		}
	}
}

// stopAfter says how a complete reply ends the turn; 0 when its calls are to
// be run. No call of a reply that was cut or refused may run.
func stopAfter(said domain.AssistantSaid) domain.Stop {
	switch {
	case said.Finish == domain.FinishLength:
		return domain.StopMaxTokens
	case said.Finish == domain.FinishRefusal:
		return domain.StopRefusal
	case len(said.Calls) == 0:
		return domain.StopEndTurn
	}
	return 0
}

// begin brings the session into memory, opens the model, stores the prompt's
// blobs and journals the user's message. It does not stop for a cancel, so
// that what the user saw themselves say is there on load.
func (t *turn) begin() error {
	ctx, cancel := t.settling()
	defer cancel()
	view, err := t.live.Hold(ctx)
	if err != nil {
		return err
	}
	t.view = view
	if err := t.say(ctx); err != nil {
		t.live.Drop()
		return err
	}
	return nil
}

func (t *turn) say(ctx context.Context) error {
	model, err := t.e.p.Models.Open(ctx, t.view.Agent.Model)
	if err != nil {
		return err
	}
	t.model = model
	t.equip()
	blocks, err := t.storeBlobs(ctx)
	if err != nil {
		return err
	}
	recs := []domain.Record{domain.UserSaid{Turn: t.id, ID: domain.MessageID(t.id + "-u"), Blocks: blocks}}
	if t.view.Turns == 0 && t.view.Title == "" {
		if title := titleOf(blocks); title != "" {
			recs = append(recs, domain.TitleSet{Title: title})
		}
	}
	if err := t.emit.send(ctx, domain.TurnStarted{Turn: t.id}); err != nil {
		return err
	}
	if err := t.live.AppendIf(ctx, t.emit.unsealed, recs...); err != nil {
		return err
	}
	t.mu.Lock()
	t.begun = true
	t.mu.Unlock()
	for _, rec := range recs {
		for _, u := range domain.Updates(rec) {
			if err := t.emit.send(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// storeBlobs puts the binary resources of the prompt into files and returns
// the blocks with attachments in their place.
func (t *turn) storeBlobs(ctx context.Context) ([]domain.Block, error) {
	var blobs []domain.Resource
	for _, b := range t.prompt.Blocks {
		if r, ok := b.(domain.Resource); ok && r.Binary {
			blobs = append(blobs, r)
		}
	}
	if len(blobs) == 0 {
		return t.prompt.Blocks, nil
	}
	stored, err := t.e.p.Blobs.Store(ctx, t.view.Session, blobs)
	if err != nil {
		return nil, err
	}
	blocks := make([]domain.Block, 0, len(t.prompt.Blocks))
	for _, b := range t.prompt.Blocks {
		if r, ok := b.(domain.Resource); ok && r.Binary {
			blocks = append(blocks, stored[0])
			stored = stored[1:]
			continue
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// titleOf names a session after its first prompt: the first line of text, at
// most 80 characters.
func titleOf(blocks []domain.Block) string {
	const most = 80
	for _, b := range blocks {
		text, ok := b.(domain.Text)
		if !ok {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(text.Text), "\n")
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		if utf8.RuneCountInString(line) > most {
			line = strings.TrimSpace(string([]rune(line)[:most-1])) + "…"
		}
		return line
	}
	return ""
}

// finish writes the turn's last records, tells the client what follows from
// them, and sets the outcome.
func (t *turn) finish(ctx context.Context, stop domain.Stop, err error) error {
	t.mu.Lock()
	begun, usage := t.begun, t.usage
	t.mu.Unlock()
	var werr error
	if begun {
		end := domain.TurnFinished{Turn: t.id, Stop: stop, Usage: usage}
		if err != nil {
			end.Failure = failureOf(err)
		}
		recs := []domain.Record{end}
		if t.last != nil {
			recs = []domain.Record{*t.last, end}
		}
		werr = t.emit.record(ctx, recs...)
		if werr == nil {
			werr = t.emit.send(ctx, domain.TurnEnded{Turn: t.id, Stop: stop})
		}
	}
	if err == nil && stop != domain.StopCancelled && werr != nil && !gone(werr) {
		err = werr // an answer may only be given for what is stored
	}
	t.settle(ctx, stop, err)
	return werr
}

// gone reports whether an error only says that nobody listens any more.
func gone(err error) bool {
	var c *domain.Cause
	return errors.As(err, &c)
}

// settle sets the outcome that run returns.
func (t *turn) settle(ctx context.Context, stop domain.Stop, err error) {
	total, _ := t.live.Total(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.all.String()
	if stop != domain.StopCancelled && t.last != nil {
		text = textOf(*t.last)
	}
	t.outcome = domain.TurnOutcome{Turn: t.id, Stop: stop, Text: text, Usage: t.usage, Total: total}
	t.err = err
}

func textOf(said domain.AssistantSaid) string {
	var b strings.Builder
	for _, p := range said.Parts {
		if !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// failureOf is what the journal keeps of an error: its code and the message
// meant for people; never the detail of an uncoded one.
func failureOf(err error) *domain.Failure {
	var e *domain.Error
	if errors.As(err, &e) {
		return &domain.Failure{Code: e.Code, Msg: e.Msg}
	}
	return &domain.Failure{Code: domain.Internal, Msg: "an internal error; the log has the details"}
}
