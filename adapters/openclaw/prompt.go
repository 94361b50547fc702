package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/core/domain"
)

// promptResult is the answer to session/prompt.
type promptResult struct {
	StopReason string              `json:"stopReason"`
	Meta       metaOf[promptBerth] `json:"_meta"`
}

type promptBerth struct {
	RunID string `json:"runId"` // the Gateway's
}

// prompt takes its place before the next message is read, so that a cancel
// finds it.
func (b *Bridge) prompt(ctx context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	p := fieldsOf(params)
	blocks, err := acp1.ReadPrompt(p["prompt"], true, false, maxBlobs)
	if err != nil {
		return nil, err
	}
	s, err := b.opened(p)
	if err != nil {
		return nil, err
	}
	t := newTurn(b, s, b.cfg.NewID())
	t.blocks = blocks
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	if err := s.enter(t); err != nil {
		return nil, err
	}
	meta := p.in("_meta")
	return func(context.Context) (jsonrpc.Reply, error) {
		defer t.cancel(nil)
		out := b.play(t, meta)
		if out.err != nil {
			return jsonrpc.Reply{}, out.err
		}
		reply := jsonrpc.Reply{Result: promptResult{out.stop, metaOf[promptBerth]{promptBerth{t.runID()}}}}
		if out.more {
			reply.Then = func(ctx context.Context) { b.epilogue(ctx, s, lateLimit) }
		}
		return reply, nil
	}, nil
}

// play runs one prompt to its end. Once it has returned nothing more is told
// of the run.
func (b *Bridge) play(t *turn, meta fields) outcome {
	s := t.session
	release := func() { s.leave(t); close(t.settled) }
	if t.before != nil {
		select {
		case <-t.before:
		case <-t.ctx.Done():
			// It leaves its place; what is behind it waits for what is before it.
			s.leave(t)
			b.aborts.Go(func() { <-t.before; close(t.settled) })
			return ended(t.ctx)
		}
	}
	b.follow(t)
	out, sent := b.deliver(t, meta)
	t.close()
	b.unfollow(t)
	cancelled := t.ctx.Err() != nil
	switch {
	case !cancelled && !out.loose:
		out.more = out.err == nil && !b.epilogue(t.ctx, s, epilogueLimit)
		release()
		return out
	case !sent:
		release()
	default:
		b.aborts.Go(func() { // ends with the bridge, at the latest
			b.abort(t)
			release()
		})
	}
	if cancelled {
		return ended(t.ctx)
	}
	return out
}

// deliver sends the prompt and waits for the end of its run. sent reports
// whether the Gateway may have it.
func (b *Bridge) deliver(t *turn, meta fields) (out outcome, sent bool) {
	l, err := b.gw.link(t.ctx)
	if err != nil {
		return outcome{err: b.worded(t.ctx, "session/prompt", err)}, false
	}
	p, err := b.letter(t, meta, l.hello)
	if err != nil {
		return outcome{err: err}, false
	}
	status, err := b.send(t, p)
	if err != nil {
		return outcome{err: b.worded(t.ctx, "session/prompt", err), loose: errors.Is(err, errLost)}, true
	}
	switch status {
	case "ok": // it has run: the Gateway tells nothing more
		t.finish(outcome{stop: stopOf(lastStop(b.catchUp(t.ctx, t)))})
	case "timeout":
		t.finish(outcome{stop: stopCancelled})
	case "error":
		return outcome{err: domain.Errorf(domain.Unavailable, "session/prompt: the gateway could not begin the turn; try again")}, true
	default:
		t.accept()
	}
	select {
	case <-t.over:
		return t.result(), true
	case <-t.ctx.Done():
		return outcome{}, true
	}
}

// send gives the Gateway the prompt, again when the connection was lost before
// it said that it has it: the idempotency key makes it one. A Gateway that was
// started anew knows no such key, so its transcript is read first.
func (b *Bridge) send(t *turn, p sendParams) (string, error) {
	for try := 0; ; try++ {
		l, err := b.gw.link(t.ctx)
		if err != nil {
			return "", err
		}
		if try > 0 && b.arrived(t.ctx, l, t) {
			return "started", nil
		}
		// Its events are asked for first: reattach may not have come to it yet.
		if err := t.session.watch(t.ctx, l); err != nil {
			b.cfg.Log("the events of %s: %v", t.session.key, err)
		}
		t.sentOn(l)
		raw, err := l.ask(t.ctx, "chat.send", p)
		var e *RPCError
		switch {
		case errors.Is(err, errLost) && t.ctx.Err() == nil && try < mostTries-1:
			continue
		case errors.As(err, &e) && e.Details.MissingScope == scopeAdmin && p.Provenance != nil:
			b.cfg.Log("the gateway takes provenance from administrators alone: the prompt goes without")
			p.Provenance, p.Receipt = nil, ""
			continue
		case errors.As(err, &e) && e.Retryable && e.after() > 0 && e.after() <= mostWait && try < 5:
			if !sleep(t.ctx, e.after()) {
				return "", context.Cause(t.ctx)
			}
			continue
		case err != nil:
			return "", err
		}
		f := fieldsOf(raw)
		if run := f.text("runId"); run != "" && run != t.runID() {
			b.rename(t, run)
		}
		return f.text("status"), nil
	}
}

type abortParams struct {
	SessionKey string `json:"sessionKey"`
	RunID      string `json:"runId"`
}

// abort tells the Gateway that a run is over. While there is no connection it
// waits for one: the Gateway goes on with the run otherwise.
func (b *Bridge) abort(t *turn) {
	ctx := b.last
	select {
	case <-b.ended:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, abortLimit)
		defer cancel()
	default:
	}
	for try := 1; ; try++ {
		l, err := b.gw.link(ctx)
		if err != nil {
			return
		}
		switch err := b.abortOn(ctx, l, t); {
		case errors.Is(err, errLost) && try < mostTries:
		case err != nil && ctx.Err() == nil:
			b.cfg.Log("chat.abort: %v", err)
			return
		default:
			return
		}
	}
}

// abortOn does so on one connection. A Gateway that has not heard of the run
// yet is told again, once it has.
func (b *Bridge) abortOn(ctx context.Context, l *link, t *turn) error {
	began := time.Now()
	for wait := 20 * time.Millisecond; ; wait *= 2 {
		raw, err := l.call(ctx, "chat.abort", abortParams{t.session.key, t.runID()})
		if err != nil {
			return err
		}
		if fieldsOf(raw).flag("aborted") || t.wasAccepted() || time.Since(began) >= abortLimit || !sleep(ctx, wait) {
			return nil
		}
	}
}

// How long the state of the session may take: in front of the answer to a
// prompt, and behind it.
const (
	epilogueLimit = 300 * time.Millisecond
	lateLimit     = 10 * time.Second
)

// epilogue tells how the session is after a turn, and reports whether the
// Gateway said so in time.
func (b *Bridge) epilogue(ctx context.Context, s *session, limit time.Duration) bool {
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	raw, err := b.gw.call(asking, "sessions.describe", describeParams{Key: s.key, Titles: true})
	if err != nil {
		return false
	}
	if r := rowOf(fieldsOf(raw)["session"]); r.key != "" {
		b.tellRow(ctx, s, r)
	}
	return true
}
