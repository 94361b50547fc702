package acp1

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// Ask sends session/request_permission and waits for the answer: until ctx
// ends, whose cause it returns, until the client is gone, which is an error
// with domain.Disconnected in its chain, or as long as an answer may take,
// after which the request counts as unanswered. Only a well-formed answer with
// exactly one of the offered options is Selected.
func (c *client) Ask(ctx context.Context, r domain.PermissionRequest) (domain.Decision, error) {
	limit := c.on.p.Limits.SessionTimeout
	waiting, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	raw, err := c.on.conn.Call(waiting, methodPermission, &permissionParams{r})
	var remote *jsonrpc.RemoteError
	var garbled *jsonrpc.BadAnswerError
	switch {
	case err == nil:
		return c.decision(raw, r.Options), nil
	case ctx.Err() != nil:
		return domain.Decision{}, context.Cause(ctx)
	case errors.Is(err, errNoAnswer):
		return domain.Decision{Note: fmt.Sprintf("nobody answered the request within %s", limit.Round(time.Second))}, nil
	case errors.As(err, &remote):
		return domain.Decision{Note: "the client could not ask: " + brief(remote.Message)}, nil
	case errors.As(err, &garbled):
		return domain.Decision{Note: "the client's answer could not be understood"}, nil
	}
	return domain.Decision{}, err
}

var errNoAnswer = errors.New("no answer to the permission request in time")

// decision reads an answer.
func (c *client) decision(raw json.RawMessage, offered []domain.PermissionOption) domain.Decision {
	return readDecision(raw, offered, c.on.state().zeroclaw())
}

// readDecision reads an answer. Whatever is not clear is no answer. To
// ZeroClaw's clients a withdrawn question is one that nobody answered.
func readDecision(raw json.RawMessage, offered []domain.PermissionOption, zeroclaw bool) domain.Decision {
	outcome := objectOf(raw).in("outcome")
	switch outcome.text("outcome") {
	case "cancelled":
		if zeroclaw {
			return domain.Decision{Note: "the client withdrew the question"}
		}
		return domain.Decision{Outcome: domain.Withdrawn}
	case "selected":
		id, ok := stringOf(outcome["optionId"])
		for _, o := range offered {
			if ok && o.ID == id {
				return domain.Decision{Outcome: domain.Selected, Option: id}
			}
		}
		return domain.Decision{Note: "the client chose an option that was not offered"}
	}
	return domain.Decision{Note: "the client's answer could not be understood"}
}

// permissionParams is the params of session/request_permission.
type permissionParams struct{ domain.PermissionRequest }

// AppendJSON appends the params. The call goes along as it was announced,
// because some clients show nothing else, with the reason in front.
func (p *permissionParams) AppendJSON(dst []byte) []byte {
	call := p.Call
	call.Status = cmp.Or(call.Status, domain.CallPending)
	if p.Reason != "" {
		reason := domain.ContentBlock{Block: domain.Text{Text: p.Reason}}
		call.Content = append([]domain.CallContent{reason}, call.Content...)
	}
	e := newEncoder(dst, false)
	for {
		e.raw(`{"sessionId":`)
		e.string(string(p.Session))
		e.raw(`,"toolCall":{`)
		e.call(call)
		e.raw(`},"options":[`)
		for i, o := range p.Options {
			if i > 0 {
				e.raw(`,`)
			}
			e.raw(`{"optionId":`)
			e.string(o.ID)
			e.raw(`,"name":`)
			e.string(o.Name)
			e.raw(`,"kind":`)
			e.string(string(o.Kind))
			e.raw(`}`)
		}
		e.raw(`]}`)
		if e.fits() {
			return e.buf
		}
	}
}
