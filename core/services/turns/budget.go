package turns

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-dev/berth/core/domain"
)

// retriesTooLong is how often a request that the model finds too long is made
// shorter and sent again.
const retriesTooLong = 2

// budget is how the model's window is used. Every check of a size asks it.
func (t *turn) budget() domain.Budget {
	return t.model.Info().Budget(t.view.Agent.MaxOutputTokens)
}

// gauge is how the model counted in this session so far.
func (t *turn) gauge(ctx context.Context) (g domain.Gauge, err error) {
	err = t.live.Look(ctx, func(c *domain.Conversation) { g = c.Gauge(t.model.Info().Ref) })
	return g, err
}

// limitOf is how many bytes of a result the model is shown; 0 when all of it.
func (t *turn) limitOf(text string) int64 {
	if limit := t.budget().LargestResult(); int64(len(text)) > limit {
		return limit
	}
	return 0
}

// promptFits refuses a prompt that alone is too much for the model, before it
// is journalled: it would stand in the way of every later one. The system
// prompt is only waited for when it matters.
func (t *turn) promptFits(instructions func()) error {
	b := t.budget()
	if !b.Known() || t.command != "" {
		return nil
	}
	g, err := t.gauge(t.writing)
	if err != nil {
		return err
	}
	prompt := g.Tokens(domain.EstimateBlocks(t.seen(t.prompt.Blocks)))
	if prompt <= b.Room()/2 {
		return nil
	}
	instructions()
	fixed := g.Tokens(t.fixed())
	switch {
	case prompt+fixed <= b.Room():
		return nil
	case fixed >= b.Room():
		return t.cramped(fixed)
	}
	return domain.Errorf(domain.TooLarge,
		"The prompt takes about %s tokens, which is too much for %s: its window is %s, of which %s are kept for the reply and about %s go to instructions and tools. "+
			"Shorten the prompt, or name files for the agent to read", count(prompt), t.model.Info().Ref, count(b.Window), count(b.Reply), count(fixed)).
		With("promptTokens", prompt).With("contextWindow", b.Window)
}

// cramped is the error of a window that instructions and tools alone fill:
// neither a shorter prompt nor a new session helps.
func (t *turn) cramped(fixed int64) error {
	ref := t.model.Info().Ref
	return domain.Errorf(domain.ContextTooLong,
		"Instructions and tools alone take about %s tokens, and the window of %s is %s. Choose a model with a larger window, or correct the context_window that is set for this one",
		count(fixed), ref, count(t.budget().Window))
}

// seen is a prompt without the pictures and sounds that the model cannot take:
// it is told where they are.
func (t *turn) seen(blocks []domain.Block) []domain.Block {
	info := t.model.Info()
	return slices.DeleteFunc(slices.Clone(blocks), func(b domain.Block) bool {
		_, image := b.(domain.Image)
		_, audio := b.(domain.Audio)
		return image && !info.Images || audio && !info.Audio
	})
}

// fixed is the estimate of what every request of the turn begins with.
func (t *turn) fixed() int64 {
	return domain.ModelRequest{System: t.system, Tools: t.specs}.EstimateFixed()
}

// fit builds the next request and, when it would fill the model's window too
// far, compacts the conversation first. It returns the request's estimated
// size as well.
func (t *turn) fit() (domain.ModelRequest, int64, error) {
	req, err := t.request()
	size, b := req.Estimate(), t.budget()
	if err != nil || !b.Known() {
		return req, size, err
	}
	g, err := t.gauge(t.ctx)
	if err != nil {
		return req, size, err
	}
	full := b.Full()
	if t.tight { // what could be done was done; wait until it must be tried again
		full = b.Room()
	}
	if g.Tokens(size) <= full {
		return req, size, nil
	}
	fixed := t.fixed()
	_, shorter, err := t.compact(squeeze{
		goal: g.Estimate(b.Goal()) - fixed, limit: g.Estimate(b.Room()) - fixed, source: g.Estimate(b.Room()) * 2, gauge: g, fixed: fixed,
	})
	if err != nil {
		return req, size, err
	}
	if shorter {
		if req, err = t.request(); err != nil {
			return req, size, err
		}
		size = req.Estimate()
	}
	now := g.Tokens(size)
	t.tight = now > b.Full()
	if now > b.Window && !t.model.Info().Offline { // what is no language model has no window that matters
		if fixed := g.Tokens(fixed); fixed >= b.Window {
			return req, size, t.cramped(fixed)
		}
		return req, size, domain.Errorf(domain.ContextTooLong,
			"The conversation takes about %s tokens and the window of %s is %s; nothing more of it can be left out. Begin a new session, or choose a model with a larger window",
			count(now), t.model.Info().Ref, count(b.Window))
	}
	return req, size, nil
}

// compactHarder makes the conversation shorter than a request that the model
// found too long, whatever was thought to fit. Each try goes further.
func (t *turn) compactHarder(size int64, try int) (bool, error) {
	g, err := t.gauge(t.ctx)
	if err != nil {
		return false, err
	}
	if b := t.budget(); b.Known() {
		size = min(size, g.Estimate(b.Room()))
	}
	part, fixed := size/(2<<try), t.fixed() // a half, then a quarter
	_, shorter, err := t.compact(squeeze{goal: part - fixed, limit: part*3/2 - fixed, source: part * 2, gauge: g, fixed: fixed})
	return shorter, err
}

// tooLong is what the person is told when nothing could be left out.
func (t *turn) tooLong(err error) error {
	return domain.WrapError(domain.ContextTooLong, err, fmt.Sprintf(
		"The conversation is too long for %s, and making it shorter did not help: send a shorter prompt, begin a new session, or choose a model with a larger window",
		t.model.Info().Ref))
}

// count writes a number as people read it: 12,345.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
