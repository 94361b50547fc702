package ports

import (
	"context"
	"io"

	"github.com/berth-dev/berth/core/domain"
)

// Tool is one thing a model may call.
type Tool interface {
	Spec() domain.ToolSpec
	// Prepare resolves everything a call needs, once, without effects. Wrong
	// arguments are an error coded InvalidArgument, NotFound, Denied or
	// TooLarge whose message tells the model how to mend the call.
	Prepare(context.Context, domain.ToolCall) (Prepared, error)
}

// Prepared is a call that was looked at and not yet run: the approved thing
// is exactly the thing run.
type Prepared interface {
	Plan() domain.ToolPlan
	// Run has the effect, at most once, and reports on the way. It returns
	// promptly when the context ends. A failure of the call is a result; an
	// error means our machinery broke, save domain.CancelledByClient: the
	// person was asked something and cancelled, which ends the turn.
	Run(context.Context, func(domain.ToolProgress)) (domain.ToolResult, error)
	// Close releases what Prepare opened. It is called exactly once, also
	// when Run was not.
	Close() error
}

// Toolset is the tools of one session.
type Toolset interface {
	Tools() []Tool
	io.Closer
}

// ToolSource opens tools for a session.
type ToolSource interface {
	// Open returns the session's tools. The client is the session's
	// attachment: it answers as of each call.
	Open(context.Context, domain.Session, Client) (Toolset, error)
}
