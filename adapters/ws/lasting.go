package ws

import (
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// ending is what a Handler ends a connection by: a Conn, or a link of several.
type ending interface {
	Leave(code int, reason string)
	Close() error
	join() // waits, after Close, until nothing is left
}

func (c *Conn) join() { <-c.gone }

// lasting is a connection that outlives its sockets. It holds one place of the
// Guard's however many it has had.
type lasting struct {
	*tether.Link
	sockets sync.WaitGroup // those there are, and those on their way
	forget  func()         // has no more of them begin
}

func (l *lasting) join() {
	l.forget()
	l.sockets.Wait()
}

// watch counts a socket until nothing of it is left.
func (l *lasting) watch(c *Conn) {
	l.sockets.Go(c.join) // ends with the socket; join joins it
}

// asksLink reads whether a request wants a link, and which one.
func (h *Handler) asksLink(r *http.Request) (connection string, received uint64, ok bool) {
	if h.cfg.Park <= 0 {
		return "", 0, false
	}
	return tether.Asked(r.Header.Get(tether.Header))
}

// begin makes a new connection the first socket of a link, and that what its
// peer is served by.
func (h *Handler) begin(c *Conn, p *Peer, pass *Pass) *lasting {
	var tell atomic.Pointer[func(bool)]
	l := &lasting{}
	l.Link = tether.New(c, tether.Options{Park: h.cfg.Park, Away: func(away bool) {
		if pass.Away(nil); away {
			pass.Away(l.Yield)
		}
		if f := tell.Load(); f != nil {
			(*f)(away)
		}
	}})
	l.watch(c)
	h.remember(p.Connection, p.Principal, l)
	p.Frames, p.OnAway = l.Link, func(f func(bool)) { tell.Store(&f) }
	return l
}

// lasting finds the link that a request wants to take up. Its sockets count
// one more until the caller calls sockets.Done.
func (h *Handler) lasting(connection string, p Principal) *lasting {
	h.mu.Lock()
	defer h.mu.Unlock()
	o, ok := h.links[connection]
	if !ok || !p.Same(o.owner) {
		return nil
	}
	o.link.sockets.Add(1)
	return o.link
}

// remember makes a link known until it ends.
func (h *Handler) remember(connection string, p Principal, l *lasting) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.links == nil {
		h.links = map[string]owned{}
	}
	h.links[connection] = owned{l, p}
	l.forget = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.links, connection)
	}
}

// owned is a link with the principal that may take it up.
type owned struct {
	link  *lasting
	owner Principal
}

// resume goes on with a link on the socket of a new request. The request was
// admitted like any other; that it comes from the link's own principal was
// seen by lasting. It reports whether the link still could be taken up.
func (h *Handler) resume(w http.ResponseWriter, r *http.Request, connection string, l *lasting, received uint64) bool {
	defer l.sockets.Done()
	ticket, have, err := l.Fence()
	if err != nil {
		return false
	}
	head := http.Header{HeaderConnection: {connection}, tether.Header: {tether.AnswerResumed(have)}}
	if id := w.Header().Get("X-Request-Id"); id != "" {
		head.Set("X-Request-Id", id)
	}
	if p := choose(offeredProtocols(r)); p != "" {
		head.Set("Sec-Websocket-Protocol", p)
	}
	cfg := h.cfg.Conn
	cfg.First = nil // the conversation has begun
	c, err := h.upgrade(w, r, head, cfg)
	if err != nil {
		return true // answered, or the peer is gone; the link waits on
	}
	c.id = connection
	l.watch(c)
	if err := l.Attach(ticket, c, received); err != nil {
		c.Leave(CloseTryLater, err.Error())
		_ = c.Close()
	}
	return true
}
