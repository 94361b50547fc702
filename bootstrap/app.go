// Package bootstrap puts Berth together: configuration in, one App out. It is
// the only place that knows fx and viper, and the only one that knows which
// adapter stands behind which port. Every constructor it calls works without
// fx.
//
// An embedder, or a test, replaces any port with an Option:
//
//	app, err := bootstrap.New(cfg, bootstrap.WithStore(mine), bootstrap.WithModels(models))
//	err = app.Serve(ctx, jsonrpc.NewStdio(os.Stdin, os.Stdout, 0))
//
// Read next: adapters.go for the choices, subprocess.go for the process.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/berth-dev/berth/adapters/fs"
	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
	"github.com/berth-dev/berth/core/services/permissions"
	"github.com/berth-dev/berth/core/services/sessions"
	"github.com/berth-dev/berth/core/services/turns"
)

// stopLimit bounds the orderly end of an App.
const stopLimit = 4 * time.Second

// App is a Berth that can serve connections.
type App struct {
	cfg   *Config
	opts  options
	fx    *fx.App
	p     parts
	ids   *jsonrpc.IDs // of requests to clients, one counter for the process
	pacer *pacer       // of the clients of a gateway
	now   *current

	reloading sync.Mutex
	draining  atomic.Bool
}

// parts is what serving a connection needs of the graph.
type parts struct {
	fx.In
	Sessions *sessions.Service
	Turns    *turns.Engine
	Asking   *permissions.Service
	Agents   ports.Agents
	Models   ports.Models
	Roots    ports.Roots
	Sandbox  ports.Sandbox
	Observer ports.Observer
}

// New puts an App together without touching the disk or the network, but for
// the store, which starts to open behind it.
func New(cfg *Config, opts ...Option) (*App, error) {
	a := &App{cfg: cfg, opts: defaults(), ids: jsonrpc.NewIDs("zc-out-"), now: newCurrent(cfg)}
	for _, o := range opts {
		o(&a.opts)
	}
	o := &a.opts
	a.pacer = newPacer(o.clock)
	if err := checkProfiles(cfg); err != nil {
		return nil, err
	}
	a.fx = fx.New(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.StopTimeout(stopLimit),
		fx.Supply(cfg, o, a.now),
		fx.Provide(
			newClock,
			newIDs,
			newObserver,
			given(o.agents, newAgentsPort),
			given(o.models, newModels),
			newTimedStore,
			newDisk,
			given(o.roots, func(d *fs.Disk) ports.Roots { return fs.NewRoots(d) }),
			newCommands,
			given(o.blobs, func(d *fs.Disk, c *commands) ports.Blobs { return forgetful{fs.NewBlobs(d), c} }),
			given(o.sandbox, newSandbox),
			given(o.notes, func(d *fs.Disk) ports.Instructions { return fs.NewInstructions(d) }),
			newTools,
			newPermissions,
			newSessions,
			newTurns,
		),
		fx.Populate(&a.p),
		fx.Invoke(warnOfLimits, endSessions),
	)
	if err := a.fx.Err(); err != nil {
		return nil, rootCause(err)
	}
	if err := a.fx.Start(context.Background()); err != nil {
		return nil, rootCause(err)
	}
	return a, nil
}

// rootCause strips what dig says about how it got to a constructor: the
// person only wants what the constructor said.
func rootCause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		if e := (*domain.Error)(nil); errors.As(err, &e) {
			return e
		}
		err = next
	}
}

// Serve serves one connection until its input ends or ctx ends.
func (a *App) Serve(ctx context.Context, frames jsonrpc.Frames) error {
	return acp1.Serve(ctx, frames, a.params())
}

// params is what a connection is served with that may do everything.
func (a *App) params() acp1.Params {
	return acp1.Params{
		Sessions: a.p.Sessions,
		Turns:    a.p.Turns,
		Agents:   a.p.Agents,
		Models:   a.p.Models,
		Roots:    a.p.Roots,
		Observer: a.p.Observer,
		Info:     acp1.Info{Name: "berth", Title: "Berth", Version: Version().Version},
		Limits: acp1.Limits{
			MaxSessions:        a.cfg.ACP.MaxSessions,
			SessionTimeout:     a.cfg.ACP.SessionTimeout,
			MaxPromptBlobBytes: int(a.cfg.ACP.MaxPromptBlobBytes),
		},
		Sandbox: a.p.Sandbox,
		Keys:    a.keys(),
		Login:   a.login(),
		Dialect: acp1.Dialect(a.cfg.ACP.Dialect),
		Busy:    acp1.Busy(a.cfg.ACP.Busy),
		RPC:     jsonrpc.Options{IDs: a.ids},
	}
}

// Stop ends every session in an orderly way and closes what New opened, in
// the reverse order, within a few seconds.
func (a *App) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	return a.fx.Stop(ctx)
}

func newPermissions(o ports.Observer, clock ports.Clock, cfg *Config) *permissions.Service {
	return permissions.New(o, clock, cfg.ACP.SessionTimeout)
}

type sessionParts struct {
	fx.In
	Store    ports.Store
	Agents   ports.Agents
	Models   ports.Models
	Roots    ports.Roots
	Blobs    ports.Blobs
	Tools    []ports.ToolSource
	Sandbox  ports.Sandbox
	Observer ports.Observer
	Clock    ports.Clock
	IDs      ports.IDs
}

// maxTotal bounds the sessions of all connections. On stdio there is one,
// which has a bound of its own.
func maxTotal(cfg *Config, o *options) int {
	if o.daemon {
		return cfg.Gateway.MaxSessions
	}
	return 0
}

// grace is how long what a lost client had goes on. On stdio there is nobody
// who could come back.
func grace(cfg *Config, o *options) time.Duration {
	if o.daemon {
		return cfg.Gateway.DetachGrace
	}
	return 0
}

func newSessions(cfg *Config, o *options, p sessionParts) *sessions.Service {
	return sessions.New(sessions.Params{
		Config: sessions.Config{
			MaxSessions: cfg.ACP.MaxSessions, QueueLimit: cfg.ACP.QueueLimit, IdleTimeout: cfg.ACP.SessionTimeout,
			MaxTotal: maxTotal(cfg, o), Grace: grace(cfg, o),
		},
		Sessions: p.Store, Journal: p.Store, Leases: p.Store, Durable: p.Store.Durable,
		Agents: p.Agents, Models: p.Models, Roots: p.Roots, Blobs: p.Blobs, Tools: p.Tools,
		Sandbox: p.Sandbox, Observer: p.Observer, Clock: p.Clock, IDs: p.IDs,
	})
}

type turnParts struct {
	fx.In
	Sessions    *sessions.Service
	Permissions *permissions.Service
	Models      ports.Models
	Store       ports.Store
	Blobs       ports.Blobs
	Notes       ports.Instructions
	Sandbox     ports.Sandbox
	Observer    ports.Observer
	Clock       ports.Clock
	IDs         ports.IDs
}

func newTurns(p turnParts) *turns.Engine {
	return turns.New(turns.Params{
		Sessions: p.Sessions, Permissions: p.Permissions, Models: p.Models, Ledger: p.Store, Blobs: p.Blobs,
		Instructions: p.Notes, Sandbox: p.Sandbox, Observer: p.Observer, Clock: p.Clock, IDs: p.IDs,
	})
}

// endSessions is the first thing that happens when the App stops, because it
// is appended last.
func endSessions(lc fx.Lifecycle, s *sessions.Service) {
	lc.Append(fx.StopHook(func(ctx context.Context) error {
		if err := s.Shutdown(ctx, domain.ProcessEnding); err != nil {
			return fmt.Errorf("end sessions: %w", err)
		}
		return nil
	}))
}
