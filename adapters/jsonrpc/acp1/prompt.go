package acp1

import (
	"context"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// prompt serves session/prompt. Everything the prompt holds is checked, and
// the turn takes its place, before the next message is read: a cancel that
// follows on the wire finds it.
func (c *connection) prompt(ctx context.Context, id domain.SessionID, p object) (jsonrpc.Task, error) {
	a := c.state()
	reader := contentReader{
		lenient: a.zeroclaw(), images: a.images, audio: a.audio, maxBlobs: c.p.Limits.MaxPromptBlobBytes,
	}
	blocks, err := reader.prompt(p["prompt"])
	if err != nil {
		return nil, err
	}
	if !id.Valid() {
		return nil, domain.NoSession(id)
	}
	turns, others := c.asked.of(id)
	run, err := c.p.Turns.Begin(ctx, c.client, id, domain.Prompt{
		Blocks: blocks, Queue: c.queues(), After: append(turns, others...), Trace: traceOf(p.in("_meta")),
	})
	if err != nil {
		return nil, err
	}
	c.asked.add(id, openRequest{answered: jsonrpc.Answered(ctx), turn: true})
	// The turn hangs on the admission's context, which is the request's.
	return func(context.Context) (jsonrpc.Reply, error) {
		out, err := run()
		if err != nil {
			return jsonrpc.Reply{}, jsonrpc.Observed(err) // with the end of the turn
		}
		return jsonrpc.Reply{Result: c.turned(id, out)}, nil
	}, nil
}

// traceOf reads the root keys of _meta that belong to W3C trace context.
func traceOf(meta object) domain.Trace {
	return domain.Trace{Parent: meta.text("traceparent"), State: meta.text("tracestate")}
}

// cancel serves session/cancel, the notification and, for ZeroClaw's clients,
// the request. It is done when it returns. With nothing to cancel it does
// nothing.
func (c *connection) cancel(_ context.Context, id domain.SessionID, _ object) (jsonrpc.Task, error) {
	if id.Valid() {
		c.p.Turns.Cancel(c.client, id, domain.CancelledByClient)
	}
	return func(context.Context) (jsonrpc.Reply, error) { return jsonrpc.Reply{}, nil }, nil
}

// queues reports whether a prompt waits behind a running turn.
func (c *connection) queues() bool {
	switch c.p.Busy {
	case BusyQueue:
		return true
	case BusyReject:
		return false
	case BusyAuto:
	}
	return !c.state().zeroclaw()
}

// cancelledMark ends the content of a cancelled turn for ZeroClaw's clients.
const cancelledMark = "[turn cancelled via client]"

// turned is the result of a turn.
func (c *connection) turned(id domain.SessionID, out domain.TurnOutcome) promptResult {
	content := cut(out.Text, startLimit)
	inner := turnBerth{TurnID: out.Turn, Usage: usageOf(out.Usage), SessionUsage: usageOf(out.Total)}
	if !c.state().zeroclaw() {
		inner.SessionID, inner.Content = id, content
		return promptResult{StopReason: out.Stop.String(), Meta: inBerth[turnBerth]{inner}}
	}
	if out.Stop == domain.StopCancelled {
		if content != "" {
			content += "\n\n"
		}
		content += cancelledMark
	}
	return promptResult{
		SessionID: id, StopReason: out.Stop.String(), Content: &content, Meta: inBerth[turnBerth]{inner},
	}
}

func usageOf(u domain.Usage) *usage {
	if u == (domain.Usage{}) {
		return nil
	}
	return &usage{
		TotalTokens: u.Context(), InputTokens: u.Input, OutputTokens: u.Output, ThoughtTokens: u.Thought,
		CachedReadTokens: u.CachedRead, CachedWriteTokens: u.CachedWrite,
	}
}
