// Package openclaw lets an editor that speaks ACP work with an OpenClaw
// Gateway, which speaks a protocol of its own: requests, responses and events
// over a WebSocket.
//
// It keeps nothing of the sessions. The Gateway owns them, and a session's id
// says which of the Gateway's keys it is (ids.go), so that every bridge finds
// every session, today and after a restart.
//
// Where to find things: bridge.go the life of a bridge; gateway.go, link.go,
// wire.go, handshake.go, identity.go the connection to the Gateway; methods.go
// what the editor may ask; sessions.go, open.go, obtain.go, list.go sessions;
// controls.go modes and options; prompt.go, compose.go, outcome.go prompts;
// turn.go, said.go, tools.go what the Gateway tells of a run; recover.go,
// makeup.go what was missed; replay.go history; approvals.go permission
// requests; errors.go how failures are worded.
//
// Goroutines: the editor's connection (package jsonrpc) has its own and runs
// one for each request. gateway.run reads the Gateway; it never waits for an
// answer of the Gateway's, and waits for the editor only to take updates.
package openclaw

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// Config says what a bridge does.
type Config struct {
	// Dial opens a socket to the Gateway. An error that is a *Refused is final.
	Dial func(context.Context) (jsonrpc.Frames, error)
	// Name tells Gateways apart, for what is kept of them.
	Name string
	// Trusted says that nobody else can be listening: the Gateway is on this
	// machine, or its certificate is a known one.
	Trusted bool
	// Secret reads the token or password, "" for none. It is called for each
	// connection.
	Secret func() (string, error)
	// Identity is this device; Keep, if set, is called when it has changed.
	Identity *Identity
	Keep     func(*Identity) error

	Sessions SessionFlags
	// NoPrefix leaves the line with the working directory out of prompts. Home
	// is written as ~ in it.
	NoPrefix bool
	Home     string
	// Provenance is "", "meta" or "meta+receipt"; Host is named by receipts.
	Provenance string
	Host       string

	// StartLimit and LostLimit are how long there may be no Gateway before the
	// bridge gives up: at the start (30 s), and after a loss (2 min).
	StartLimit, LostLimit time.Duration
	NewID                 func() string
	Info                  Info
	// Log gets one line at a time about what happens; nil: nobody.
	Log func(format string, args ...any)
	// RPC configures the editor's connection.
	RPC jsonrpc.Options

	jitter func(time.Duration) time.Duration // up to so much
}

// Info is what the bridge says of itself.
type Info struct{ Name, Title, Version string }

// SessionFlags are what the command line says about sessions that say nothing
// themselves.
type SessionFlags struct {
	Agent, Key, Label      string
	Reset, RequireExisting bool
}

// Bridge is one editor's way to a Gateway.
type Bridge struct {
	cfg  Config
	conn *jsonrpc.Conn
	gw   *gateway

	client  atomic.Pointer[domain.ClientInfo]
	offered map[string]jsonrpc.Method
	failed  chan struct{} // closed when a request was told why there is no Gateway
	failing sync.Once

	aborts sync.WaitGroup // of runs that nobody waits for any more
	side   sync.WaitGroup // permission requests, and what observes runs
	life   context.Context
	last   context.Context // of the aborts: a moment longer than the editor
	ended  chan struct{}   // closed when the editor says nothing more

	mu       sync.Mutex
	sessions map[domain.SessionID]*session
	runs     map[string]*turn
	asks     map[string]*ask // open permission requests, by the Gateway's id
	answered map[string]bool // those that were over while the Gateway was asked for its list; nil at other times
	wasReset bool            // the first session has had its reset
	agent    string          // the Gateway's default one, once known
	models   []modelRow      // once known
}

// New makes a bridge for an editor.
func New(editor jsonrpc.Frames, cfg Config) *Bridge {
	if cfg.StartLimit <= 0 {
		cfg.StartLimit = 30 * time.Second
	}
	if cfg.LostLimit <= 0 {
		cfg.LostLimit = 2 * time.Minute
	}
	if log := cfg.Log; log == nil {
		cfg.Log = func(string, ...any) {}
	} else { // much of it is the Gateway's words
		cfg.Log = func(format string, args ...any) { log("%s", brief(fmt.Sprintf(format, args...))) }
	}
	if cfg.Secret == nil {
		cfg.Secret = func() (string, error) { return "", nil }
	}
	if cfg.jitter == nil {
		cfg.jitter = func(d time.Duration) time.Duration { return rand.N(d + 1) }
	}
	if cfg.RPC.IDs == nil {
		cfg.RPC.IDs = jsonrpc.NewIDs("zc-out-")
	}
	b := &Bridge{
		cfg: cfg, conn: jsonrpc.NewConn(editor, cfg.RPC), failed: make(chan struct{}), ended: make(chan struct{}),
		sessions: map[domain.SessionID]*session{}, runs: map[string]*turn{}, asks: map[string]*ask{},
	}
	b.offered = b.methods()
	b.client.Store(&domain.ClientInfo{})
	b.gw = newGateway(&b.cfg)
	b.gw.event, b.gw.attached = b.fromGateway, b.reattach
	return b
}

// The limits at the end of a bridge.
const (
	// tellLimit is how long an editor has to ask for something and be told why
	// there is no Gateway.
	tellLimit = 3 * time.Second
	// abortLimit is how long the Gateway may take to hear that runs are over,
	// once the editor has gone.
	abortLimit = time.Second
)

// Run serves the editor until its input ends, or ctx, which is the same. It
// returns nil then, and else why there is no Gateway any more.
func (b *Bridge) Run(ctx context.Context) error {
	life, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	last, stopLast := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLast()
	b.life, b.last = life, last
	var gone error
	var link sync.WaitGroup
	link.Go(func() {
		if gone = b.gw.run(life); gone == nil {
			return
		}
		select {
		case <-b.failed:
		case <-time.After(tellLimit):
		case <-life.Done():
		}
		b.conn.Close(domain.WrapError(domain.Unavailable, gone, "there is no gateway any more"))
	})
	err := b.conn.Serve(ctx, b)
	limit := time.AfterFunc(abortLimit, stopLast)
	b.aborts.Wait() // each ends with last
	limit.Stop()
	stop(nil)
	link.Wait() // nothing begins any more
	b.side.Wait()
	if gone != nil {
		return Line(gone)
	}
	return err
}

// Method finds what the editor may ask.
func (b *Bridge) Method(name string) (jsonrpc.Method, bool) {
	m, ok := b.offered[name]
	return m, ok
}

// InputEnded notes it: requests go on for a while and are cancelled then.
func (b *Bridge) InputEnded(error) { close(b.ended) }

// tell sends the editor an update of a session, behind all that was sent
// before. It waits while the editor is slow. An editor that has gone is told
// nothing, and that is no failure.
func (b *Bridge) tell(ctx context.Context, id domain.SessionID, u domain.Update) {
	for _, p := range updateParams(id, u, b.client.Load()) {
		if b.conn.Notify(ctx, methodUpdate, p) != nil {
			return
		}
	}
}

// call asks the Gateway for a request of the editor's, with its error
// as the editor is told it.
func (b *Bridge) call(ctx context.Context, what, method string, params any) (fields, error) {
	raw, err := b.gw.call(ctx, method, params)
	return fieldsOf(raw), b.worded(ctx, what, err)
}

// privileged is call for what may need operator.admin.
func (b *Bridge) privileged(ctx context.Context, what, method string, params any) (fields, error) {
	raw, err := b.gw.privileged(ctx, method, params)
	return fieldsOf(raw), b.worded(ctx, what, err)
}

func (b *Bridge) worded(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	out := fromGateway(ctx, what, err)
	var refused *Refused
	var rpc *RPCError
	if errors.As(err, &refused) || errors.As(err, &rpc) && b.gw.now() == nil {
		b.failing.Do(func() { close(b.failed) })
	}
	return out
}
