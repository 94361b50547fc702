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
		if notices := c.noticesFor(opened); notices != nil {
			notices(ctx)
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
		return jsonrpc.Reply{Result: c.opened(opened), Then: c.noticesFor(opened)}, nil
	}, nil
}

// open reads what load and resume have in common and reserves the session.
// Keys, labels and resets in _meta belong to session/new: here the id says
// which session is meant.
func (c *connection) open(ctx context.Context, id domain.SessionID, p object, replay bool) (
	func(context.Context) (domain.OpenedSession, error), error,
) {
	req := domain.OpenSession{ID: id, Replay: replay}
	var err error
	if req.Dirs, err = c.directories(p); err != nil {
		return nil, err
	}
	m, err := readMeta(p)
	if err != nil {
		return nil, err
	}
	req.Takeover = m.takeover
	servers, err := mcpServers(p["mcpServers"])
	if err != nil {
		return nil, err
	}
	if !id.Valid() {
		return nil, domain.NoSession(id)
	}
	run, err := c.p.Sessions.Open(c.client, req)
	if err != nil {
		return nil, err
	}
	answered := c.turns.of(id)
	c.turns.add(id, jsonrpc.Answered(ctx))
	return func(ctx context.Context) (domain.OpenedSession, error) {
		// The session's turns have ended; their answers go first. When the
		// wait is cancelled the call still runs, and says so.
		_ = waitForAnswers(ctx, answered)
		opened, err := run(ctx)
		opened.Notes = append(opened.Notes, servers...)
		return opened, err
	}, nil
}

// opened is the result of load and resume.
func (c *connection) opened(o domain.OpenedSession) openedResult {
	return openedResult{Meta: openedMeta(o)}
}

// noticesFor sends what the person should know about a session that was
// opened, if the client shows notices; nil when there is nothing to send. The
// same notes stand in _meta.berth.notes of the response.
func (c *connection) noticesFor(o domain.OpenedSession) func(context.Context) {
	if len(o.Notes) == 0 || !c.state().info.Notices {
		return nil
	}
	return func(ctx context.Context) {
		for _, note := range o.Notes {
			if c.client.Send(ctx, o.Session.ID, domain.Notice{Severity: "warning", Title: note}) != nil {
				return // the client is gone
			}
		}
	}
}
