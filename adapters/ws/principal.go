package ws

import (
	"fmt"

	"github.com/berth-dev/berth/core/domain"
)

// ErrRevoked is the cause of a connection's context whose token was revoked.
// What it had ends: nobody is left who might come back for it.
var ErrRevoked = fmt.Errorf("%w: the token was revoked", domain.SessionClosed)

// Principal is who a request comes from, and what its token is limited to.
type Principal struct {
	Name        string       // of the token
	Serial      string       // tells tokens of one name apart; not secret
	Agents      []string     // aliases it may use; nil for all
	Level       domain.Level // ceiling; "" for none
	Roots       []string     // working directories lie below one of them; nil for any
	Observe     bool         // may list and watch, nothing else
	MCPCommands bool         // may name MCP servers that are commands
}

// Same reports whether two requests showed the same token, with the same
// rights.
func (p Principal) Same(q Principal) bool { return p.Name == q.Name && p.Serial == q.Serial }

// Keys knows the tokens. Its methods are called from any goroutine and do not
// block.
type Keys interface {
	// Lookup finds the principal of a token, in a time that tells nothing of
	// how much of it was right. local is set when the request came from this
	// machine.
	Lookup(token string, local bool) (Principal, bool)
}
