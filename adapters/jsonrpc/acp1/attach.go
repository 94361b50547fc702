package acp1

import (
	"context"
	"errors"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// await serves _berth/session/await: the answer that a prompt gets, for a client
// that has the session by now and did not send the prompt. params.turnId names
// the turn; without it the one that was admitted last is meant.
func (c *connection) await(ctx context.Context, id domain.SessionID, p object) (jsonrpc.Task, error) {
	if !id.Valid() {
		return nil, domain.NoSession(id)
	}
	run, err := c.p.Sessions.Await(c.client, id, domain.TurnID(p.text("turnId")))
	if err != nil {
		return nil, err
	}
	c.asked.add(id, openRequest{answered: jsonrpc.Answered(ctx), turn: true})
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		out, err := run(ctx)
		if err != nil {
			return jsonrpc.Reply{}, jsonrpc.Observed(err) // with the end of the turn
		}
		return jsonrpc.Reply{Result: c.turned(id, out)}, nil
	}, nil
}

// observe serves _berth/session/observe: everything that goes on in a session
// that another client has, after its history if params.replay is true.
func (c *connection) observe(ctx context.Context, id domain.SessionID, p object) (jsonrpc.Task, error) {
	if k := kindOf(p["replay"]); k != 't' && k != 'f' && !absent(p["replay"]) {
		return nil, domain.Errorf(domain.InvalidArgument, "replay must be true or false")
	}
	run, err := c.p.Sessions.Observe(c.client, id, p.flag("replay"), jsonrpc.Answered(ctx))
	if err != nil {
		return nil, err
	}
	_, before := c.asked.of(id)
	c.asked.add(id, openRequest{answered: jsonrpc.Answered(ctx)})
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		_ = waitForAnswers(ctx, before) // when that is cancelled the call says so
		opened, err := run(ctx)
		if err != nil {
			return jsonrpc.Reply{}, err
		}
		return jsonrpc.Reply{Result: c.opened(opened)}, nil
	}, nil
}

// unobserve serves _berth/session/unobserve. What is not observed is left so.
// It cuts an observation short that has not been answered yet, and ends one
// that has not even begun. Nothing more is told behind the answer.
func (c *connection) unobserve(ctx context.Context, id domain.SessionID, _ object) (jsonrpc.Task, error) {
	rest, _ := c.p.Sessions.Unobserve(c.client, id)
	_, before := c.asked.of(id)
	c.asked.add(id, openRequest{answered: jsonrpc.Answered(ctx)})
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		err := waitForAnswers(ctx, before)
		more, _ := c.p.Sessions.Unobserve(c.client, id)
		return jsonrpc.Reply{}, errors.Join(err, rest(ctx), more(ctx))
	}, nil
}

// queueParams is the params of _berth/session/queue, which tells an observer
// which turns are admitted, and how the one ended that was before.
type queueParams struct {
	SessionID domain.SessionID `json:"sessionId"`
	Running   domain.TurnID    `json:"running,omitempty"`
	Queued    []queuedTurn     `json:"queued"`
	Ended     *endedTurn       `json:"ended,omitempty"`
}

// endedTurn is a turn that has ended. A turn that failed has no stop reason but
// an error, in words.
type endedTurn struct {
	TurnID     domain.TurnID `json:"turnId"`
	StopReason string        `json:"stopReason,omitempty"`
	Error      string        `json:"error,omitempty"`
}

func queueParamsOf(id domain.SessionID, q domain.QueueChanged) queueParams {
	p := queueParams{SessionID: id, Running: q.Running, Queued: queuedTurns(q.Queued)}
	if e := q.Ended; e != nil {
		p.Ended = &endedTurn{TurnID: e.Turn, StopReason: e.Stop.String(), Error: cut(e.Why, startLimit/64)}
	}
	return p
}
