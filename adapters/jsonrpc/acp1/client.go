package acp1

import (
	"context"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// client is the connection as the services see it: ports.Client. Its methods
// are safe for concurrent use, and sessions know each other's clients by
// address.
type client struct{ on *connection }

var _ ports.Client = (*client)(nil)

// Info returns what the client said it is and can do.
func (c *client) Info() domain.ClientInfo { return c.on.state().info }

// pieceBytes is the most text one chunk carries. Longer ones are sent as
// several, which is the same to the client: chunks are concatenated.
const pieceBytes = 512 << 10

// Send queues one update as session/update. It blocks while the client is
// slow, until ctx ends. It returns the cause of ctx, or domain.Disconnected
// when the client is gone.
func (c *client) Send(ctx context.Context, id domain.SessionID, u domain.Update) error {
	a := c.on.state()
	if q, ok := u.(domain.QueueChanged); ok {
		return c.on.conn.Notify(ctx, methodQueue, queueParamsOf(id, q))
	}
	u, ok := visible(u, a.info)
	if !ok {
		return nil
	}
	text, rebuild := longText(u)
	for rebuild != nil && len(text) > pieceBytes {
		end := runeStart(text, pieceBytes)
		if err := c.notify(ctx, id, rebuild(text[:end]), a); err != nil {
			return err
		}
		text = text[end:]
		u = rebuild(text)
	}
	return c.notify(ctx, id, u, a)
}

func (c *client) notify(ctx context.Context, id domain.SessionID, u domain.Update, a *agreement) error {
	return c.on.conn.Notify(ctx, methodUpdate, &sessionUpdate{id: id, update: u, zeroclaw: a.zeroclaw()})
}

// longText returns the text of an update that is too long for one chunk, and
// how to make such an update of a part of it; nil for every other update.
func longText(u domain.Update) (string, func(string) domain.Update) {
	switch u := u.(type) {
	case domain.AgentText:
		if len(u.Text) > pieceBytes {
			return u.Text, func(s string) domain.Update { return domain.AgentText{ID: u.ID, Text: s} }
		}
	case domain.AgentThought:
		if len(u.Text) > pieceBytes {
			return u.Text, func(s string) domain.Update { return domain.AgentThought{ID: u.ID, Text: s} }
		}
	case domain.UserMessage:
		if t, ok := u.Block.(domain.Text); ok && len(t.Text) > pieceBytes {
			return t.Text, func(s string) domain.Update {
				return domain.UserMessage{ID: u.ID, Block: domain.Text{Text: s}}
			}
		}
	}
	return "", nil
}

// Files returns the editor's buffers, if the client offers either direction.
func (c *client) Files() (ports.Files, bool) {
	info := c.Info()
	if !info.ReadFiles && !info.WriteFiles {
		return nil, false
	}
	return files{conn: c.on.conn, read: info.ReadFiles, write: info.WriteFiles}, true
}

var _ jsonrpc.Handler = (*connection)(nil)
