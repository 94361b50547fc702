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

// Login is how a client may start this program in a terminal to sign in.
type Login struct {
	Command string   // absolute path of the program, for clients that start what they are told
	Args    []string // what a terminal method names; empty: no terminal sign-in is offered
}

// authMethods are the ways to sign in that the client can use. ZeroClaw's
// clients know none.
func (c *connection) authMethods(a *agreement) []authMethod {
	if a.zeroclaw() {
		return []authMethod{}
	}
	methods := []authMethod{{
		ID: authLocal, Name: "Use the key that is set",
		Description: "Checks that the agent's model has a key, and that its provider accepts it",
	}}
	if login, ok := c.loginMethod(a.info); ok {
		methods = append(methods, login)
	}
	return methods
}

// loginMethod is the sign-in at a terminal. It is of the type terminal for
// clients that offer to run such, and carries the whole command for those that
// knew terminals before the protocol did.
func (c *connection) loginMethod(can domain.ClientInfo) (m authMethod, ok bool) {
	if len(c.p.Login.Args) == 0 {
		return m, false
	}
	m = authMethod{ID: authLogin, Name: "Enter a key at the terminal", Description: "Asks for a provider's key, checks it and stores it"}
	if can.LoginInShell {
		m.Type, m.Args = "terminal", c.p.Login.Args
	}
	if can.LoginCommand && c.p.Login.Command != "" {
		m.Meta = &authMeta{terminalAuth{Label: "berth login", Command: c.p.Login.Command, Args: c.p.Login.Args}}
	}
	return m, m.Type != "" || m.Meta != nil
}

// authenticate serves the agent-run way to sign in: it verifies that the model
// of the agent can be used. A login whose terminal the client has run by its
// own means is verified the same way.
func (c *connection) authenticate(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	id, err := objectOf(params).required("methodId")
	if err != nil {
		return nil, err
	}
	login, offered := c.loginMethod(c.state().info)
	switch {
	case id == authLocal, id == authLogin && offered && login.Type == "":
	case id == authLogin:
		return nil, domain.Errorf(domain.InvalidArgument,
			"methodId %q runs in a terminal: start the agent there with the arguments from authMethods", id)
	default:
		return nil, domain.Errorf(domain.InvalidArgument, "methodId %q is unknown: use %q", brief(id), authLocal)
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		return jsonrpc.Reply{}, c.explain(c.verify(ctx), "")
	}, nil
}

// verify opens the model of the default agent and has its key checked. Without
// a default one agent that works is enough, because the client may name any.
func (c *connection) verify(ctx context.Context) error {
	var first error
	for _, a := range c.servable() {
		err := c.usable(ctx, a.Model)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		return domain.Errorf(domain.InvalidArgument, "no agent is enabled: enable one in the configuration")
	}
	return first
}

// servable are the agents a session may get that names none: the default one,
// else all that are enabled.
func (c *connection) servable() []domain.Agent {
	if a, ok := c.defaultAgent(); ok {
		return []domain.Agent{a}
	}
	var list []domain.Agent
	for _, a := range c.p.Agents.All() {
		if a.Enabled {
			list = append(list, a)
		}
	}
	return list
}

func (c *connection) usable(ctx context.Context, ref domain.ModelRef) error {
	_, err := c.p.Models.Open(ctx, ref)
	if err != nil || c.p.Keys == nil || c.p.Models.Describe(ref).Offline {
		return err
	}
	return c.p.Keys.Check(ctx, ref)
}

// canLogOut reports whether a model gets its key from where a login stores it:
// only then is there something to sign out of.
func (c *connection) canLogOut() bool {
	if c.p.Keys == nil || len(c.p.Login.Args) == 0 {
		return false
	}
	for _, a := range c.servable() {
		if c.p.Keys.Forgets(a.Model) {
			return true
		}
	}
	return false
}

// logout removes the stored keys of the agents' models. Sessions stay, and
// fail at their next request until there is a key again.
func (c *connection) logout(context.Context, json.RawMessage) (jsonrpc.Task, error) {
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		for _, a := range c.servable() {
			if !c.p.Keys.Forgets(a.Model) {
				continue
			}
			if err := c.p.Keys.Forget(ctx, a.Model); err != nil {
				return jsonrpc.Reply{}, c.explain(err, "")
			}
		}
		return jsonrpc.Reply{}, nil
	}, nil
}
