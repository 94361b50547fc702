package ws

import (
	"bufio"
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// The sub-protocols of a gateway.
const (
	ProtocolACP      = "acp.v1"
	ProtocolBerth    = "berth.acp.v1"
	ProtocolZeroclaw = "zeroclaw.acp.v1"
)

// Peer is one connection as the gateway knows it.
type Peer struct {
	Principal  Principal
	Connection string // id
	Request    string // id of the request that opened it
	Remote     string // address
	Agent      string // ?agent=, or ""
	Protocol   string // sub-protocol agreed, or ""
	Asked      any    // from HandlerConfig.Answer
	// Frames is what to serve: the connection, or the link it is the first
	// socket of when the client asked for one (see HandlerConfig.Park).
	Frames jsonrpc.Frames
	// OnAway, if set, makes a function known that is told when the socket of
	// the link is lost, or the last stream of an HTTP client (true), and when
	// the client is back (false). It is for Serve, before it reads; the function
	// must be quick.
	OnAway func(func(away bool))
}

// HandlerConfig says what becomes of connections.
type HandlerConfig struct {
	Conn  Config
	NewID func() string // of connections
	// Answer gives more headers for the answer to an upgrade, and a value of
	// its own that Serve finds in Peer.Asked; nil gives none. It must not block.
	Answer func(r *http.Request, connection string) (head http.Header, asked any)
	// Serve serves one connection, its Frames, on a goroutine of its own and
	// returns when that is over. ctx ends when the Handler is closed, and when the token was
	// revoked.
	Serve func(ctx context.Context, c *Conn, p Peer)
	// Park is how long a link waits for its client to come back (see package
	// tether); 0: there are no links.
	Park time.Duration
}

// Handler upgrades requests that a Guard let through.
type Handler struct {
	cfg     HandlerConfig
	up      websocket.Upgrader
	ctx     context.Context //nolint:containedctx // of the connections, which outlive their requests
	cancel  context.CancelCauseFunc
	mu      sync.Mutex
	closed  bool
	serving sync.WaitGroup
	links   map[string]owned // by connection
}

// NewHandler makes a Handler.
func NewHandler(cfg HandlerConfig) *Handler {
	h := &Handler{cfg: cfg}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	h.up = websocket.Upgrader{
		ReadBufferSize: 1 << 10, WriteBufferSize: 4 << 10, WriteBufferPool: &sync.Pool{},
		CheckOrigin: func(*http.Request) bool { return true }, // the Guard has
		Error: func(w http.ResponseWriter, _ *http.Request, status int, _ error) {
			w.Header().Set("Sec-WebSocket-Version", "13")
			http.Error(w, strings.ToLower(http.StatusText(status)), status)
		},
	}
	return h
}

// Upgrades reports whether a request asks for a WebSocket.
func Upgrades(r *http.Request) bool { return websocket.IsWebSocketUpgrade(r) }

// ServeHTTP upgrades one request and starts to serve its connection.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pass, ok := PassOf(r.Context())
	if !ok {
		http.Error(w, "internal server error", http.StatusInternalServerError)
		return
	}
	if why := h.unfit(r); why != nil {
		if why.status == http.StatusUpgradeRequired {
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Sec-WebSocket-Version", "13")
		}
		pass.Refuse(w, r, why.status, 0, why.why)
		return
	}
	connection, received, lasting := h.asksLink(r)
	if l := h.lasting(connection, pass.Principal); l != nil && h.resume(w, r, connection, l, received) {
		return // the link joins it, and counts already
	}
	if !h.enter() {
		pass.Refuse(w, r, http.StatusServiceUnavailable, leaveLimit, "the gateway ends")
		return
	}
	started := false
	defer func() {
		if !started {
			h.serving.Done()
		}
	}()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(h.ctx)) // serve passes its end on
	revoked := make(chan struct{})
	release, status, retry := pass.Open(sync.OnceFunc(func() { close(revoked) }))
	if status != 0 {
		cancel(nil)
		pass.Refuse(w, r, status, retry, "too many connections")
		return
	}
	id := h.cfg.NewID()
	head := http.Header{HeaderConnection: {id}, "X-Request-Id": {pass.Request}}
	if protocol := choose(offeredProtocols(r)); protocol != "" {
		head.Set("Sec-Websocket-Protocol", protocol)
	}
	var asked any
	if h.cfg.Answer != nil {
		var more http.Header
		more, asked = h.cfg.Answer(r, id)
		maps.Copy(head, more)
	}
	if lasting {
		head.Set(tether.Header, tether.Answer())
	}
	c, err := h.upgrade(w, r, head, h.cfg.Conn)
	if err != nil { // answered, or the peer is gone
		cancel(nil)
		release()
		return
	}
	c.id = id
	peer := Peer{
		Principal: pass.Principal, Connection: id, Request: pass.Request, Remote: r.RemoteAddr,
		Agent: strings.TrimSpace(r.URL.Query().Get("agent")), Protocol: c.Protocol(), Asked: asked, Frames: c,
	}
	end := ending(c)
	if lasting {
		end = h.begin(c, &peer, pass)
	}
	started = true
	go func() { // ends with the connection, which Close ends; Close joins it
		defer h.serving.Done()
		defer release()
		defer cancel(nil)
		h.serve(ctx, cancel, c, end, peer, revoked)
	}()
}

// upgrade makes a request a connection.
func (h *Handler) upgrade(w http.ResponseWriter, r *http.Request, head http.Header, cfg Config) (*Conn, error) {
	l := newLink()
	sock, err := h.up.Upgrade(hijacker{w, l}, r, head)
	if err != nil {
		return nil, err
	}
	return newConn(sock, l, cfg), nil
}

// serve serves a connection and waits until nothing of it is left. What the
// peer is to be told is known before anything of it ends.
func (h *Handler) serve(
	ctx context.Context, cancel context.CancelCauseFunc, c *Conn, end ending, peer Peer, revoked <-chan struct{},
) {
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-h.ctx.Done():
			end.Leave(CloseRestart, "the gateway ends")
			cancel(context.Cause(h.ctx))
		case <-revoked:
			end.Leave(ClosePolicy, "the token was revoked")
			cancel(ErrRevoked)
		case <-over:
		}
	})
	h.cfg.Serve(ctx, c, peer)
	_ = end.Close()
	end.join()
	close(over)
	watch.Wait()
}

// unfit says why a request cannot be upgraded, or nil.
func (h *Handler) unfit(r *http.Request) *no {
	switch {
	case !Upgrades(r) || !r.ProtoAtLeast(1, 1):
		return &no{status: http.StatusUpgradeRequired, why: "no upgrade"}
	case r.Header.Get("Sec-Websocket-Version") != "13":
		return &no{status: http.StatusUpgradeRequired, why: "another version of WebSockets"}
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return &no{status: http.StatusBadRequest, why: "an upgrade with a body"}
	}
	return nil
}

// enter counts a connection, unless the Handler was closed.
func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.serving.Add(1)
	return true
}

// Stop takes no more connections. Those there are go on, on new sockets too.
func (h *Handler) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// Close ends every connection with a cause and waits until ctx ends or they
// have ended.
func (h *Handler) Close(ctx context.Context, cause error) error {
	h.Stop()
	h.cancel(cause)
	joined := make(chan struct{})
	go func() { // ends with the connections
		h.serving.Wait()
		close(joined)
	}()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// choose picks the sub-protocol: the peer's order, but ZeroClaw's only when it
// is the only one, for it brings another dialect. A token is never among them.
func choose(offered []string) string {
	for _, p := range offered {
		if p == ProtocolACP || p == ProtocolBerth {
			return p
		}
	}
	if slices.Contains(offered, ProtocolZeroclaw) {
		return ProtocolZeroclaw
	}
	return ""
}

// hijacker puts the link below the WebSocket.
type hijacker struct {
	http.ResponseWriter
	link *link
}

// Hijack takes the connection over.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.link.Conn = conn
	return h.link, buffered, nil
}
