package domain

import "errors"

// Stop says why a turn ended. A turn that failed has no Stop but an Error.
type Stop int

// The stops, as ACP v1 names them (prompt turn, "Stop reasons").
const (
	StopEndTurn         Stop = iota + 1 // the model finished and asked for nothing more
	StopCancelled                       // the client, the session or the process cancelled it
	StopMaxTokens                       // the reply was cut at the token limit
	StopMaxTurnRequests                 // the turn asked the model as often as it may
	StopRefusal                         // the model refused; the turn is left out of its context
)

var stopNames = map[Stop]string{
	StopEndTurn: "end_turn", StopCancelled: "cancelled", StopMaxTokens: "max_tokens",
	StopMaxTurnRequests: "max_turn_requests", StopRefusal: "refusal",
}

// String returns the stop in ACP's words.
func (s Stop) String() string { return stopNames[s] }

// ParseStop is the inverse of String.
func ParseStop(name string) (Stop, bool) {
	for s, n := range stopNames {
		if n == name {
			return s, true
		}
	}
	return 0, false
}

// Cause says who cancelled a context. Contexts of turns and requests are
// always cancelled with one of these, never bare.
type Cause struct{ name string }

// Error returns the cause in words.
func (c *Cause) Error() string { return c.name }

// The causes.
var (
	// CancelledByClient: session/cancel, or a permission answered "cancelled".
	CancelledByClient = &Cause{"cancelled by the client"}
	// RequestCancelled: $/cancel_request for the prompt itself.
	RequestCancelled = &Cause{"request cancelled by the client"}
	// Disconnected: the connection the turn belongs to is gone.
	Disconnected = &Cause{"the client disconnected"}
	// SessionClosed: session/close, session/delete or a reset.
	SessionClosed = &Cause{"the session was closed"}
	// ProcessEnding: the process is going away.
	ProcessEnding = &Cause{"the agent is shutting down"}
)

// StopFor decides how a turn ended, from the cause of its context and what
// its loop returned. A cause wins over whatever error a library invented on
// abort, and an error that only says that the client has gone is a cause too:
// a cancelled turn is a result, never an error.
func StopFor(cause error, loop Stop, err error) (Stop, error) {
	var c *Cause
	if errors.As(cause, &c) || errors.As(err, &c) {
		return StopCancelled, nil
	}
	if err != nil {
		return 0, err
	}
	return loop, nil
}
