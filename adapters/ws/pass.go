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
	round     int      // of revocations, when it was judged
	place     *opening // that Open took
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
	yield     func() bool // set while its client is away: ends it for another's sake, if it still is
	away      time.Time   // since when that is
	over      bool        // the connection is
}

// Open takes a place for a connection, which outlives its request. revoked is
// called, once at most and not by Open, when the token it was opened with is
// no longer good. With status 0 the caller calls done when the connection is
// over; another status is what to answer, and retry when to come back. When a
// token has all its places, one whose client has been away for longest is
// given up for the new one: else who is killed twenty times in a row would be
// locked out by what it left.
func (p *Pass) Open(revoked func()) (done func(), status int, retry time.Duration) {
	g, o := p.guard, &opening{principal: p.Principal, end: revoked}
	var lost *opening
	g.mu.Lock()
	switch name := p.Principal.Name; {
	case p.round != g.round:
		status = http.StatusServiceUnavailable // its token may have gone meanwhile
	case len(g.open) >= g.cfg.MaxConnections:
		status = http.StatusServiceUnavailable
	case g.cfg.Keys != nil && g.cfg.MaxPerToken > 0 && g.per[name] >= g.cfg.MaxPerToken:
		if lost = g.longestAway(name); lost == nil {
			status = http.StatusTooManyRequests
		}
	}
	var yield func() bool
	if lost != nil {
		yield = lost.yield
		g.releaseLocked(lost)
	}
	if status == 0 {
		g.take(o)
		p.place = o
	}
	g.mu.Unlock()
	if status != 0 {
		return nil, status, time.Second
	}
	if yield != nil && !yield() { // its client has just come back: they are one too many for once
		g.mu.Lock()
		if !lost.over {
			g.take(lost)
		}
		g.mu.Unlock()
	}
	return func() { g.release(o) }, 0, 0
}

// take gives a connection a place. The lock is held.
func (g *Guard) take(o *opening) {
	g.open[o] = struct{}{}
	g.per[o.principal.Name]++
}

// Away says that the client of the connection that Open took a place for is
// away, and how the connection is ended if its place is needed; nil says that
// it is back. yield is called without any lock, and says whether the client was
// still away.
func (p *Pass) Away(yield func() bool) {
	p.guard.mu.Lock()
	defer p.guard.mu.Unlock()
	if p.place != nil {
		p.place.yield, p.place.away = yield, p.guard.cfg.Now()
	}
}

// longestAway is the place of a principal whose client has been away for
// longest; nil when none is. The lock is held.
func (g *Guard) longestAway(name string) (longest *opening) {
	for o := range g.open {
		if o.principal.Name == name && o.yield != nil && (longest == nil || o.away.Before(longest.away)) {
			longest = o
		}
	}
	return longest
}

func (g *Guard) release(o *opening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o.over = true
	g.releaseLocked(o)
}

func (g *Guard) releaseLocked(o *opening) {
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
