package acp1

import (
	"context"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// closeSession serves session/close: what runs is cancelled and answered, the
// record stays.
func (c *connection) closeSession(_ context.Context, id domain.SessionID, _ object) (jsonrpc.Task, error) {
	// Closing what is not open has succeeded already; ZeroClaw's clients expect
	// an error.
	return c.end(id, c.p.Sessions.Close, !c.state().zeroclaw(), nil)
}

// stopSession serves session/stop: close that lets the running turn finish.
func (c *connection) stopSession(_ context.Context, id domain.SessionID, _ object) (jsonrpc.Task, error) {
	return c.end(id, c.p.Sessions.Stop, false, c.placed(extras{SessionID: id, Stopped: true}))
}

// deleteSession serves session/delete. Deleting what does not exist succeeds.
func (c *connection) deleteSession(_ context.Context, id domain.SessionID, _ object) (jsonrpc.Task, error) {
	return c.end(id, c.p.Sessions.Delete, true, nil)
}

// ender is Close, Stop or Delete of the sessions.
type ender func(ports.Client, domain.SessionID) (func(context.Context) error, error)

// end runs one of them. forgiving takes an unknown session for success.
func (c *connection) end(id domain.SessionID, fn ender, forgiving bool, result any) (jsonrpc.Task, error) {
	forgive := func(err error) error {
		if forgiving && domain.HasCode(err, domain.SessionNotFound) {
			return nil
		}
		return err
	}
	var run func(context.Context) error
	err := error(domain.NoSession(id))
	if id.Valid() {
		run, err = fn(c.client, id)
	}
	if forgive(err) != nil {
		return nil, err
	}
	if err != nil {
		run = func(context.Context) error { return nil }
	}
	turns, others := c.asked.of(id)
	if err != nil {
		turns = nil // of a session that another has: they may go on for long
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		if err := forgive(run(ctx)); err != nil {
			return jsonrpc.Reply{}, err
		}
		// The turns have ended; their answers go first.
		if err := waitForAnswers(ctx, append(turns, others...)); err != nil {
			return jsonrpc.Reply{}, err
		}
		return jsonrpc.Reply{Result: result}, nil
	}, nil
}
