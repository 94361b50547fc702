package ws

import (
	"context"
	"net/http"
	"time"
)

// HeaderConnection is the header that carries a connection's id.
const HeaderConnection = "Acp-Connection-Id"

// Pass is what a request was admitted with.
type Pass struct {
	Principal Principal
	Request   string // the request's id, as in its log line and its answer's X-Request-Id
	guard     *Guard
	round     int // of revocations, when it was judged
}

type passKey struct{}

// PassOf returns the pass of a request that a Guard let through.
func PassOf(ctx context.Context) (*Pass, bool) {
	p, ok := ctx.Value(passKey{}).(*Pass)
	return p, ok
}

// opening is one connection that counts.
type opening struct {
	principal Principal
	end       func()
}

// Open takes a place for a connection, which outlives its request. revoked is
// called, once at most and not by Open, when the token it was opened with is
// no longer good. With status 0 the caller calls done when the connection is
// over; another status is what to answer, and retry when to come back.
func (p *Pass) Open(revoked func()) (done func(), status int, retry time.Duration) {
	g, o := p.guard, &opening{p.Principal, revoked}
	g.mu.Lock()
	defer g.mu.Unlock()
	name := p.Principal.Name
	switch {
	case p.round != g.round:
		return nil, http.StatusServiceUnavailable, time.Second // its token may have gone meanwhile
	case len(g.open) >= g.cfg.MaxConnections:
		return nil, http.StatusServiceUnavailable, time.Second
	case g.cfg.Keys != nil && g.cfg.MaxPerToken > 0 && g.per[name] >= g.cfg.MaxPerToken:
		return nil, http.StatusTooManyRequests, time.Second
	}
	g.open[o] = struct{}{}
	g.per[name]++
	return func() { g.release(o) }, 0, 0
}

func (g *Guard) release(o *opening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.open[o]; !ok {
		return
	}
	delete(g.open, o)
	if g.per[o.principal.Name]--; g.per[o.principal.Name] == 0 {
		delete(g.per, o.principal.Name)
	}
}

// Refuse answers a request whose pass found no place, and logs it.
func (p *Pass) Refuse(w http.ResponseWriter, r *http.Request, status int, retry time.Duration, why string) {
	p.guard.refuse(w, r, p.Request, &no{status: status, why: why, retry: retry})
}

// full reports whether there is no place for another connection.
func (g *Guard) full() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open) >= g.cfg.MaxConnections
}

// Count is how many connections are open.
func (g *Guard) Count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.open)
}

func (g *Guard) revocations() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.round
}

// Revoke ends the connections of principals that are not good any more. It
// does nothing when the Guard lets everybody in.
func (g *Guard) Revoke(good func(Principal) bool) {
	if g.cfg.Keys == nil {
		return
	}
	var ends []func()
	g.mu.Lock()
	g.round++
	for o := range g.open {
		if !good(o.principal) {
			ends = append(ends, o.end)
		}
	}
	g.mu.Unlock()
	for _, end := range ends {
		end()
	}
}
