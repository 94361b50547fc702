package bootstrap

import (
	"context"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/core/domain"
)

// Peer is the other end of a gateway's connection.
type Peer struct {
	Rights       *domain.Rights // nil is everything
	Agent        string         // for new sessions that name none; "" for none
	Dialect      string         // "zeroclaw" when the connection says so; "" leaves it to the settings
	ConnectionID string
	Remote       string // address
	// OnAway, if set, makes a function known that is told when the connection
	// is interrupted (true) and goes on (false).
	OnAway func(func(away bool))
}

// ServePeer serves one connection of a gateway until its input ends, it is
// lost, or ctx ends.
func (a *App) ServePeer(ctx context.Context, frames jsonrpc.Frames, p Peer) error {
	params := a.params()
	params.Agent, params.Rights, params.OnAway = p.Agent, p.Rights, p.OnAway
	if p.Rights != nil {
		params.Sessions = paced{params.Sessions, a.pacer, p.Rights.Name}
	}
	if p.Dialect != "" && params.Dialect == acp1.DialectAuto {
		params.Dialect = acp1.Dialect(p.Dialect)
	}
	return acp1.Serve(ctx, frames, params)
}
