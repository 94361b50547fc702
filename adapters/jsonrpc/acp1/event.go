package acp1

import (
	"context"
	"encoding/json"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// event serves the inbound session/update and its old name session/event: the
// client tells something about a session. It is recorded, and given to the
// model with the next prompt if _meta.berth.context is true.
func (c *connection) event(_ context.Context, id domain.SessionID, p object) (jsonrpc.Task, error) {
	if !id.Valid() {
		return nil, domain.NoSession(id)
	}
	kind := p.text("type")
	if kind == "" {
		kind = p.in("update").text("sessionUpdate")
	}
	if kind == "" {
		kind = "unknown"
	}
	run, err := c.p.Sessions.Event(c.client, id, domain.ClientEvent{
		Type:     brief(kind),
		Payload:  p.payload(),
		ForModel: p.in("_meta").in("berth").flag("context"),
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		if err := run(ctx); err != nil {
			return jsonrpc.Reply{}, err
		}
		return jsonrpc.Reply{Result: c.placed(extras{SessionID: id, Type: kind, Status: "processed"})}, nil
	}, nil
}

// payload is what an event says: its update if it has one, else all of it but
// the envelope.
func (o object) payload() []byte {
	if o.has("update") {
		return append([]byte(nil), o["update"]...)
	}
	rest := object{}
	for name, raw := range o {
		switch name {
		case "sessionId", "session_id", "_meta":
		default:
			rest[name] = raw
		}
	}
	text, err := json.Marshal(rest)
	if err != nil {
		return []byte("{}") // no valid message leads here
	}
	return text
}
