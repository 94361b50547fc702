package acp1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Dialect is the setting acp.dialect.
type Dialect string

// The settings. The zero value means auto.
const (
	DialectAuto     Dialect = "auto"     // initialize decides
	DialectACP      Dialect = "acp"      // always the published protocol
	DialectZeroclaw Dialect = "zeroclaw" // always ZeroClaw's
)

// Busy is the setting acp.busy: what becomes of a prompt during a turn.
type Busy string

// The settings. The zero value means auto.
const (
	BusyAuto   Busy = "auto" // queue in acp, reject in zeroclaw
	BusyQueue  Busy = "queue"
	BusyReject Busy = "reject"
)

// Info is what initialize says about this program.
type Info struct {
	Name    string
	Title   string
	Version string
}

// Limits are what the connection enforces or tells the client. A zero value
// means the default in parentheses.
type Limits struct {
	MaxSessions        int           // active sessions (10); told, the sessions service enforces it
	SessionTimeout     time.Duration // longest wait for a permission answer (1 h)
	MaxPromptBlobBytes int           // all blobs of one prompt, decoded (32 MiB)
}

// Params is what a connection is served with.
type Params struct {
	Sessions SessionService
	Turns    TurnService
	Agents   ports.Agents
	Models   ports.Models
	Roots    ports.Roots
	Observer ports.Observer // nil discards
	Keys     KeyService     // nil: keys are not checked, and there is no logout

	Info    Info
	Limits  Limits
	Dialect Dialect
	Busy    Busy

	// Agent is the alias that the connection itself names, such as ?agent= of
	// a WebSocket URL. It is used for new sessions that name none.
	Agent string
	// Rights are what the client may do; nil is everything.
	Rights *Rights
	Login  Login
	// Sandbox tells how each agent's commands are held, for initialize to
	// say as far as it is known by then; nil says nothing.
	Sandbox ports.Sandbox
	// OnAway, if set, makes a function known that is told when the connection
	// is interrupted (true), and when it goes on (false). What is sent
	// meanwhile is kept below.
	OnAway func(func(away bool))
	// RPC configures the peer below. Observer and Dialect are set by Serve;
	// IDs defaults to "zc-out-1", "zc-out-2", …, which is right as long as the
	// process has one connection.
	RPC jsonrpc.Options
}

// Serve serves one connection until its input ends, ctx ends or the transport
// fails, and returns when all its requests have been answered. It detaches
// the client from its sessions as soon as the input has ended in an orderly
// way, before it waits for what is still running. A connection that broke is
// lost: its sessions wait for the client to come back, as far as the sessions
// service is configured to. It returns what jsonrpc.Conn.Serve does.
func Serve(ctx context.Context, frames jsonrpc.Frames, p Params) error {
	if p.Limits.MaxSessions == 0 {
		p.Limits.MaxSessions = 10
	}
	if p.Limits.SessionTimeout == 0 {
		p.Limits.SessionTimeout = time.Hour
	}
	if p.Limits.MaxPromptBlobBytes == 0 {
		p.Limits.MaxPromptBlobBytes = domain.DefaultPromptBlobs
	}
	opts := p.RPC
	opts.Observer = p.Observer
	opts.Dialect = jsonrpc.ACP
	if p.Dialect == DialectZeroclaw {
		opts.Dialect = jsonrpc.Zeroclaw
	}
	if opts.IDs == nil {
		opts.IDs = jsonrpc.NewIDs("zc-out-")
	}
	c := &connection{p: p, conn: jsonrpc.NewConn(frames, opts)}
	// Until initialize every method is there, so that the peer can say that
	// initialize comes first.
	c.agreed.Store(&agreement{dialect: opts.Dialect, info: domain.ClientInfo{Rights: p.Rights}, durable: true, logout: true})
	c.client = &client{on: c}
	if p.OnAway != nil {
		defer c.followAbsence()()
	}
	err := c.conn.Serve(ctx, c)
	// A request that was admitted before the input ended may have opened a
	// session after InputEnded let go of the others.
	c.letGo(c.why)
	return err
}

// followAbsence tells the sessions whether the client is away, until over is
// called: nothing is told of a client that has been forgotten.
func (c *connection) followAbsence() (over func()) {
	var mu sync.Mutex
	ended := false
	c.p.OnAway(func(away bool) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			c.p.Sessions.Absent(c.client, away)
		}
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		c.p.Sessions.Absent(c.client, false)
	}
}

// connection is the inbound side of one connection; client is its outbound
// side, known to the services by its address.
type connection struct {
	p      Params
	conn   *jsonrpc.Conn
	client *client
	// agreed is replaced once, by the initialize request, while no other
	// method is served.
	agreed atomic.Pointer[agreement]
	asked  openRequests
	why    error // given to InputEnded
}

// agreement is what initialize fixed.
type agreement struct {
	dialect jsonrpc.Dialect
	info    domain.ClientInfo
	durable bool // sessions outlive the process: load, resume, list and delete work
	logout  bool // there is a stored key to remove, or a place for one
	images  bool // the default agent's model sees
	audio   bool // the default agent's model hears
}

func (a *agreement) zeroclaw() bool { return a.dialect == jsonrpc.Zeroclaw }

func (c *connection) state() *agreement { return c.agreed.Load() }

// InputEnded lets go of the client's sessions.
func (c *connection) InputEnded(why error) {
	c.why = why
	c.letGo(why)
}

// letGo says what becomes of the client's sessions: they end with an input that
// ended in an orderly way, and with the process; otherwise the connection was
// lost.
func (c *connection) letGo(why error) {
	var cause *domain.Cause
	switch {
	case errors.Is(why, io.EOF):
		c.p.Sessions.Detach(c.client, fmt.Errorf("%w: %w", domain.Disconnected, why))
	case errors.As(why, &cause) && cause != domain.Disconnected:
		c.p.Sessions.Detach(c.client, why)
	default:
		c.p.Sessions.Lose(c.client)
	}
}

// explain completes an error for the person at the other end. A missing
// credential is said in the words clients look for before they offer to sign
// in, with the ids of the ways to do so. id is added as data.sessionId unless
// it is empty or there already.
func (c *connection) explain(err error, id domain.SessionID) error {
	var e *domain.Error
	if !errors.As(err, &e) {
		return err
	}
	out := *e
	out.Err = err // with all that was wrapped around it, for the log
	if e.Code == domain.AuthRequired {
		out = *c.signIn(&out)
	}
	if id == "" {
		return &out
	}
	for _, d := range e.Details {
		if d.Key == "sessionId" {
			return &out
		}
	}
	return out.With("sessionId", string(id))
}

// signIn completes the error of a missing or refused credential.
func (c *connection) signIn(e *domain.Error) *domain.Error {
	out := *e
	if !strings.Contains(strings.ToLower(e.Msg), authWords) {
		out.Msg = "Authentication required: " + e.Msg
	}
	var ids []string
	for _, m := range c.authMethods(c.state()) {
		ids = append(ids, m.ID)
	}
	if len(ids) == 0 {
		return &out
	}
	return out.With("authMethods", ids)
}

const authWords = "authentication required"
