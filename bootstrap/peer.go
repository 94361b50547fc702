package bootstrap

import (
	"context"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
)

// Peer is the other end of a gateway's connection.
type Peer struct {
	Agent        string // for new sessions that name none; "" for none
	Dialect      string // "zeroclaw" when the connection says so; "" leaves it to the settings
	ConnectionID string
	Remote       string // address
}

// ServePeer serves one connection of a gateway until its input ends, it is
// lost, or ctx ends.
func (a *App) ServePeer(ctx context.Context, frames jsonrpc.Frames, p Peer) error {
	params := a.params()
	params.Agent = p.Agent
	if p.Dialect != "" && params.Dialect == acp1.DialectAuto {
		params.Dialect = acp1.Dialect(p.Dialect)
	}
	return acp1.Serve(ctx, frames, params)
}
