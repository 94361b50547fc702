package openclawtest

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/berth-dev/berth/adapters/ws"
)

// Handler serves the Gateway over WebSockets, on any path.
func (g *Gateway) Handler() http.Handler {
	var n atomic.Int64
	id := func() string { return strconv.FormatInt(n.Add(1), 10) }
	guard := ws.NewGuard(ws.GuardConfig{NewID: id})
	return guard.Protect(ws.NewHandler(ws.HandlerConfig{
		NewID: id,
		Serve: func(_ context.Context, c *ws.Conn, _ ws.Peer) { g.Serve(c) },
	}), http.MethodGet)
}
