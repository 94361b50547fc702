package bootstrap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/berth-dev/berth/adapters/metrics"
	"github.com/berth-dev/berth/core/domain"
)

// stopAll bounds the orderly end of a daemon, once its turns have been given
// their time.
const stopAll = leaveLimit

// Daemon is a gateway that serves.
type Daemon struct {
	fx     *fx.App
	app    *App
	server *daemonServer
}

// StartDaemon serves the gateway until Stop. When it returns without an error
// clients can connect.
func StartDaemon(ctx context.Context, cfg *Config, opts ...Option) (*Daemon, error) {
	o := defaults()
	for _, opt := range opts {
		opt(&o)
	}
	d, now := &Daemon{}, &board{}
	o.metrics = metrics.New(metrics.Config{Version: Version().Version, Clock: o.clock, State: now.state})
	opts = append(slices.Clone(opts), withMetrics(o.metrics), func(o *options) { o.daemon = true })
	d.fx = fx.New(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.StartTimeout(time.Minute),
		fx.StopTimeout(stopAll),
		fx.Supply(cfg, &o),
		fx.Provide(
			newClaim,
			func(lc fx.Lifecycle, _ *dataDirClaim) (*App, error) {
				app, err := New(cfg, opts...)
				if err == nil {
					now.app.Store(app)
					lc.Append(fx.StopHook(app.Stop))
				}
				return app, err
			},
			newGatewayKeys,
			newGateway,
			newServer,
			newDaemonServer,
		),
		fx.Populate(&d.app, &d.server),
	)
	if err := d.fx.Err(); err != nil {
		return nil, rootCause(err)
	}
	now.server.Store(d.server)
	if err := d.fx.Start(ctx); err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopAll)
		defer cancel()
		return nil, errors.Join(err, d.fx.Stop(stop))
	}
	return d, nil
}

// Info is what the daemon tells programs of its user.
func (d *Daemon) Info() DaemonInfo { return *d.server.info.Load() }

// Failed yields the error that ended the listening, if one did.
func (d *Daemon) Failed() <-chan error { return d.server.failed }

// Reload reads the configuration again, if it is known from where, and tells in
// the log what came of it. A broken one changes nothing. The files of the
// certificate are looked at in any case.
func (d *Daemon) Reload() error {
	if d.server.certificates != nil {
		d.server.certificates.refresh()
	}
	if d.app.opts.reread == nil {
		return domain.Errorf(domain.Unsupported, "this daemon does not know where its configuration came from")
	}
	return d.app.reload(d.app.opts.reread)
}

// Drain takes no more connections, sessions and prompts, and returns when the
// last turn has ended, or with the context's cause. Those who are connected
// stay; /readyz says that the gateway is not ready, /healthz and /metrics
// answer until Stop.
func (d *Daemon) Drain(ctx context.Context) error {
	d.server.gateway.leave()
	return d.app.Drain(ctx)
}

// Stop ends the daemon: no more connections, those there are closed with 1012,
// sessions ended, files removed.
func (d *Daemon) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopAll)
	defer cancel()
	return d.fx.Stop(ctx)
}

// RunDaemon serves the gateway until a signal comes, and then lets turns finish
// for gateway.drain_secs. A second signal ends the process at once. One that
// asks for a reload reloads.
func RunDaemon(cfg *Config, opts ...Option) error {
	signals, reloads, stop := daemonChannels()
	defer stop()
	if pipes := brokenPipes(); pipes != nil {
		ignored := make(chan os.Signal, 1)
		signal.Notify(ignored, pipes...)
		defer signal.Stop(ignored)
	}
	manager := findServiceManager()
	d, err := StartDaemon(context.Background(), cfg, opts...)
	if err != nil {
		return err
	}
	ready := func() {
		if err := manager.ready("listening on " + d.Info().Address); err != nil {
			d.server.gateway.observer.Observe(context.Background(), domain.Trouble{Where: "the service manager cannot be told that the daemon is ready", Err: err})
		}
	}
	ready()
	if err := forgetVariables(cfg.SecretVariables()); err != nil {
		d.server.gateway.observer.Observe(context.Background(), domain.Trouble{Where: keysVisible, Err: err})
	}
	over := make(chan struct{})
	defer close(over)
	go manager.reassure(over, func() { d.app.p.Sessions.Stats() }) // ends with over, or with the process if that hangs
	return conduct{
		signals: signals, reloads: reloads, failed: d.Failed(), limit: cfg.Gateway.Drain,
		reload: func() {
			_ = manager.reloading() // what is told next says what is wrong with it
			_ = d.Reload()          // told in the log
			ready()
		},
		leave: func() { _ = manager.leaving(cfg.Gateway.Drain) }, // it has its own limit
		drain: d.Drain,
		stop: func(ctx context.Context) error {
			if err := d.Stop(ctx); err != nil {
				return fmt.Errorf("stop: %w", err)
			}
			return nil
		},
		tell: func(what string) {
			d.server.gateway.observer.Observe(context.Background(), domain.Noted{What: what})
		},
		exit: os.Exit,
	}.run()
}

// dataDirClaim is the daemon's hold on its data directory.
type dataDirClaim struct{}

func newClaim(lc fx.Lifecycle, cfg *Config) (*dataDirClaim, error) {
	release, err := claim(cfg)
	if err != nil {
		return nil, domain.WrapError(domain.InvalidArgument, err, err.Error())
	}
	lc.Append(fx.StopHook(release))
	return &dataDirClaim{}, nil
}

// daemonServer listens.
type daemonServer struct {
	cfg     *Config
	given   []net.Listener // to listen on; nil: see listen
	gateway *gateway
	keys    *gatewayKeys
	http    *http.Server
	info    atomic.Pointer[DaemonInfo]
	failed  chan error
	serving sync.WaitGroup
	// certificates is nil without TLS. It is set before anything is served.
	certificates *certificates
	ending       context.CancelFunc // ends what the start left running
}

func newDaemonServer(lc fx.Lifecycle, cfg *Config, o *options, g *gateway, k *gatewayKeys, h *http.Server) *daemonServer {
	s := &daemonServer{cfg: cfg, given: o.listen, gateway: g, keys: k, http: h, failed: make(chan error, 1)}
	lc.Append(fx.StartStopHook(s.start, s.stop))
	return s
}

// start listens, and then tells the user's other programs where.
func (s *daemonServer) start(ctx context.Context) error {
	certificate := ""
	if s.cfg.Gateway.TLSCert != "" {
		c, err := loadCertificates(s.cfg.Gateway.TLSCert, s.cfg.Gateway.TLSKey, s.gateway.clock)
		if err != nil {
			return err
		}
		certificate = fingerprint(c.pair.Certificate[0])
		c.changed, s.certificates = s.renewed, c
		s.doubt(ctx, c.pair)
		s.http.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	}
	listeners, err := listen(ctx, s.cfg, s.given)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		s.keys.exposed = s.keys.exposed || exposed(l.Addr())
	}
	info := describe(listeners[0].Addr(), certificate, s.gateway.clock())
	s.info.Store(&info)
	if err := announce(s.cfg.DataDir, info, s.keys.bridge); err != nil {
		for _, l := range listeners {
			_ = l.Close()
		}
		return err
	}
	for _, l := range listeners {
		secure := certificate != "" && l.Addr().Network() != "unix"
		s.serving.Go(func() { // ends with the server, which stop closes and joins
			err := s.serve(l, secure)
			if !errors.Is(err, http.ErrServerClosed) {
				select {
				case s.failed <- fmt.Errorf("listen on %s: %w", l.Addr(), err):
				default:
				}
			}
		})
		s.gateway.observer.Observe(ctx, domain.Noted{What: "listening on " + address(l.Addr())})
	}
	s.gateway.ready.Store(true)
	s.advise(ctx)
	trying, end := context.WithCancel(context.WithoutCancel(ctx))
	s.ending = end
	s.serving.Go(func() { s.gateway.app.tryConfinement(trying) }) // ends with the context, which stop cancels and joins
	return nil
}

func (s *daemonServer) serve(l net.Listener, secure bool) error {
	if secure {
		return s.http.ServeTLS(l, "", "")
	}
	return s.http.Serve(l)
}

// advise tells the operator what clients will miss.
func (s *daemonServer) advise(ctx context.Context) {
	say := func(note string) {
		s.gateway.observer.Observe(ctx, domain.Noted{What: note})
	}
	if s.cfg.Gateway.Auth == "none" {
		return
	}
	stored := 0
	for _, t := range s.keys.set.List() {
		if t.Local {
			continue
		}
		stored++
		if s.keys.exposed && t.Roots == nil {
			say("the token " + t.Name + " names no directories, so it can work in the agents' workspaces alone; make one with: berth token create --root DIR")
		}
	}
	if stored == 0 {
		say("there is no token yet, so only berth bridge and berth client of this user can connect; make one with: berth token create")
	}
}

// stop takes no more requests and waits for those under way.
func (s *daemonServer) stop(ctx context.Context) error {
	s.gateway.ready.Store(false)
	s.ending()
	err := withdraw(s.cfg.DataDir)
	if serr := s.http.Shutdown(ctx); serr != nil {
		err = errors.Join(err, serr, s.http.Close())
	}
	s.serving.Wait()
	return err
}

// describe says how to reach a listener from this machine.
func describe(at net.Addr, certificate string, now time.Time) DaemonInfo {
	info := DaemonInfo{
		PID: os.Getpid(), Address: address(at), URL: address(at), Version: Version().Version, Started: now.UTC().Truncate(time.Second), Fingerprint: certificate,
	}
	if a, err := netip.ParseAddrPort(at.String()); err == nil && at.Network() != "unix" {
		ip := a.Addr().Unmap().WithZone("")
		if ip.IsUnspecified() && ip.Is4() {
			ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		} else if ip.IsUnspecified() {
			ip = netip.IPv6Loopback()
		}
		scheme := "ws"
		if certificate != "" {
			scheme = "wss"
		}
		info.URL = scheme + "://" + net.JoinHostPort(ip.String(), strconv.Itoa(int(a.Port()))) + "/acp"
	}
	return info
}

// address is how gateway.listen would name it.
func address(at net.Addr) string {
	if at.Network() == "unix" {
		return "unix:" + at.String()
	}
	return at.String()
}
