package bootstrap

import (
	"context"
	"net"
	"net/http"
	"sync"

	"go.uber.org/fx"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/streamhttp"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/core/domain"
)

// maxRequests is how many requests one HTTP/2 connection may have under way:
// a stream for each session of a client, and some.
const maxRequests = 1100

// addStreams has the gateway answer the requests of Streamable HTTP.
func (g *gateway) addStreams(lc fx.Lifecycle, o *options) {
	h := streamhttp.NewHandler(streamhttp.Options{
		NewID:           o.ids,
		MaxMessageBytes: int(g.cfg.Gateway.MaxMessageBytes),
		Serve: func(ctx context.Context, frames jsonrpc.Frames, p ws.Peer) {
			g.serve(ctx, frames, p, "http")
		},
	})
	g.streams = h.Behind(g.guard)
	g.endStreams = func() { h.End(domain.ProcessEnding) }
	g.leaving = append(g.leaving, h.Stop)
	lc.Append(fx.StopHook(func(ctx context.Context) error { return h.Close(ctx, domain.ProcessEnding) }))
}

// carryStreams prepares a server for streams: requests that go on for as long
// as their client likes, many on one connection, and ended by Shutdown, which
// waits for them.
func (g *gateway) carryStreams(s *http.Server) {
	s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxRequests}
	s.RegisterOnShutdown(g.endStreams)
	unused := &unusedConns{conns: map[net.Conn]struct{}{}}
	s.ConnState = unused.note
	s.RegisterOnShutdown(unused.close)
}

// unusedConns are the connections on which nothing was ever sent. Clients open
// some in advance, and Shutdown would wait 5 s for each.
type unusedConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// note follows a connection's state.
func (u *unusedConns) note(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(u.conns, c)
	case u.closed:
		_ = c.Close()
	default:
		u.conns[c] = struct{}{}
	}
}

// close closes them, and those to come.
func (u *unusedConns) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for c := range u.conns {
		_ = c.Close()
	}
}
