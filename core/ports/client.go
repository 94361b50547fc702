package ports

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
)

// Updates tells a client about a session. The order of Send calls is the
// order on the wire.
type Updates interface {
	// Send queues one update; it blocks while the client is slow, until the
	// context ends. After the client is gone it fails with the cause
	// domain.Disconnected in its chain.
	Send(context.Context, domain.SessionID, domain.Update) error
}

// Approver asks the person.
type Approver interface {
	// Ask returns promptly when the context ends, with its cause; a late
	// answer is discarded. Whatever is not a clear answer is Unanswered.
	Ask(context.Context, domain.PermissionRequest) (domain.Decision, error)
}

// Client is the other end of a session.
type Client interface {
	Updates
	Approver
	Info() domain.ClientInfo
	// Files returns the client's editor buffers, if it offers them.
	Files() (Files, bool)
}

// Files is the overlay of a client's editor buffers over the disk.
type Files interface {
	// ReadText returns the whole text of the file as the editor has it.
	// NotFound when it does not exist, Denied when the client decided against
	// it, Unsupported when it does not serve reads; whatever else went wrong
	// is Unavailable and may be answered from the disk.
	ReadText(ctx context.Context, id domain.SessionID, path string) (string, error)
	// WriteText replaces the whole text, creating the file if need be. It
	// waits as long as the person reviews. NotFound and Unsupported say that
	// the client cannot hold the file; one with domain.Disconnected in its
	// chain that the client went away, and nobody knows whether it was taken;
	// any other error that it was not.
	WriteText(ctx context.Context, id domain.SessionID, path, text string) error
}
