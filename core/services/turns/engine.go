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
// Read next: loop.go (the story), then run.go (how it ends), step.go and
// calls.go.
package turns

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/services/permissions"
	"github.com/berth-dev/berth/core/services/sessions"
)

// Params is what an Engine is built from. Every field is required.
type Params struct {
	Sessions    *sessions.Service
	Permissions *permissions.Service
	Models      ports.Models
	Ledger      ports.Ledger
	Blobs       ports.Blobs
	// Instructions and Sandbox say what the system prompt must tell.
	Instructions ports.Instructions
	Sandbox      ports.Sandbox
	Observer     ports.Observer
	Clock        ports.Clock
	IDs          ports.IDs
}

// Engine runs turns. Its methods are safe for concurrent use.
type Engine struct{ p Params }

// New returns an engine.
func New(p Params) *Engine { return &Engine{p: p} }

// turn is one running turn. What stands above mu belongs to the work
// goroutine once that runs, and does not change when it is shared.
type turn struct {
	e      *Engine
	id     domain.TurnID
	sid    domain.SessionID
	prompt domain.Prompt
	client ports.Client // that sent it
	ticket *sessions.Ticket
	live   *sessions.Live
	emit   *emitter

	// ctx is the work: the model, the tools, the questions. It is cancelled
	// with a cause.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// writing is what must reach the journal even after a cancel. It ends
	// settleLimit after one.
	writing    context.Context
	endWriting context.CancelCauseFunc
	// telling is what the client must be told even after a cancel. It ends
	// when the work is given up.
	telling    context.Context
	endTelling context.CancelCauseFunc

	held     bool // the session is held in memory
	view     sessions.View
	model    ports.Model
	tools    map[string]equipped
	specs    []domain.ToolSpec
	system   string                // the system prompt, the same for all requests of the turn
	messages int                   // message ids given out
	standIn  domain.ModelRef       // who the client was last told of as answering in the model's place
	last     *domain.AssistantSaid // the final reply, appended together with TurnFinished
	spoke    bool                  // the newest reply showed the client something
	command  string                // the slash command that the prompt is; "" when it is none
	words    string                // what follows it
	squeezed int                   // compactions of this turn
	tight    bool                  // the last one could not make the usual room

	mu       sync.Mutex // guards what run reads when it gives the work up
	begun    bool       // UserSaid is journalled, so TurnFinished must follow
	partial  *reply     // streamed and not yet on its way to the journal
	foreign  bool       // text from outside entered the turn
	agent    string     // whose turn it is; until it begins, whose it would be
	placed   time.Time  // when the turn's place was its own
	spokeAt  time.Time  // when the first text came
	requests int
	calls    int
	before   domain.Usage     // of the session, when the turn began
	usage    domain.Usage     // of the turn
	cost     *domain.MicroUSD // of the session, this turn included; nil when unknown
	all      []string         // texts of all replies, without the one that grows
	final    string           // text of the newest complete reply
	decided  bool             // outcome and err are set
	outcome  domain.TurnOutcome
	err      error
}

// Begin admits a prompt of client c without blocking; it only touches memory.
// The returned function is the turn and must be called exactly once. The
// turn ends early when ctx is cancelled, unless the connection is lost and the
// session waits for another, or is another client's by now: then only the
// function returns early, with the cause, and the turn goes on.
func (e *Engine) Begin(ctx context.Context, c ports.Client, id domain.SessionID, p domain.Prompt) (func() (domain.TurnOutcome, error), error) {
	if !p.Usable() {
		return nil, domain.Errorf(domain.InvalidArgument, "The prompt holds nothing to answer; send text, a resource or a link")
	}
	lasting := context.WithoutCancel(ctx)
	t := &turn{e: e, id: domain.TurnID(e.p.IDs()), sid: id, prompt: p}
	t.ctx, t.cancel = context.WithCancelCause(lasting)
	t.writing, t.endWriting = context.WithCancelCause(lasting)
	t.telling, t.endTelling = context.WithCancelCause(lasting)
	ticket, err := e.p.Sessions.Admit(c, id, sessions.Admission{Turn: t.id, Blocks: p.Blocks, Queue: p.Queue, Cancel: t.cancel})
	if err != nil {
		t.cancel(nil)
		t.endWriting(nil)
		t.endTelling(nil)
		return nil, err
	}
	t.ticket, t.live, t.agent = ticket, ticket.Live, ticket.Live.Agent()
	t.emit, t.client = newEmitter(t), c
	stop := context.AfterFunc(ctx, func() { ticket.Interrupt(causeOf(ctx)) })
	return func() (domain.TurnOutcome, error) {
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

func (e *Engine) trouble(ctx context.Context, id domain.SessionID, where string, err error) {
	e.p.Observer.Observe(ctx, domain.Trouble{Session: id, Where: where, Err: err})
}
