package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// gateway keeps a connection to the Gateway.
type gateway struct {
	cfg *Config
	// event gets what the Gateway tells, one at a time; gap is set when it left
	// something out. attached runs beside that after each handshake, until the
	// connection is lost.
	event    func(l *link, in incoming, gap bool)
	attached func(ctx context.Context, l *link)

	mu    sync.Mutex
	cur   *link
	why   error         // why there is none, if that is worth telling at once
	moved chan struct{} // closed and replaced whenever cur or why changes
	token string        // the device's token for this Gateway
}

// The waits between attempts.
const (
	firstWait = 250 * time.Millisecond
	mostWait  = 5 * time.Second
	// steady is how long a connection has to last for the waits to begin anew:
	// a Gateway that lets us in and ends it is not asked four times a second.
	steady = 2 * mostWait
)

// mostTries is how often a request is made that ends the connection each time.
const mostTries = 5

func newGateway(cfg *Config) *gateway {
	return &gateway{cfg: cfg, moved: make(chan struct{}), token: cfg.Identity.token(cfg.Name)}
}

// run connects, again and again, until ctx ends or there is no use any more,
// which is the error: the Gateway refuses us, or there was none for too long.
func (g *gateway) run(ctx context.Context) error {
	limit, since, wait := g.cfg.StartLimit, time.Now(), firstWait
	for {
		l, err := g.connect(ctx)
		if err == nil {
			g.cfg.Log("connected to the gateway, version %s", l.hello.version)
			began := time.Now()
			err = g.attend(ctx, l)
			limit, since = g.cfg.LostLimit, time.Now()
			if since.Sub(began) >= steady {
				wait = firstWait
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		again, pause := judge(err)
		switch {
		case !again:
			g.set(nil, err)
			return err
		case isPairing(err):
			g.set(nil, err)
			since = time.Now() // it is there, and a person has to act
		case time.Since(since) > limit:
			err = &Refused{fmt.Errorf("no OpenClaw Gateway for %s: %w", limit, err)}
			g.set(nil, err)
			return err
		}
		g.cfg.Log("no gateway: %v", err)
		if !sleep(ctx, max(pause, wait/2+g.cfg.jitter(wait/2))) {
			return nil
		}
		wait = min(2*wait, mostWait)
	}
}

// connect shakes hands with what is known: the shared secret, or, without
// one, the device's token. A Gateway that does not take the secret any more
// may still know the device; the token is shown to it only where nobody else
// can be listening.
func (g *gateway) connect(ctx context.Context) (*link, error) {
	return g.connectWith(ctx, workScopes())
}

func (g *gateway) connectWith(ctx context.Context, scopes []string) (*link, error) {
	secret, err := g.cfg.Secret()
	if err != nil {
		return nil, &Refused{err}
	}
	g.mu.Lock()
	as := Credentials{Secret: secret}
	known := g.token
	g.mu.Unlock()
	if secret == "" {
		as.Device = known
	}
	l, err := open(ctx, g.cfg, as, scopes)
	var e *RPCError
	if errors.As(err, &e) && e.Details.Code == "AUTH_TOKEN_MISMATCH" && as.Device == "" && known != "" && g.cfg.Trusted {
		l, err = open(ctx, g.cfg, Credentials{Device: known}, scopes)
	}
	if err != nil {
		if errors.As(err, &e) { // a Gateway may repeat what it was shown
			e.hide(secret)
			e.hide(known)
		}
		return nil, err
	}
	g.remember(l.hello)
	return l, nil
}

// remember keeps the token that the Gateway gave the device.
func (g *gateway) remember(h hello) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.token == "" || h.token == g.token || g.cfg.Identity == nil || slices.Contains(h.scopes, scopeAdmin) {
		return
	}
	g.token = h.token
	g.cfg.Identity.Grant(g.cfg.Name, h.token, h.scopes)
	if g.cfg.Keep != nil {
		if err := g.cfg.Keep(g.cfg.Identity); err != nil {
			g.cfg.Log("the device's token could not be kept: %v", err)
		}
	}
}

// attend serves one connection to its end.
func (g *gateway) attend(ctx context.Context, l *link) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, l.close)
	defer stop()
	g.set(l, nil)
	var side sync.WaitGroup
	side.Go(func() { g.attached(ctx, l) })
	err := l.serve(func(in incoming, gap bool) { g.event(l, in, gap) })
	g.set(nil, nil)
	cancel(err)
	side.Wait()
	return err
}

func (g *gateway) set(l *link, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cur, g.why = l, why
	close(g.moved)
	g.moved = make(chan struct{})
}

// now is the connection there is, or nil.
func (g *gateway) now() *link {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cur
}

// link waits for a connection that is not over, until ctx ends or it is known
// that a person has to act first.
func (g *gateway) link(ctx context.Context) (*link, error) {
	for {
		g.mu.Lock()
		l, why, moved := g.cur, g.why, g.moved
		g.mu.Unlock()
		switch {
		case l != nil && !l.isOver():
			return l, nil
		case why != nil:
			return nil, why
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// call asks the Gateway, and asks again when the connection was lost
// meanwhile, or when the Gateway says that it is not ready yet: for what may be
// asked twice.
func (g *gateway) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	began := time.Now()
	for try := 1; ; try++ {
		l, err := g.link(ctx)
		if err != nil {
			return nil, err
		}
		raw, err := l.call(ctx, method, params)
		var e *RPCError
		switch {
		case errors.Is(err, errLost) && ctx.Err() == nil && try < mostTries:
		case errors.As(err, &e) && e.Retryable && e.Code == "UNAVAILABLE" && e.after() > 0 && e.after() <= mostWait && time.Since(began) < answerLimit:
			if !sleep(ctx, e.after()) {
				return nil, context.Cause(ctx)
			}
		default:
			return raw, err
		}
	}
}

// privileged is call for what may need more than the work's scopes. Then it
// has a connection of its own, for this one request.
func (g *gateway) privileged(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := g.call(ctx, method, params)
	var e *RPCError
	if !errors.As(err, &e) || e.Details.MissingScope != scopeAdmin {
		return raw, err
	}
	g.cfg.Log("%s needs %s: asking for it for this one request", method, scopeAdmin)
	l, err := g.connectWith(ctx, []string{scopeAdmin})
	if err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() { _ = l.serve(func(incoming, bool) {}) })
	defer reading.Wait()
	defer l.close()
	return l.call(ctx, method, params)
}

// sleep waits, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
