// Package streamhttp is the Streamable HTTP transport of ACP (the draft of
// summer 2026): one path, on which
//
//   - POST with initialize opens a connection and is answered in its body,
//     with the header Acp-Connection-Id;
//   - POST of any other message is answered 202; what comes back comes on a
//     stream;
//   - GET opens a stream of server-sent events: the connection's own, or, with
//     Acp-Session-Id, that of one session;
//   - DELETE ends the connection in an orderly way.
//
// Each connection is a jsonrpc.Frames that is handed to the same function as a
// WebSocket's. Read gives what was posted, Write finds out which stream a
// message belongs to (route.go) and puts it there (stream.go). A connection
// that nobody listens to or whose reader is stuck is lost (connection.go), so
// its sessions detach.
//
// Beyond the draft, events are numbered and kept for a while, so that a client
// that sends Last-Event-ID loses nothing with a stream; the answer of
// session/load waits until the history before it has left; and a request of
// ours that is withdrawn before it was sent is never sent.
//
// Read on in post.go, listen.go and cors.go for the three kinds of request.
package streamhttp

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/ws"
)

// Headers, in canonical form.
const (
	HeaderSession   = "Acp-Session-Id"
	headerLastEvent = "Last-Event-Id"
)

// Options of a Handler; zero values are the defaults.
type Options struct {
	NewID func() string // of connections; nobody may be able to guess one
	// Serve serves one connection on a goroutine of its own and returns when
	// that is over. ctx ends when the Handler is closed, and when the token was
	// revoked.
	Serve func(ctx context.Context, frames jsonrpc.Frames, p ws.Peer)

	MaxMessageBytes  int           // of a posted message; default 16 MiB
	MaxStreams       int           // session streams of a connection; default 1024
	MaxBufferedBytes int           // of a connection, not yet sent; default 16 MiB
	MaxUnreadBytes   int           // the same, of its streams that are open; default 1 MiB
	MaxBuffered      int           // messages of a connection, not yet sent; default 65536
	KeptBytes        int           // sent events a stream keeps for Last-Event-ID; default 4 MiB
	KeptEvents       int           // the same, counted; default 4096
	KeptOfAll        int           // sent events that all streams of a connection keep; default 16 MiB
	KeepAlive        time.Duration // between comments on a silent stream; default 15 s
	Stall            time.Duration // until a reader that takes nothing is lost; default 60 s
	Unattended       time.Duration // until a connection that never had a stream nor has a request is lost; default 60 s
	Absent           time.Duration // until one that has lost its last stream is lost; default 10 s
	Settle           time.Duration // the answer of load follows the history by so much where streams do not share a connection; default 50 ms
	Handover         time.Duration // a new reader waits so long for the old one to leave; default 250 ms
	Flush            time.Duration // streams may take so long to end; default 5 s
	Farewell         time.Duration // DELETE is answered when the server has ended, or after so long; default 1 s
}

func (o *Options) setDefaults() {
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	wait := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&o.MaxMessageBytes, 16<<20)
	set(&o.MaxStreams, 1024)
	set(&o.MaxBufferedBytes, 16<<20)
	set(&o.MaxUnreadBytes, 1<<20)
	set(&o.MaxBuffered, 1<<16)
	set(&o.KeptBytes, 4<<20)
	set(&o.KeptEvents, 4096)
	set(&o.KeptOfAll, 16<<20)
	wait(&o.KeepAlive, 15*time.Second)
	wait(&o.Stall, time.Minute)
	wait(&o.Unattended, time.Minute)
	wait(&o.Absent, 10*time.Second)
	wait(&o.Settle, 50*time.Millisecond)
	wait(&o.Handover, 250*time.Millisecond)
	wait(&o.Flush, 5*time.Second)
	wait(&o.Farewell, time.Second)
}

// Handler serves requests that a Guard let through. It owns the connections
// and the goroutines that serve them; Close ends and joins them.
type Handler struct {
	opts    Options
	ctx     context.Context //nolint:containedctx // of the connections, which outlive their requests
	cancel  context.CancelCauseFunc
	serving sync.WaitGroup

	mu     sync.Mutex
	conns  map[string]*connection
	closed bool
}

// NewHandler makes a Handler.
func NewHandler(opts Options) *Handler {
	opts.setDefaults()
	h := &Handler{opts: opts, conns: map[string]*connection{}}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	return h
}

// Behind puts the Handler behind a Guard. Browsers are answered before their
// credentials are judged, for they ask without any, and told of refusals too:
// Host and Origin come first in any case.
func (h *Handler) Behind(g *ws.Guard) http.Handler {
	protected := g.Protect(h, http.MethodPost, http.MethodGet, http.MethodDelete)
	return g.Visible(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowOrigin(w, r)
		if r.Method == http.MethodOptions {
			preflight(w, r)
			return
		}
		protected.ServeHTTP(w, r)
	}), http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions)
}

// Stop takes no more connections. Those there are go on.
func (h *Handler) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// End takes no more connections and ends those there are, with a cause. It
// does not wait, so an HTTP server may call it when it begins to shut down, and
// then wait for the streams, which send what they hold and end.
func (h *Handler) End(cause error) {
	h.Stop()
	h.cancel(cause)
}

// Close is End, and waits until ctx ends or the functions that serve the
// connections have returned.
func (h *Handler) Close(ctx context.Context, cause error) error {
	h.End(cause)
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

// Count is how many connections are open.
func (h *Handler) Count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.conns)
}

// ServeHTTP answers one request that a Guard let through.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pass, ok := ws.PassOf(r.Context())
	if !ok {
		http.Error(w, "internal server error", http.StatusInternalServerError)
		return
	}
	// What is left of a body when the answer is known is not waited for longer.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(h.opts.Stall))
	_ = rc.SetWriteDeadline(time.Time{}) // an answer may take its time to be known; how long it is written is bounded where it is
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, pass)
	case http.MethodGet:
		h.get(w, r, pass)
	default: // DELETE; the guard knows no other
		h.delete(w, r, pass)
	}
}

// delete ends a connection as the end of input does on a pipe. A client that
// was answered finds its sessions free.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, pass *ws.Pass) {
	c, bad := h.find(r, pass)
	if bad != nil {
		bad.write(w)
		return
	}
	defer c.leave()
	c.end()
	patience := time.NewTimer(h.opts.Farewell)
	defer patience.Stop()
	select {
	case <-c.served:
	case <-patience.C: // a turn takes its time to end
	case <-r.Context().Done():
	}
	accepted(w)
}

// open makes a connection, attended by the caller, and starts to serve it.
// When it returns nil, it has answered.
func (h *Handler) open(w http.ResponseWriter, r *http.Request, pass *ws.Pass) *connection {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		pass.Refuse(w, r, http.StatusServiceUnavailable, time.Second, "the gateway ends")
		return nil
	}
	ctx, cancel := context.WithCancelCause(h.ctx)
	done, status, retry := pass.Open(func() { cancel(ws.ErrRevoked) })
	if status != 0 {
		cancel(nil)
		pass.Refuse(w, r, status, retry, "too many connections")
		return nil
	}
	c := newConnection(h.opts.NewID(), pass.Principal, &h.opts, h.forget)
	h.conns[c.id] = c
	peer := ws.Peer{
		Principal: pass.Principal, Connection: c.id, Request: pass.Request, Remote: r.RemoteAddr,
		Agent: strings.TrimSpace(r.URL.Query().Get("agent")), OnAway: c.watchAway,
	}
	h.serving.Go(func() { // ends with the connection, which Close ends; Close joins it
		defer cancel(nil)
		defer done()
		defer close(c.served)
		defer func() { _ = c.Close() }() // whatever became of the function
		h.opts.Serve(ctx, c, peer)
	})
	return c
}

// find returns the connection a request names, attended until leave.
func (h *Handler) find(r *http.Request, pass *ws.Pass) (*connection, *refusal) {
	id, bad := header(r, ws.HeaderConnection)
	switch {
	case bad != nil:
		return nil, bad
	case id == "":
		return nil, noConnection()
	}
	h.mu.Lock()
	c := h.conns[id]
	h.mu.Unlock()
	if c == nil || !c.owner.Same(pass.Principal) || !c.attend() {
		return nil, unknownConnection()
	}
	return c, nil
}

func (h *Handler) forget(c *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c.id)
}
