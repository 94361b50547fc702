package acp1

import (
	"context"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// load serves session/load: the whole history, then the answer, and nothing
// about the session after it unless the client asks.
func (c *connection) load(ctx context.Context, id domain.SessionID, p object) (jsonrpc.Task, error) {
	run, err := c.open(ctx, id, p, true)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		opened, err := run(ctx)
		if err != nil {
			return jsonrpc.Reply{}, err
		}
		if remarks := c.remarks(opened); remarks != nil {
			remarks(ctx)
		}
		return jsonrpc.Reply{Result: c.opened(opened)}, nil
	}, nil
}

// resume serves session/resume: the session without its history.
func (c *connection) resume(ctx context.Context, id domain.SessionID, p object) (jsonrpc.Task, error) {
	run, err := c.open(ctx, id, p, false)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		opened, err := run(ctx)
		if err != nil {
			return jsonrpc.Reply{}, err
		}
		return jsonrpc.Reply{Result: c.opened(opened), Then: c.remarks(opened)}, nil
	}, nil
}

// open reads what load and resume have in common and reserves the session.
// Keys, labels and resets in _meta belong to session/new: here the id says
// which session is meant.
func (c *connection) open(ctx context.Context, id domain.SessionID, p object, replay bool) (
	func(context.Context) (domain.OpenedSession, error), error,
) {
	req := domain.OpenSession{ID: id, Replay: replay, Answered: jsonrpc.Answered(ctx)}
	var err error
	if req.Dirs, err = c.directories(p); err != nil {
		return nil, err
	}
	m, err := readMeta(p)
	if err != nil {
		return nil, err
	}
	req.Takeover = m.takeover
	servers, err := mcpServers(p["mcpServers"], c.p.Rights)
	if err != nil {
		return nil, err
	}
	if !id.Valid() {
		return nil, domain.NoSession(id)
	}
	turns, others := c.asked.of(id)
	req.After = turns
	run, err := c.p.Sessions.Open(c.client, req)
	if err != nil {
		return nil, err
	}
	c.asked.add(id, openRequest{answered: jsonrpc.Answered(ctx)})
	return func(ctx context.Context) (domain.OpenedSession, error) {
		// When the wait is cancelled the call still runs, and says so.
		_ = waitForAnswers(ctx, others)
		opened, err := run(ctx)
		opened.Notes = append(opened.Notes, servers...)
		return opened, err
	}, nil
}

// opened is the result of load and resume.
func (c *connection) opened(o domain.OpenedSession) openedResult {
	return openedResult{Meta: openedMeta(o)}
}

// remarks sends what belongs to a session that was opened besides its history:
// the slash commands, and what the person should know, if the client shows
// notices; nil when there is nothing to send. The same notes stand in
// _meta.berth.notes of the response. ZeroClaw's clients know no commands. A
// turn that runs goes on behind that.
func (c *connection) remarks(o domain.OpenedSession) func(context.Context) {
	var ups []domain.Update
	if len(o.Commands) > 0 && !c.state().zeroclaw() {
		ups = append(ups, domain.CommandsChanged{Commands: o.Commands})
	}
	if c.state().info.Notices {
		for _, note := range o.Notes {
			ups = append(ups, domain.Notice{Severity: "warning", Title: note})
		}
	}
	ups = append(ups, o.Going...)
	if len(ups) == 0 {
		return nil
	}
	return func(ctx context.Context) {
		for _, u := range ups {
			if c.client.Send(ctx, o.Session.ID, u) != nil {
				return // the client is gone
			}
		}
	}
}
