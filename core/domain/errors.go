package domain

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code says what kind of failure an Error is. The set is closed: adapters
// map every code to their own wire (JSON-RPC, exit status, log level) in one
// exhaustive table.
type Code int

// The codes. Internal is the zero value, so an error nobody coded is internal.
const (
	Internal         Code = iota // our machinery broke; details belong in the log only
	InvalidArgument              // the caller sent something wrong; Msg says what and how to mend it
	SessionNotFound              // no such session, or it is not active here
	SessionLimit                 // too many active sessions
	SessionBusy                  // a turn is in flight and prompts are rejected, or the queue is full
	SessionActive                // the session has a live owner elsewhere
	NotFound                     // a file or another resource does not exist
	AuthRequired                 // the model's provider has no key, or refused it
	Unsupported                  // the method or ability is not offered here
	Conflict                     // a journal or record moved on under the writer
	Denied                       // policy forbids it
	TooLarge                     // a limit on size was passed
	Unavailable                  // a provider cannot be reached or cut the exchange short
	RateLimited                  // the provider asks to wait; RetryAfter says how long
	QuotaExhausted               // the provider's account is spent; waiting does not help
	CostLimit                    // what the operator allows the agent to cost is spent
	ContextTooLong               // the request exceeds the model's window
	ProviderRejected             // the provider refused the request itself (bad model, bad schema)
	StoreUnavailable             // the store cannot be read or written now
	StoreCorrupt                 // stored data is damaged
	Cancelled                    // the operation was cancelled
	ShuttingDown                 // the process is going away
)

var codeNames = [...]string{
	"internal", "invalid argument", "session not found", "session limit", "session busy",
	"session active", "not found", "auth required", "unsupported", "conflict", "denied",
	"too large", "unavailable", "rate limited", "quota exhausted", "cost limit", "context too long",
	"provider rejected", "store unavailable", "store corrupt", "cancelled", "shutting down",
}

// String returns the code in words.
func (c Code) String() string {
	if c < 0 || int(c) >= len(codeNames) {
		return fmt.Sprintf("code %d", int(c))
	}
	return codeNames[c]
}

// Codes returns every code, for tables that must be complete.
func Codes() []Code {
	all := make([]Code, len(codeNames))
	for i := range all {
		all[i] = Code(i)
	}
	return all
}

// Error is a failure a caller can act on. Msg is one plain English sentence
// for the person at the other end: what was wrong and what to do. It never
// holds a secret. Err is the cause, for the log alone.
type Error struct {
	Code       Code
	Msg        string
	Err        error         // cause; never shown to a client
	RetryAfter time.Duration // when the provider said how long to wait; else 0
	Details    []Detail      // machine-readable facts for the caller
}

// Detail is one machine-readable fact of an Error, such as the session's id
// or the limit that was reached. Value is a string, bool, int,
// int64 or []string.
type Detail struct {
	Key   string
	Value any
}

// Errorf makes an Error whose message is formatted; a %w verb sets the cause
// and puts its text into the message, so use it only for causes fit to show.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// WrapError makes an Error with a message for the caller and a hidden cause.
func WrapError(code Code, err error, msg string) *Error {
	return &Error{Code: code, Msg: msg, Err: err}
}

// With returns a copy of e with one more detail.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Details = append(append([]Detail(nil), e.Details...), Detail{key, value})
	return &c
}

// Error returns the message, followed by the cause when there is one that the
// message does not already contain.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Msg
	}
	if cause := e.Err.Error(); !strings.Contains(e.Msg, cause) {
		return e.Msg + ": " + cause
	}
	return e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is an *Error of the same code with no message of
// its own, so errors.Is(err, &Error{Code: c}) asks for a code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Msg == ""
}

// CodeOf returns the code of the first Error in err's chain. A nil error and
// an uncoded one are Internal; ask HasCode when that matters.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// HasCode reports whether err's chain holds an Error whose code is code.
func HasCode(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// NoSession is the error for an unknown or inactive session.
func NoSession(id SessionID) *Error {
	return Errorf(SessionNotFound, "Resource not found: session %s", id).With("sessionId", string(id))
}
