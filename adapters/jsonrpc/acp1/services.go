package acp1

import (
	"context"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// SessionService is what the protocol asks of sessions. Methods that return a
// function are two-phase: the method itself runs on the read goroutine, in
// wire order, and neither blocks nor does I/O; the function it returns runs
// exactly once, on a goroutine of its own.
type SessionService interface {
	// New opens a session by key or label, or makes one.
	New(context.Context, ports.Client, domain.NewSession) (domain.OpenedSession, error)
	// Open reserves a stored session; the function opens it, sends its history
	// through the client first if Replay asks for it.
	Open(ports.Client, domain.OpenSession) (func(context.Context) (domain.OpenedSession, error), error)
	// Close cancels what the session does; the function waits for the end.
	Close(ports.Client, domain.SessionID) (func(context.Context) error, error)
	// Stop is Close that lets the turn finish.
	Stop(ports.Client, domain.SessionID) (func(context.Context) error, error)
	// Delete closes the session and removes it from the store.
	Delete(ports.Client, domain.SessionID) (func(context.Context) error, error)
	// Event records something the client tells of the session.
	Event(ports.Client, domain.SessionID, domain.ClientEvent) (func(context.Context) error, error)
	// List returns one page of the stored sessions that the client may use.
	List(context.Context, ports.Client, domain.SessionQuery) (domain.SessionPage, error)
	// Await finds a turn of a session that the client has, the newest one when
	// none is named; the function waits for its end.
	Await(ports.Client, domain.SessionID, domain.TurnID) (func(context.Context) (domain.TurnOutcome, error), error)
	// Observe shows the client a session that another has; the function sends
	// its history first, if replay asks for it, and what goes on is told when
	// answered is closed.
	Observe(c ports.Client, id domain.SessionID, replay bool, answered <-chan struct{}) (func(context.Context) (domain.OpenedSession, error), error)
	// Unobserve ends that, and reports whether it was so. It does not block; rest
	// returns when nothing more is told of it, or with the context's cause.
	Unobserve(ports.Client, domain.SessionID) (rest func(context.Context) error, was bool)
	// Detach says that the client sends nothing any more: its turns are
	// cancelled with the cause and its sessions released when they have ended.
	// It does not block.
	Detach(client ports.Client, cause error)
	// Lose says that the connection of the client broke: what it had waits for
	// somebody to take it over, as far as that is configured, and else ends as
	// with Detach. It does not block.
	Lose(client ports.Client)
	// Absent says that the connection of the client is interrupted, or goes on.
	// It does not block.
	Absent(client ports.Client, away bool)
	// Durable reports whether sessions outlive the process. It may open the
	// store.
	Durable() bool
}

// KeyService is what the protocol asks of the keys of models' providers. Its
// methods may block, each for a bounded time.
type KeyService interface {
	// Check asks the model's provider, at no cost, whether it takes the key.
	// AuthRequired when it does not; nil when that could not be found out.
	Check(context.Context, domain.ModelRef) error
	// Forgets reports whether the model's key is one that Forget removes, or
	// would be if there were one. It does not block.
	Forgets(domain.ModelRef) bool
	// Forget removes the model's stored key, if there is one.
	Forget(context.Context, domain.ModelRef) error
}

// TurnService is what the protocol asks of turns.
type TurnService interface {
	// Begin admits a prompt, on the read goroutine. The function it returns
	// runs the turn and must be called exactly once. A turn that is cancelled
	// has an outcome, never an error.
	Begin(context.Context, ports.Client, domain.SessionID, domain.Prompt) (func() (domain.TurnOutcome, error), error)
	// Cancel cancels the running and the queued turns of the session, if the
	// client has it, and reports whether there was one. It does not block.
	Cancel(c ports.Client, id domain.SessionID, cause error) bool
}
