// Package turns runs turns: it is the only owner of a turn's life, from the
// admission of a prompt to its single outcome.
//
// The order that everything else relies on is made here. Begin takes the
// session's place on the goroutine that read the prompt, so a cancel read
// after it always finds the turn. The work of the turn happens on one
// goroutine, which joins everything it starts; when it has ended, or was
// given up, the emitter is sealed, the place is freed, and only then does the
// outcome go back to be queued as the response.
//
// Read next: loop.go.
package turns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/services/permissions"
	"github.com/berth-dev/berth/core/services/sessions"
)

const (
	// joinLimit is how long after a cancel the turn waits for its own work
	// before it answers without it. With what follows it keeps a cancel's
	// answer under 250 ms.
	joinLimit = 200 * time.Millisecond
	// closeLimit bounds the last words of a turn that was given up.
	closeLimit = 30 * time.Millisecond
	// settleLimit bounds what is still written after a cancel.
	settleLimit = 5 * time.Second
)

// Params is what an Engine is built from. Every field is required.
type Params struct {
	Sessions    *sessions.Service
	Permissions *permissions.Service
	Models      ports.Models
	Blobs       ports.Blobs
	Observer    ports.Observer
	Clock       ports.Clock
	IDs         ports.IDs
}

// Engine runs turns. Its methods are safe for concurrent use.
type Engine struct{ p Params }

// New returns an engine.
func New(p Params) *Engine { return &Engine{p: p} }

// turn is one running turn.
type turn struct {
	e      *Engine
	id     domain.TurnID
	sid    domain.SessionID
	prompt domain.Prompt
	ctx    context.Context // ends with the turn; cancelled with a cause
	cancel context.CancelCauseFunc
	ticket *sessions.Ticket
	live   *sessions.Live
	emit   *emitter

	view  sessions.View
	model ports.Model
	tools map[string]ports.Tool
	specs []domain.ToolSpec

	messages int                   // message ids given out
	last     *domain.AssistantSaid // the final reply, appended together with TurnFinished

	mu       sync.Mutex // guards what run reads when it gives the work up
	begun    bool       // UserSaid is journalled, so TurnFinished must follow
	requests int
	calls    int
	usage    domain.Usage
	all      strings.Builder // text of all replies
	outcome  domain.TurnOutcome
	err      error
}

// Begin admits a prompt of client c without blocking; it only touches memory.
// The returned function is the turn and must be called exactly once. The
// turn ends early when ctx is cancelled, whatever the cause.
func (e *Engine) Begin(ctx context.Context, c ports.Client, id domain.SessionID, p domain.Prompt) (func() (domain.TurnOutcome, error), error) {
	if !p.Usable() {
		return nil, domain.Errorf(domain.InvalidArgument, "The prompt holds nothing to answer; send text, a resource or a link")
	}
	turnCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	ticket, err := e.p.Sessions.Admit(c, id, p.Queue, cancel)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { cancel(causeOf(ctx)) })
	t := &turn{
		e: e, id: domain.TurnID(e.p.IDs()), sid: id, prompt: p,
		ctx: turnCtx, cancel: cancel, ticket: ticket, live: ticket.Live,
	}
	t.emit = newEmitter(t)
	return func() (domain.TurnOutcome, error) {
		defer cancel(nil)
		defer stop()
		return t.run()
	}, nil
}

// causeOf returns the domain cause of an ended context; a context that ended
// without one belongs to a connection that is gone.
func causeOf(ctx context.Context) error {
	var c *domain.Cause
	if errors.As(context.Cause(ctx), &c) {
		return c
	}
	return domain.Disconnected
}

// Cancel cancels the running turn and the waiting ones of a session with a
// cause. It reports whether there was one; none is no error.
func (e *Engine) Cancel(c ports.Client, id domain.SessionID, cause error) bool {
	return e.p.Sessions.Cancel(c, id, cause)
}

// run is the task of the prompt: it starts the work, waits for it, and gives
// it up when it hangs after a cancel.
func (t *turn) run() (domain.TurnOutcome, error) {
	start := t.e.p.Clock()
	t.e.p.Observer.Observe(t.ctx, domain.TurnBegan{Session: t.sid, Turn: t.id})
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.work()
	}()
	var stray chan struct{}
	select {
	case <-done:
	case <-t.ctx.Done():
		if !joined(done) {
			stray = done
			t.abandon()
		}
	}
	t.emit.seal()
	t.mu.Lock()
	outcome, err := t.outcome, t.err
	event := domain.TurnDone{
		Session: t.sid, Turn: t.id, Stop: outcome.Stop, Cause: context.Cause(t.ctx), Err: err,
		Duration: t.e.p.Clock().Sub(start), Usage: t.usage, Requests: t.requests, Calls: t.calls,
	}
	t.mu.Unlock()
	t.e.p.Observer.Observe(t.ctx, event)
	t.ticket.Done(stray)
	return outcome, err
}

// joined waits for the work to end after a cancel.
func joined(done chan struct{}) bool {
	limit := time.NewTimer(joinLimit)
	defer limit.Stop()
	select {
	case <-done:
		return true
	case <-limit.C:
		return false
	}
}

// abandon ends a turn whose work hangs: open calls are reported failed, the
// emitter is sealed against what may still come, and the journal gets its
// closing if the store answers.
func (t *turn) abandon() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), closeLimit)
	defer cancel()
	open := t.emit.close(ctx)
	t.mu.Lock()
	begun, usage := t.begun, t.usage
	t.outcome = domain.TurnOutcome{Turn: t.id, Stop: domain.StopCancelled, Text: t.all.String(), Usage: usage}
	t.err = nil
	t.mu.Unlock()
	for _, id := range open {
		t.e.trouble(ctx, t.sid, "turns: call outlived its turn", fmt.Errorf("call %s did not end after %w", id, context.Cause(t.ctx)))
	}
	if !begun {
		return
	}
	var recs []domain.Record
	for _, id := range open {
		recs = append(recs, domain.CallFinished{Turn: t.id, Call: id, Failed: true, Interrupted: true, Text: domain.InterruptedText})
	}
	recs = append(recs, domain.TurnFinished{Turn: t.id, Stop: domain.StopCancelled, Usage: usage})
	if err := t.live.Append(ctx, recs...); err != nil {
		t.e.trouble(ctx, t.sid, "turns: close journal", err)
	}
}

func (e *Engine) trouble(ctx context.Context, id domain.SessionID, where string, err error) {
	e.p.Observer.Observe(ctx, domain.Trouble{Session: id, Where: where, Err: err})
}
