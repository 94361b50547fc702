package acp1

import (
	"context"
	"encoding/json"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// unimplemented returns why a method of the protocol, or one that clients are
// known to try, is refused. A client that goes by the capabilities we
// advertise never calls one of these.
func unimplemented(name string) (reason string, ok bool) {
	switch name {
	case "logout":
		// auth.logout is not advertised where no key is or could be stored by a
		// login: the others belong to the operator, and a client must not be able
		// to take them away.
		return "the agent's key is not one that a login stored, so there is nothing to sign out of", true
	case "session/set_mode":
		return "session responses offer no modes", true
	case "session/set_config_option":
		return "session responses offer no config options", true
	case "session/set_model":
		// Removed from the protocol in favour of config options.
		return "the model is chosen by the agent's configuration", true
	case "session/fork", "session/archive", "session/unarchive", "session/status", "session/set_title",
		"session/options", "auth/status", "providers/list", "providers/set", "providers/disable":
		return "this unstable method is not advertised", true
	case "mcp/message":
		return "MCP over ACP is not advertised", true
	case "proxy/initialize", "proxy/successor":
		return "this is an agent, not a proxy", true
	}
	return "", false
}

// refuse answers a method that is known and not offered.
func refuse(name, reason string) jsonrpc.Admit {
	return func(context.Context, json.RawMessage) (jsonrpc.Task, error) {
		return nil, domain.Errorf(domain.Unsupported, "%s is not available: %s", name, reason).With("method", name)
	}
}
