package acp1

import (
	"context"
	"encoding/json"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// The ids of the ways to sign in.
const (
	authLocal = "local"
	authLogin = "login"
)

// authMethods are the ways to sign in that the client can use. ZeroClaw's
// clients know none.
func (c *connection) authMethods(a *agreement) []authMethod {
	if a.zeroclaw() {
		return []authMethod{}
	}
	methods := []authMethod{{
		ID: authLocal, Name: "Use the agent's own settings",
		Description: "Checks that the agent's model has the key it needs in the configuration or the environment",
	}}
	if len(c.p.LoginArgs) > 0 && a.info.LoginInShell {
		methods = append(methods, authMethod{
			Type: "terminal", ID: authLogin, Name: "Sign in at the terminal",
			Description: "Asks for a provider's key and stores it", Args: c.p.LoginArgs,
		})
	}
	return methods
}

// authenticate serves the agent-run way to sign in: it verifies that the model
// of the agent can be opened.
func (c *connection) authenticate(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	id, err := objectOf(params).required("methodId")
	if err != nil {
		return nil, err
	}
	switch id {
	case authLocal:
	case authLogin:
		return nil, domain.Errorf(domain.InvalidArgument,
			"methodId %q runs in a terminal: start the agent there with the arguments from authMethods", id)
	default:
		return nil, domain.Errorf(domain.InvalidArgument, "methodId %q is unknown: use %q", brief(id), authLocal)
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		return jsonrpc.Reply{}, explain(c.verify(ctx), "")
	}, nil
}

// verify opens the model of the default agent. Without a default one agent
// that works is enough, because the client may name any.
func (c *connection) verify(ctx context.Context) error {
	if a, ok := c.defaultAgent(); ok {
		_, err := c.p.Models.Open(ctx, a.Model)
		return err
	}
	first := error(domain.Errorf(domain.InvalidArgument, "no agent is enabled: enable one in the configuration"))
	tried := false
	for _, a := range c.p.Agents.All() {
		if !a.Enabled {
			continue
		}
		_, err := c.p.Models.Open(ctx, a.Model)
		if err == nil {
			return nil
		}
		if !tried {
			first, tried = err, true
		}
	}
	return first
}
