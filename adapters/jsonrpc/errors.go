package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// The codes of JSON-RPC 2.0 and of ACP ("Errors").
const (
	CodeParse            = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternal         = -32603
	CodeAuthRequired     = -32000 // ACP: this and nothing else
	CodeNotFound         = -32002 // ACP: a resource, a session
	CodeRequestCancelled = -32800
)

// Dialect chooses the numbers of a connection's errors. data.reason is the
// same string in both.
type Dialect int32

// The dialects.
const (
	ACP      Dialect = iota // ACP v1's numbers, ours outside the reserved ranges
	Zeroclaw                // the numbers ZeroClaw's own clients know
)

// wire is one row of the table: the numbers by dialect, the stable reason.
type wire struct {
	acp, zeroclaw int
	reason        string
}

// wireOf is the only table from the core's codes to JSON-RPC errors.
func wireOf(c domain.Code) wire {
	switch c {
	case domain.InvalidArgument:
		return wire{CodeInvalidParams, CodeInvalidParams, "INVALID_PARAMS"}
	case domain.SessionNotFound:
		return wire{CodeNotFound, -32000, "SESSION_NOT_FOUND"}
	case domain.SessionLimit:
		return wire{-31001, -32001, "SESSION_LIMIT_REACHED"}
	case domain.SessionBusy:
		return wire{-31002, -32002, "SESSION_BUSY"}
	case domain.SessionActive:
		return wire{-31003, CodeInvalidParams, "SESSION_ACTIVE"}
	case domain.NotFound:
		// -32002 means a busy session to ZeroClaw's clients.
		return wire{CodeNotFound, CodeInvalidParams, "NOT_FOUND"}
	case domain.AuthRequired:
		return wire{CodeAuthRequired, CodeAuthRequired, "AUTH_REQUIRED"}
	case domain.Unsupported:
		return wire{CodeMethodNotFound, CodeMethodNotFound, "METHOD_NOT_FOUND"}
	case domain.Conflict:
		return wire{CodeInternal, CodeInternal, "CONFLICT"}
	case domain.Denied:
		return wire{CodeInvalidParams, CodeInvalidParams, "DENIED"}
	case domain.TooLarge:
		return wire{CodeInvalidParams, CodeInvalidParams, "TOO_LARGE"}
	case domain.Unavailable:
		return wire{CodeInternal, CodeInternal, "PROVIDER_ERROR"}
	case domain.RateLimited:
		return wire{CodeInternal, CodeInternal, "RATE_LIMITED"}
	case domain.QuotaExhausted:
		return wire{CodeInternal, CodeInternal, "QUOTA_EXHAUSTED"}
	case domain.CostLimit:
		return wire{CodeInternal, CodeInternal, "COST_LIMIT_REACHED"}
	case domain.ContextTooLong:
		return wire{CodeInternal, CodeInternal, "CONTEXT_TOO_LONG"}
	case domain.ProviderRejected:
		return wire{CodeInternal, CodeInternal, "PROVIDER_REJECTED"}
	case domain.StoreUnavailable:
		return wire{CodeInternal, CodeInternal, "STORE_ERROR"}
	case domain.StoreCorrupt:
		return wire{CodeInternal, CodeInternal, "STORE_CORRUPT"}
	case domain.Cancelled:
		return wire{CodeRequestCancelled, CodeRequestCancelled, "REQUEST_CANCELLED"}
	case domain.ShuttingDown:
		return wire{CodeRequestCancelled, CodeRequestCancelled, "SHUTTING_DOWN"}
	}
	return wire{CodeInternal, CodeInternal, "INTERNAL_ERROR"}
}

// Error is an error as it goes out. Handlers return domain errors, which
// WireError turns into this; an *Error of their own goes out as it is.
type Error struct {
	Code    int
	Reason  string // data.reason, a stable upper-case word
	Message string
	Data    []domain.Detail // further members of data
}

// Error returns the code and the message.
func (e *Error) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// AppendJSON appends the JSON-RPC error object.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	dst = append(dst, `,"data":{"reason":`...)
	dst = AppendString(dst, e.Reason)
	for i, d := range e.Data {
		if d.Key == "reason" || repeats(e.Data[:i], d.Key) {
			continue
		}
		dst = append(dst, ',')
		dst = AppendString(dst, d.Key)
		dst = append(dst, ':')
		switch v := d.Value.(type) {
		case string:
			dst = AppendString(dst, v)
		default:
			text, err := json.Marshal(v)
			if err != nil {
				text = []byte("null")
			}
			dst = append(dst, text...)
		}
	}
	return append(dst, "}}"...)
}

func repeats(before []domain.Detail, key string) bool {
	for _, d := range before {
		if d.Key == key {
			return true
		}
	}
	return false
}

// WireError maps what a handler returned to the dialect's error. An error
// without a code, and one with code Internal, tells the peer nothing but
// that; the details are for the observer.
func (d Dialect) WireError(err error) *Error {
	var ready *Error
	if errors.As(err, &ready) {
		return ready
	}
	var coded *domain.Error
	if !errors.As(err, &coded) {
		coded = &domain.Error{Code: domain.Internal}
	}
	row := wireOf(coded.Code)
	e := &Error{Code: row.acp, Reason: row.reason, Message: sentence(coded.Msg), Data: coded.Details}
	if d == Zeroclaw {
		e.Code = row.zeroclaw
	}
	if coded.Code == domain.Internal {
		e.Message = "Internal error"
	} else if e.Message == "" {
		e.Message = sentence(coded.Code.String())
	}
	if coded.RetryAfter > 0 {
		e.Data = append(e.Data[:len(e.Data):len(e.Data)],
			domain.Detail{Key: "retryAfterMs", Value: coded.RetryAfter.Milliseconds()})
	}
	return e
}

// maxMessage bounds an error's message, in bytes; more belongs into data.
const maxMessage = 1000

// sentence puts a message on one line of bounded length.
func sentence(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(s) > maxMessage {
		s = s[:maxMessage]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		s = strings.TrimSpace(s[:max(len(s)-1, 0)]) + "…"
	}
	return s
}

// abandoned gives the bare context error of a request that was cancelled the
// code of its cause, and leaves every other error alone.
func abandoned(ctx context.Context, err error) error {
	var coded *domain.Error
	if ctx.Err() == nil || errors.As(err, &coded) {
		return err
	}
	cause := context.Cause(ctx)
	if !errors.Is(err, cause) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(cause, domain.ProcessEnding) {
		return domain.WrapError(domain.ShuttingDown, err, "The agent is shutting down")
	}
	return domain.WrapError(domain.Cancelled, err, "The request was cancelled")
}

// RemoteError is the peer's error answer to one of our requests.
type RemoteError struct {
	Code    int
	Message string
	Data    json.RawMessage // nil if there was none
}

// Error gives the code and the peer's words.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("peer answered error %d: %s", e.Code, e.Message)
}

// Is reports whether target is a *RemoteError of the same code without words
// of its own, so errors.Is asks for a code.
func (e *RemoteError) Is(target error) bool {
	t, ok := target.(*RemoteError)
	return ok && t.Code == e.Code && t.Message == ""
}
