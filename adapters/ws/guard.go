package ws

import (
	"context"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// GuardConfig says whom a Guard lets in.
type GuardConfig struct {
	// Keys knows the tokens. nil lets everybody in as Anyone.
	Keys   Keys
	Anyone Principal
	// Hosts are the names a request may ask for, without port, besides
	// loopback names and the address that the connection came in on.
	Hosts []string
	// Origins are the origins of web pages that may connect besides the
	// gateway's own, such as "https://app.example".
	Origins []string
	// MaxConnections bounds all connections (1024), MaxPerToken those of one
	// principal (20; negative: no bound).
	MaxConnections int
	MaxPerToken    int
	NewID          func() string    // of requests
	Now            func() time.Time // time.Now unless set
	// Refused is told of every request that was turned away. It must not
	// block.
	Refused func(Refusal)
	// Admitted is told of every request whose sender may come in, before it is
	// served. It must not block.
	Admitted func(*http.Request)
}

// Refusal is one request that was turned away. It holds nothing of the
// request's query, nor any credential.
type Refusal struct {
	Request string // id
	Remote  string // address
	Method  string // "other" when it is none that is known
	Path    string // "other" when it is none that a gateway has: people put secrets there
	Status  int
	Why     string
}

// Guard judges requests before any work is done for them.
type Guard struct {
	cfg     GuardConfig
	limiter *limiter

	mu    sync.Mutex
	open  map[*opening]struct{}
	per   map[string]int // connections by principal
	round int            // of revocations
}

// NewGuard makes a Guard.
func NewGuard(cfg GuardConfig) *Guard {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.MaxConnections <= 0 {
		cfg.MaxConnections = 1024
	}
	if cfg.MaxPerToken == 0 {
		cfg.MaxPerToken = 20
	}
	if cfg.Refused == nil {
		cfg.Refused = func(Refusal) {}
	}
	if cfg.Admitted == nil {
		cfg.Admitted = func(*http.Request) {}
	}
	return &Guard{cfg: cfg, limiter: newLimiter(cfg.Now), open: map[*opening]struct{}{}, per: map[string]int{}}
}

// Protect lets requests of the given methods through to next, which finds
// their Pass in the context, and answers all others itself.
func (g *Guard) Protect(next http.Handler, methods ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pass, ok := g.Admit(w, r, methods...); ok {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passKey{}, pass)))
		}
	})
}

// Admit judges a request, which may have one of the given methods. When it
// does not admit it, it has written the answer.
func (g *Guard) Admit(w http.ResponseWriter, r *http.Request, methods ...string) (*Pass, bool) {
	id := g.cfg.NewID()
	plain(w.Header())
	w.Header().Set("X-Request-Id", id)
	round := g.revocations()
	p, no := g.judge(r, methods)
	if no != nil {
		g.refuse(w, r, id, no)
		return nil, false
	}
	g.cfg.Admitted(r)
	return &Pass{Principal: p, Request: id, guard: g, round: round}, true
}

// Visible lets requests through that need no token, such as those for the
// console's files, once their Host and Origin have been judged.
func (g *Guard) Visible(next http.Handler, methods ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.AdmitVisible(w, r, methods...) {
			next.ServeHTTP(w, r)
		}
	})
}

// AdmitVisible is Admit for requests that need no token, such as a browser's
// question before a request.
func (g *Guard) AdmitVisible(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	no := g.place(r, methods)
	if no == nil {
		return true
	}
	plain(w.Header())
	g.refuse(w, r, g.cfg.NewID(), no)
	return false
}

// plain sets the headers of every answer that is not the console's.
func plain(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
}

// no is why a request is turned away. What it says to the peer is the same
// for all requests of its status.
type no struct {
	status int
	why    string        // for the log
	retry  time.Duration // Retry-After, if set
	allow  string        // Allow, if set
}

// opens reports whether a request wants a place of its own. Others have one, or
// need none: who watches the gateway sees it also when it is full, and who lost
// his socket comes back to his place.
func opens(r *http.Request) bool {
	if Upgrades(r) {
		connection, _, _ := tether.Asked(r.Header.Get(tether.Header))
		return connection == ""
	}
	return r.Method == http.MethodPost && r.Header.Get(HeaderConnection) == ""
}

// judge is the order of checks.
func (g *Guard) judge(r *http.Request, methods []string) (Principal, *no) {
	if opens(r) && g.full() {
		return Principal{}, &no{status: http.StatusServiceUnavailable, why: "too many connections", retry: time.Second}
	}
	if no := g.place(r, methods); no != nil {
		return Principal{}, no
	}
	if g.cfg.Keys == nil {
		return g.cfg.Anyone, nil
	}
	return g.credentials(r)
}

// credentials judges the token, after the recent failures.
func (g *Guard) credentials(r *http.Request) (Principal, *no) {
	remote := remoteIP(r)
	key := limitKey(remote, r.Header.Get("Origin"))
	local := remote.IsLoopback() || !remote.IsValid()
	locked := g.limiter.locked(key)
	if locked > 0 && !local {
		return Principal{}, &no{status: http.StatusTooManyRequests, why: "too many wrong tokens", retry: locked}
	}
	p, no := g.principal(r, local)
	switch {
	case locked > 0 && no != nil:
		// On loopback every account of the machine has the same address, so one
		// of them must not lock out another: whoever is wrong waits.
		no = tooMany(locked)
		g.limiter.delay(r.Context())
	case no != nil && no.status == http.StatusUnauthorized && no.why != whyNone:
		g.limiter.fail(key)
	}
	return p, no
}

// refuse answers.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, id string, no *no) {
	h := w.Header()
	h.Set("X-Request-Id", id)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	if no.retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int((no.retry+time.Second-1)/time.Second)))
	}
	if no.allow != "" {
		h.Set("Allow", no.allow)
	}
	if no.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="berth"`)
	}
	body := strings.ToLower(http.StatusText(no.status)) + "\n"
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(no.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body))
	}
	g.cfg.Refused(Refusal{Request: id, Remote: r.RemoteAddr, Method: knownMethod(r.Method), Path: knownPath(r.URL.Path), Status: no.status, Why: no.why})
}

// other stands for words of a stranger that might be a secret in the wrong
// place, or written for the eyes of who reads the log.
const other = "other"

func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return method
	}
	return other
}

func knownPath(path string) string {
	switch path {
	case "/", "/acp", "/metrics", "/healthz", "/readyz":
		return path
	}
	return other
}

// remoteIP is the address a request came from; the zero value for a Unix
// socket.
func remoteIP(r *http.Request) netip.Addr {
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap().WithZone("")
}
