package acp1

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// newSession serves session/new.
func (c *connection) newSession(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	p := objectOf(params)
	req, err := c.newSessionRequest(p)
	if err != nil {
		return nil, err
	}
	servers, err := mcpServers(p["mcpServers"], c.p.Rights)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		req.Answered = jsonrpc.Answered(ctx)
		opened, err := c.p.Sessions.New(ctx, c.client, req)
		if err != nil {
			return jsonrpc.Reply{}, c.explain(err, "")
		}
		opened.Notes = append(opened.Notes, servers...)
		// A load that follows comes after all that is sent here.
		c.asked.add(opened.Session.ID, openRequest{answered: jsonrpc.Answered(ctx)})
		result := openedResult{SessionID: opened.Session.ID, Meta: openedMeta(opened)}
		if c.state().zeroclaw() {
			result.WorkspaceDir = opened.Session.Cwd
		}
		// A client learns of the session by the response, so everything else
		// about it comes after.
		return jsonrpc.Reply{Result: result, Then: c.remarks(opened)}, nil
	}, nil
}

// newSessionRequest reads what session/new asks for.
func (c *connection) newSessionRequest(p object) (domain.NewSession, error) {
	req := domain.NewSession{FallbackAgent: c.p.Agent, Client: clientName(c.state().info)}
	var err error
	if req.Dirs, err = c.directories(p); err != nil {
		return req, err
	}
	if req.Agent, err = c.agentParam(p); err != nil {
		return req, err
	}
	m, err := readMeta(p)
	if err != nil {
		return req, err
	}
	if req.Agent == "" {
		req.Agent = m.agent
	}
	req.Key, req.Label, req.Reset, req.RequireExisting, req.Takeover = m.key, m.label, m.reset, m.requireExisting, m.takeover
	return req, nil
}

// agentParam reads the agent's alias from the root of the params. The first
// spelling that is present counts; a blank one means that none is named. What
// is not a string is refused, except that ZeroClaw counts it as blank.
func (c *connection) agentParam(p object) (string, error) {
	name, raw := p.first("agentAlias", "agent_alias", "agent")
	alias, ok := stringOf(raw)
	if !ok && !absent(raw) && !c.state().zeroclaw() {
		return "", domain.Errorf(domain.InvalidArgument, "%s must be a string: the alias of an agent", name)
	}
	return strings.TrimSpace(alias), nil
}

func clientName(i domain.ClientInfo) string {
	return strings.TrimSpace(i.Name + " " + i.Version)
}

// sessionMeta is what the _meta of session/new, load and resume may ask for.
type sessionMeta struct {
	agent           string
	key             string
	label           string
	reset           bool
	requireExisting bool
	takeover        bool
}

// readMeta reads _meta.berth, then the spellings OpenClaw's clients put at the
// root of _meta. Ours are read strictly; at the root, where keys belong to
// everybody, what does not fit is somebody else's.
func readMeta(p object) (sessionMeta, error) {
	root := p.in("_meta")
	berth := root.in("berth")
	for _, name := range []string{"agent", "sessionKey", "sessionLabel", "label"} {
		if _, ok := stringOf(berth[name]); !ok && !absent(berth[name]) {
			return sessionMeta{}, domain.Errorf(domain.InvalidArgument, "_meta.berth.%s must be a string", name)
		}
	}
	for _, name := range []string{"resetSession", "requireExisting", "takeover"} {
		if k := kindOf(berth[name]); k != 't' && k != 'f' && !absent(berth[name]) {
			return sessionMeta{}, domain.Errorf(domain.InvalidArgument, "_meta.berth.%s must be true or false", name)
		}
	}
	return sessionMeta{
		agent:           berth.word("agent"),
		key:             oneOf(berth.word("sessionKey"), root.word("sessionKey", "session", "key")),
		label:           oneOf(berth.word("sessionLabel", "label"), root.word("sessionLabel", "label")),
		reset:           decided(berth, root, "resetSession", "reset"),
		requireExisting: decided(berth, root, "requireExisting", "requireExistingSession"),
		takeover:        berth.flag("takeover"),
	}, nil
}

// word returns the first of the names that is a string and not blank, trimmed.
func (o object) word(names ...string) string {
	for _, n := range names {
		if s := strings.TrimSpace(o.text(n)); s != "" {
			return s
		}
	}
	return ""
}

func oneOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// decided returns the first boolean found: name in berth, then name and its
// alias at the root. A false is an answer too.
func decided(berth, root object, name, alias string) bool {
	for _, raw := range []json.RawMessage{berth[name], root[name], root[alias]} {
		if k := kindOf(raw); k == 't' || k == 'f' {
			return k == 't'
		}
	}
	return false
}
