package bootstrap

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/fx"

	"github.com/berth-dev/berth/adapters/console"
	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// gateway is what a daemon answers: its handlers, and who may use them.
type gateway struct {
	cfg      *Config
	app      *App
	guard    *ws.Guard
	door     *door
	sockets  *ws.Handler
	observer ports.Observer
	clock    ports.Clock
	ready    atomic.Bool // until the end begins
	leaving  []func()    // each makes a handler take no more connections
	// The places of other handlers; nil is none.
	streams http.Handler // /acp without upgrade, behind no guard but its own
	metrics http.Handler // /metrics, behind the guard
	console http.Handler // /, files that hold no data
	// endStreams ends what streams serves, so that their requests end.
	endStreams func()
}

// newGateway puts the handlers together.
func newGateway(lc fx.Lifecycle, cfg *Config, o *options, app *App, keys *gatewayKeys) (*gateway, error) {
	page, err := console.New()
	if err != nil {
		return nil, err
	}
	g := &gateway{cfg: cfg, app: app, observer: app.p.Observer, clock: o.clock, console: page, door: newDoor(openFiles())}
	if o.metrics != nil {
		g.metrics = o.metrics
	}
	config := ws.GuardConfig{
		Hosts: allowedHosts(cfg), Origins: cfg.Gateway.AllowedOrigins,
		MaxConnections: cfg.Gateway.MaxConnections, MaxPerToken: cfg.Gateway.MaxConnectionsPerToken,
		NewID: shortID(o.ids), Now: o.clock, Refused: g.refused, Admitted: g.door.know, Anyone: ws.Principal{Name: "anyone"},
	}
	if cfg.Gateway.Auth != "none" {
		config.Keys = keys
	}
	g.guard = ws.NewGuard(config)
	keys.revoke = g.guard.Revoke
	g.sockets = ws.NewHandler(ws.HandlerConfig{
		Conn: ws.Config{
			MaxBytes: int(cfg.Gateway.MaxMessageBytes), PingInterval: cfg.Gateway.PingInterval, First: firstMessage,
		},
		NewID: o.ids, Serve: g.serveSocket, Park: cfg.Gateway.DetachGrace,
	})
	g.leaving = append(g.leaving, g.sockets.Stop)
	g.addStreams(lc, o)
	lc.Append(fx.StopHook(func(ctx context.Context) error {
		g.leave()
		return g.sockets.Close(ctx, domain.ProcessEnding)
	}))
	return g, nil
}

// leave takes no more connections. Those there are go on.
func (g *gateway) leave() {
	g.ready.Store(false)
	for _, stop := range g.leaving {
		stop()
	}
}

// shortID makes ids of requests: they are for the eye, and live in one log.
func shortID(ids ports.IDs) func() string {
	return func() string {
		id := strings.ReplaceAll(ids(), "-", "")
		return "r-" + id[:min(12, len(id))]
	}
}

// allowedHosts are the names a request may ask for.
func allowedHosts(cfg *Config) []string {
	hosts := append([]string{}, cfg.Gateway.AllowedHosts...)
	if !strings.HasPrefix(cfg.Gateway.Listen, "unix:") {
		hosts = append(hosts, cfg.Gateway.Listen) // its port does not count
	}
	return hosts
}

// routes says who answers what. A path counts as it was sent: nothing is
// cleaned and nobody is sent elsewhere, so no query is repeated.
func (g *gateway) routes() http.Handler {
	get := []string{http.MethodGet, http.MethodHead}
	acp := g.guard.Protect(g.sockets, http.MethodGet)
	metrics, page := http.NotFoundHandler(), http.NotFoundHandler()
	if g.metrics != nil {
		metrics = g.metrics
	}
	if g.console != nil {
		page = g.console
	}
	metrics, page = g.guard.Protect(metrics, get...), g.guard.Visible(page, get...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/acp":
			if g.streams != nil && !ws.Upgrades(r) {
				g.streams.ServeHTTP(w, r)
				return
			}
			acp.ServeHTTP(w, r)
		case "/healthz":
			state(w, r, http.StatusOK, "ok")
		case "/readyz":
			if g.ready.Load() {
				state(w, r, http.StatusOK, "ready")
				return
			}
			state(w, r, http.StatusServiceUnavailable, "not ready")
		case "/metrics":
			metrics.ServeHTTP(w, r)
		default:
			page.ServeHTTP(w, r)
		}
	})
}

// state answers a question of a service manager or a balancer. It tells
// nothing but that.
func state(w http.ResponseWriter, r *http.Request, status int, text string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		status, text = http.StatusMethodNotAllowed, "method not allowed"
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, text+"\n")
	}
}

// refused tells of a request that the guard turned away.
func (g *gateway) refused(r ws.Refusal) {
	g.observer.Observe(context.Background(), domain.PeerRefused(r))
}

// rights are what a connection may do.
func (g *gateway) rights(p ws.Principal) *domain.Rights {
	return &domain.Rights{
		Name: p.Name, Agents: p.Agents, Level: p.Level, Roots: p.Roots, Observe: p.Observe, MCPCommands: p.MCPCommands,
	}
}

// serveSocket serves one WebSocket.
func (g *gateway) serveSocket(ctx context.Context, _ *ws.Conn, p ws.Peer) {
	g.serve(ctx, p.Frames, p, "websocket")
}

// serve serves one connection of any transport.
func (g *gateway) serve(ctx context.Context, frames jsonrpc.Frames, p ws.Peer, transport string) {
	dialect := ""
	if p.Protocol == ws.ProtocolZeroclaw {
		dialect = "zeroclaw"
	}
	began := g.clock()
	g.observer.Observe(ctx, domain.PeerConnected{
		Connection: p.Connection, Request: p.Request, Remote: p.Remote, Principal: p.Principal.Name, Transport: transport, Protocol: p.Protocol,
	})
	err := g.app.ServePeer(ctx, frames, Peer{
		Rights: g.rights(p.Principal), Agent: p.Agent, Dialect: dialect, ConnectionID: p.Connection, Remote: p.Remote, OnAway: p.OnAway,
	})
	if errors.Is(context.Cause(ctx), ws.ErrRevoked) {
		err = ws.ErrRevoked
		g.app.disown(p.Principal.Name) // it may have been lost in the same moment
	}
	g.observer.Observe(ctx, domain.PeerGone{
		Connection: p.Connection, Transport: transport, Duration: max(0, g.clock().Sub(began)), Err: err,
	})
}

// bounded has every request end, whoever sent it: the server would wait for
// the rest of a body that nobody reads, and for a client that takes nothing of
// its answer. Who has been let in is given other limits by what serves it.
func bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if r.ContentLength != 0 { // without a body a read that times out would look as if the client had left
			_ = rc.SetReadDeadline(time.Now().Add(bodyTime))
		}
		_ = rc.SetWriteDeadline(time.Now().Add(answerTime))
		next.ServeHTTP(w, r)
	})
}

// header limits of the server. A client that has not sent its headers by then
// is none.
const (
	headerTime  = 5 * time.Second
	headerBytes = 16 << 10
	restTime    = 60 * time.Second // of a connection between two requests
	bodyTime    = 5 * time.Second  // for a body, until its sender has been let in
	answerTime  = 30 * time.Second // for the client to take an answer, unless it is a stream
)

// newServer is the HTTP server of a gateway.
func newServer(g *gateway) *http.Server {
	s := &http.Server{
		Handler: bounded(g.routes()), ReadHeaderTimeout: headerTime, MaxHeaderBytes: headerBytes, IdleTimeout: restTime,
		ErrorLog: quietLog(g.observer), Protocols: new(http.Protocols),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	g.carryStreams(s)
	s.ConnContext, s.ConnState = g.door.enter, g.door.note
	s.RegisterOnShutdown(g.door.close)
	return s
}
