package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// listen is E: it reads the editor until its input ends.
func (b *Bridge) listen(ctx context.Context, stop context.CancelCauseFunc) {
	for ctx.Err() == nil {
		frame, err := b.editor.Read()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			err = b.refuse(jsonrpc.NullID, &jsonrpc.Error{
				Code: jsonrpc.CodeInvalidRequest, Reason: "MESSAGE_TOO_LARGE", Message: "The " + long.Error(),
				Data: []domain.Detail{{Key: "limit", Value: long.Limit}},
			})
		case err != nil:
			return
		default:
			err = b.fromEditor(ctx, frame)
		}
		if err != nil {
			stop(err)
			return
		}
	}
}

// fromEditor passes one frame on. The error is that the editor has gone.
func (b *Bridge) fromEditor(ctx context.Context, frame []byte) error {
	m, err := jsonrpc.Parse(frame)
	var bad *jsonrpc.MessageError
	early := b.book.nothingBegun()
	switch {
	case m.Kind == jsonrpc.Response:
		b.editorAnswers(ctx, frame, m)
		return nil
	case errors.As(err, &bad) && (early || bad.ID != jsonrpc.NullID || !utf8.Valid(frame)):
		// A gateway would end a connection that begins so, or holds what is not
		// UTF-8, and its answer could be taken for one to another request.
		return b.refuse(bad.ID, jsonrpc.Refusal(bad))
	case err != nil:
		b.out.put(ctx, item{frame: frame}) // it is the gateway's to say what is wrong
		return nil
	case early && m.Method != "initialize":
		if m.Kind == jsonrpc.Notification {
			return nil
		}
		return b.refuse(m.ID, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Reason: "NOT_INITIALIZED", Message: "Send initialize before any other request",
		})
	case m.Kind == jsonrpc.Notification:
		b.editorNotes(m)
		b.out.put(ctx, item{frame: frame})
		return nil
	}
	frame = b.decorate(frame, m)
	r, ok := b.book.add(m, frame)
	if !ok {
		return b.refuse(m.ID, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Reason: "DUPLICATE_ID", Message: "A request with this id is still running",
		})
	}
	if m.Method == "initialize" && r.number == 1 {
		return nil // begin sends it
	}
	b.out.put(ctx, item{frame, r})
	return nil
}

// editorNotes remembers what the editor has cancelled.
func (b *Bridge) editorNotes(m jsonrpc.Message) {
	switch m.Method {
	case "session/cancel":
		session := text(at(m.Params, "sessionId"))
		b.book.cancelled(func(r *request) bool { return r.method == "session/prompt" && r.session == session })
	case "$/cancel_request":
		key := jsonrpc.ID(at(m.Params, "requestId")).Key()
		b.book.cancelled(func(r *request) bool { return r.id.Key() == key })
	}
}

// editorAnswers passes an answer on, unless nobody waits for it any more.
func (b *Bridge) editorAnswers(ctx context.Context, frame []byte, m jsonrpc.Message) {
	if m.ID != "" {
		q := b.book.answer(m.ID)
		switch {
		case q == nil:
		case q.orphan:
			return
		case q.asked != q.known:
			frame = with(frame, "id", []byte(q.asked))
		}
	}
	b.out.put(ctx, item{frame: frame})
}

// refuse answers a request in the gateway's place.
func (b *Bridge) refuse(id jsonrpc.ID, e *jsonrpc.Error) error {
	return b.tell(jsonrpc.AppendFailure(nil, id, e))
}

// cancelOf is the frame of a session/cancel.
func cancelOf(session string) []byte {
	return notification("session/cancel", `{"sessionId":`+string(quote(session))+`}`)
}

func notification(method, params string) []byte {
	frame, _ := jsonrpc.AppendRequest(nil, "", method, json.RawMessage(params)) // raw params cannot fail
	return frame
}
