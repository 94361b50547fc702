package turns

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-dev/berth/core/domain"
)

// squeeze is one compaction: estimated tokens that the messages should take
// afterwards, or at least; and how to count.
type squeeze struct {
	goal, limit int64
	source      int64 // the most bytes a summary is made of: half of what would fit, for counts may be off
	gauge       domain.Gauge
	fixed       int64  // estimate of what stands before the messages
	asked       bool   // a person asked for it
	words       string // what they want kept in mind
}

// leastGain is the least, in estimated tokens, that makes it worth to
// summarise something because a person asked.
const leastGain = 500

// compact makes the conversation shorter for the model and journals how. It is
// false when there is nothing to win. Only a cancel, a limit of cost and a
// store that fails end it with an error: without the model's help the summary
// is a plain one.
func (t *turn) compact(q squeeze) (domain.Compacted, bool, error) {
	var s domain.Shrinkage
	var ok bool
	if err := t.live.Look(t.ctx, func(c *domain.Conversation) { s, ok = c.Shrink(q.goal, q.limit, q.asked) }); err != nil {
		return domain.Compacted{}, false, err
	}
	if !ok || q.asked && s.Size-s.Left < leastGain {
		return domain.Compacted{Before: q.gauge.Tokens(q.fixed + s.Size)}, false, nil
	}
	t.squeezed++
	rec := s.Record
	rec.Turn, rec.ID = t.id, domain.CompactionID(fmt.Sprintf("%s-k%d", t.id, t.squeezed))
	rec.Before, rec.Window = q.gauge.Tokens(q.fixed+s.Size), t.model.Info().ContextWindow
	if err := t.emit.send(t.ctx, domain.CompactionChanged{ID: rec.ID, Status: domain.CompactionRunning}); err != nil {
		return rec, false, err
	}
	if len(s.Old) > 0 {
		if err := t.summarise(&rec, s, q); err != nil {
			return rec, false, t.giveUp(rec, err)
		}
	}
	rec.After = q.gauge.Tokens(q.fixed + s.Left + s.Recap + domain.EstimateBlocks([]domain.Block{domain.Text{Text: rec.Summary}}))
	if _, err := t.emit.record(rec); err != nil {
		return rec, false, err
	}
	return rec, true, t.tellCompacted(rec, q.asked)
}

// giveUp ends a compaction that was cancelled or may not go on, and returns
// why. What it cost is journalled all the same.
func (t *turn) giveUp(rec domain.Compacted, why error) error {
	if t.ctx.Err() == nil {
		failure := domain.FailureOf(why)
		err := t.emit.send(t.telling, domain.CompactionChanged{ID: rec.ID, Status: domain.CompactionFailed, Error: failure.Msg})
		return errors.Join(why, err)
	}
	rec.Cancelled, rec.Summary = true, ""
	if _, err := t.emit.record(rec); err != nil {
		t.e.trouble(t.ctx, t.sid, "turns: journal a cancelled compaction", err)
	}
	return context.Cause(t.ctx)
}

// tellCompacted tells a client that cannot show compactions, unless the answer
// to a command says so anyway.
func (t *turn) tellCompacted(rec domain.Compacted, asked bool) error {
	if asked || t.live.Client().Info().Compaction {
		return nil
	}
	return t.emit.send(t.ctx, domain.Notice{
		Severity: "info", Title: "The conversation was made shorter for the model",
		Detail: fmt.Sprintf("It took about %s tokens and takes about %s now. %s The history keeps everything.",
			count(rec.Before), count(rec.After), whatWasDone(rec)),
	})
}

// whatWasDone says in a sentence or two how a conversation got shorter.
func whatWasDone(rec domain.Compacted) string {
	switch {
	case rec.Summary == "":
		return "Older results of tools are shown to it in part."
	case rec.Plain != nil:
		return "What came before is listed for it in short, because it could not write a summary itself: " + sentence(rec.Plain.Msg)
	}
	return "What came before is summarised for it."
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text == "" || text[len(text)-1] == '.' {
		return text
	}
	return text + "."
}

// runCommand answers a slash command without asking the model anything but
// what the command needs.
func (t *turn) runCommand() (domain.Stop, error) {
	g, err := t.gauge(t.ctx)
	if err != nil {
		return 0, err
	}
	q := squeeze{goal: usualGoal, limit: usualGoal, source: usualSource, gauge: g, fixed: t.fixed(), asked: true, words: t.words}
	if b := t.budget(); b.Known() {
		q.goal, q.limit, q.source = g.Estimate(b.Goal()/2)-q.fixed, g.Estimate(b.Room())-q.fixed, g.Estimate(b.Room())*2
	}
	rec, done, err := t.compact(q)
	if err != nil {
		return 0, err
	}
	text := fmt.Sprintf("There is nothing to compact: the conversation takes about %s tokens.", count(rec.Before))
	if done {
		text = fmt.Sprintf("The conversation took about %s tokens and takes about %s now. %s The history keeps everything.",
			count(rec.Before), count(rec.After), whatWasDone(rec))
	}
	return domain.StopEndTurn, t.answer(text)
}

// What a person's compaction aims at when nobody knows the window, in estimated
// tokens, and what its summary is made of, in bytes.
const (
	usualGoal   = 8000
	usualSource = 200_000
)

// answer says a text in the host's own words, as the last reply of the turn.
func (t *turn) answer(text string) error {
	t.mu.Lock()
	t.messages++
	id := domain.MessageID(fmt.Sprintf("%s-m%d", t.id, t.messages))
	t.final = text
	t.all = append(t.all, text)
	t.mu.Unlock()
	t.last = &domain.AssistantSaid{
		Turn: t.id, Agent: t.view.Agent.Alias, Parts: []domain.MessagePart{{ID: id, Text: text}}, Finish: domain.FinishStop,
	}
	return t.emit.send(t.ctx, domain.AgentText{ID: id, Text: text})
}
