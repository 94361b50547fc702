package bootstrap

import (
	"context"
	"net/http"
	"time"

	"go.uber.org/fx"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/streamhttp"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/core/domain"
)

// maxRequests is how many requests one HTTP/2 connection may have under way:
// a stream for each session of a client, and some.
const maxRequests = 1100

// maxFrame is the longest frame of HTTP/2 that is taken, the default of the
// standard and the least it allows. The server keeps a buffer as long as the
// longest frame that came for as long as the network connection lasts, also
// that of a stranger, and would take 1 MiB.
const maxFrame = 16 << 10

// A client on HTTP/2 that says nothing for quietTime is asked whether it is
// there, and gone when it does not answer within pingTime, or takes nothing of
// what is written for stuckTime.
const (
	quietTime = 30 * time.Second
	pingTime  = 15 * time.Second
	stuckTime = time.Minute
)

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
	s.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: maxRequests, MaxReadFrameSize: maxFrame,
		SendPingTimeout: quietTime, PingTimeout: pingTime, WriteByteTimeout: stuckTime,
	}
	s.RegisterOnShutdown(g.endStreams)
}
