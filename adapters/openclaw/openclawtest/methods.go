package openclawtest

import (
	"encoding/json"
	"slices"
	"strings"
)

// method is what a method takes, and the scope it needs.
type method struct {
	scope  string
	params string
	serve  func(g *Gateway, c *conn, p params) (any, *fail)
}

type params map[string]json.RawMessage

func (p params) text(name string) string {
	var s string
	_ = json.Unmarshal(p[name], &s)
	return s
}

func (p params) number(name string) int {
	var n int
	_ = json.Unmarshal(p[name], &n)
	return n
}

const (
	read, write, admin, approvals = "operator.read", "operator.write", "operator.admin", "operator.approvals"
)

func methods() map[string]method {
	return map[string]method{
		"agents.list":                   {read, "", (*Gateway).agents},
		"models.list":                   {read, "", (*Gateway).models},
		"commands.list":                 {read, "sessionKey scope includeArgs", (*Gateway).commands},
		"sessions.create":               {write, "key cwd idempotencyKey agentId label model", (*Gateway).create},
		"sessions.describe":             {read, "key includeDerivedTitles", (*Gateway).describe},
		"sessions.list":                 {read, "limit offset search workspaceDir agentId archived includeDerivedTitles configuredAgentsOnly", (*Gateway).list},
		"sessions.resolve":              {read, "key label agentId allowMissing", (*Gateway).resolveSession},
		"sessions.patch":                {write, "key thinkingLevel model fastMode verboseLevel traceLevel reasoningLevel responseUsage elevatedLevel", (*Gateway).patch},
		"sessions.reset":                {admin, "key", (*Gateway).reset},
		"sessions.delete":               {admin, "key", (*Gateway).delete},
		"sessions.subscribe":            {read, "", (*Gateway).subscribeAll},
		"sessions.messages.subscribe":   {read, "key includeApprovals", (*Gateway).subscribe},
		"sessions.messages.unsubscribe": {read, "key", (*Gateway).unsubscribe},
		"chat.send":                     {write, "sessionKey message attachments thinking deliver timeoutMs systemInputProvenance systemProvenanceReceipt idempotencyKey", (*Gateway).sendChat},
		"chat.abort":                    {write, "sessionKey runId", (*Gateway).abort},
		"chat.history":                  {read, "sessionKey limit offset maxChars", (*Gateway).history},
		"agent.wait":                    {write, "runId timeoutMs", (*Gateway).wait},
		"exec.approval.list":            {approvals, "", (*Gateway).listApprovals},
		"exec.approval.resolve":         {approvals, "id decision", (*Gateway).resolveApproval},
	}
}

// answer serves one request.
func (g *Gateway) answer(c *conn, id, name string, raw json.RawMessage) {
	m, ok := methods()[name]
	if !ok {
		c.respond(id, nil, invalid("unknown method: %s", name))
		return
	}
	if f := c.lacks(m.scope); f != nil {
		c.respond(id, nil, f)
		return
	}
	if f := unknown(raw, m.params); f != nil {
		c.respond(id, nil, f)
		return
	}
	var p params
	_ = json.Unmarshal(raw, &p)
	if g.cfg.Gate != nil && name == "chat.send" {
		<-g.cfg.Gate
	}
	g.mu.Lock()
	result, f := m.serve(g, c, p)
	if f == nil {
		g.requests = append(g.requests, Request{name, raw, c.scopes})
	}
	g.mu.Unlock()
	c.respond(id, result, f)
}

// lacks refuses what is beyond the scopes of a connection.
func (c *conn) lacks(scope string) *fail {
	if slices.Contains(c.scopes, scope) || slices.Contains(c.scopes, admin) || scope == read && slices.Contains(c.scopes, write) {
		return nil
	}
	return &fail{Code: "FORBIDDEN", Message: "missing scope: " + scope, Details: map[string]any{
		"code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": []string{scope},
	}}
}

func (g *Gateway) agents(*conn, params) (any, *fail) {
	var list []any
	for _, a := range g.cfg.Agents {
		list = append(list, map[string]any{"id": a, "workspace": g.cfg.Workspace})
	}
	return map[string]any{"defaultId": g.cfg.Agents[0], "selectionRequired": g.cfg.NoDefault, "agents": list}, nil
}

func (g *Gateway) models(*conn, params) (any, *fail) {
	return map[string]any{"models": []any{
		map[string]any{"id": "small", "name": "Small", "provider": "test", "available": true},
		map[string]any{"id": "large", "name": "Large", "provider": "test", "available": true},
		map[string]any{"id": "gone", "name": "Gone", "provider": "test", "available": false},
	}}, nil
}

func (g *Gateway) commands(_ *conn, p params) (any, *fail) {
	return map[string]any{"commands": []any{
		map[string]any{"name": "help", "textAliases": []string{"/help"}, "description": "Show available commands.", "acceptsArgs": false},
		map[string]any{"name": "skill", "textAliases": []string{"/skill"}, "description": "Run a skill.", "acceptsArgs": true,
			"args": []any{map[string]any{"name": "name", "required": true}, map[string]any{"name": "input"}}},
	}}, nil
}

// canonical is a key as the Gateway keeps it.
func (g *Gateway) canonical(key string) (string, *fail) {
	agent, _, ok := strings.Cut(strings.TrimPrefix(key, "agent:"), ":")
	if !strings.HasPrefix(key, "agent:") || !ok {
		if g.cfg.NoDefault {
			return "", invalid("session key %q has no owner", key)
		}
		return "agent:" + g.cfg.Agents[0] + ":" + key, nil
	}
	if !slices.Contains(g.cfg.Agents, agent) {
		return "", invalid("Unknown agent id %q", agent)
	}
	return key, nil
}

func (g *Gateway) create(c *conn, p params) (any, *fail) {
	key, f := g.canonical(p.text("key"))
	if f != nil {
		return nil, f
	}
	cwd := p.text("cwd")
	switch {
	case cwd != "" && !strings.HasPrefix(cwd, "/"):
		return nil, invalid("sessions.create cwd must be absolute")
	case strings.HasPrefix(cwd, "/missing"):
		return nil, invalid("sessions.create cwd does not exist: %s", cwd)
	case cwd != "" && cwd != g.cfg.Workspace && !strings.HasPrefix(cwd, g.cfg.Workspace+"/"):
		if f := c.lacks(admin); f != nil {
			return nil, f
		}
	}
	s := g.sessions[key]
	if s == nil {
		s = g.add(key, cwd)
	}
	return map[string]any{"ok": true, "key": key, "sessionId": s.id}, nil
}

func (g *Gateway) add(key, cwd string) *session {
	g.last++
	s := &session{key: key, id: "s-" + key, cwd: cwd, model: "small", settings: map[string]any{}, updated: int64(1_800_000_000_000 + g.last)}
	g.sessions[key] = s
	return s
}

// Put makes a session, as another client would.
func (g *Gateway) Put(key, cwd, label string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(key, cwd).label = label
}

func (g *Gateway) touch(s *session) {
	g.last++
	s.updated = int64(1_800_000_000_000 + g.last)
}

func (g *Gateway) row(s *session) map[string]any {
	agent, _, _ := strings.Cut(strings.TrimPrefix(s.key, "agent:"), ":")
	r := map[string]any{
		"key": s.key, "agentId": agent, "sessionId": s.id, "kind": "direct", "updatedAt": s.updated,
		"modelProvider": "test", "model": s.model, "thinkingOptions": []string{"off", "low", "high"}, "thinkingDefault": "low",
		"contextTokens": 1000, "totalTokens": s.tokens, "totalTokensFresh": s.tokens > 0, "estimatedCostUsd": 0.25,
	}
	if s.cwd != "" {
		r["spawnedCwd"] = s.cwd
	}
	if s.label != "" {
		r["label"] = s.label
	}
	for k, v := range s.settings {
		r[k] = v
	}
	return r
}

func (g *Gateway) describe(_ *conn, p params) (any, *fail) {
	key, f := g.canonical(p.text("key"))
	if f != nil {
		return map[string]any{"session": nil}, nil
	}
	if s := g.sessions[key]; s != nil {
		return map[string]any{"session": g.row(s)}, nil
	}
	return map[string]any{"session": nil}, nil
}

func (g *Gateway) list(_ *conn, p params) (any, *fail) {
	var all []*session
	for _, s := range g.sessions {
		agent, _, _ := strings.Cut(strings.TrimPrefix(s.key, "agent:"), ":")
		if strings.Contains(s.key, p.text("search")) && (p.text("workspaceDir") == "" || p.text("workspaceDir") == s.cwd) &&
			(p.text("agentId") == "" || p.text("agentId") == agent) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return int(b.updated - a.updated) })
	from := min(p.number("offset"), len(all))
	to := min(from+p.number("limit"), len(all))
	rows := []any{}
	for _, s := range all[from:to] {
		rows = append(rows, g.row(s))
	}
	return map[string]any{"sessions": rows, "hasMore": to < len(all), "totalCount": len(all)}, nil
}

func (g *Gateway) resolveSession(_ *conn, p params) (any, *fail) {
	for _, s := range g.sessions {
		if l := p.text("label"); l != "" && s.label == l {
			return map[string]any{"ok": true, "key": s.key}, nil
		}
	}
	if string(p["allowMissing"]) == "true" {
		return map[string]any{"ok": false}, nil
	}
	return nil, invalid("No session found")
}

func (g *Gateway) known(p params, name string) (*session, *fail) {
	key, f := g.canonical(p.text(name))
	if f != nil {
		return nil, f
	}
	if s := g.sessions[key]; s != nil {
		return s, nil
	}
	return nil, invalid("session not found: %s", p.text(name))
}

func (g *Gateway) patch(c *conn, p params) (any, *fail) {
	s, f := g.known(p, "key")
	if f != nil {
		return nil, f
	}
	for name, raw := range p {
		var v any
		_ = json.Unmarshal(raw, &v)
		switch name {
		case "key":
		case "model":
			s.model = strings.TrimPrefix(p.text(name), "test/")
		case "thinkingLevel":
			if v != nil && !slices.Contains([]any{"off", "low", "high"}, v) {
				return nil, invalid("invalid thinkingLevel (use off|low|high)")
			}
			s.settings[name] = v
		case "fastMode":
			s.settings[name] = v
		default:
			if f := c.lacks(admin); f != nil {
				return nil, f
			}
			s.settings[name] = v
		}
	}
	return map[string]any{"ok": true}, nil
}

func (g *Gateway) reset(_ *conn, p params) (any, *fail) {
	s, f := g.known(p, "key")
	if f == nil {
		s.entries = nil
	}
	return map[string]any{"ok": true}, f
}

func (g *Gateway) delete(_ *conn, p params) (any, *fail) {
	s, f := g.known(p, "key")
	if f == nil {
		delete(g.sessions, s.key)
	}
	return map[string]any{"ok": true}, f
}

func (g *Gateway) subscribeAll(c *conn, _ params) (any, *fail) {
	c.all = true
	return map[string]any{"subscribed": true}, nil
}

func (g *Gateway) subscribe(c *conn, p params) (any, *fail) {
	c.keys[p.text("key")] = true
	return map[string]any{"subscribed": true}, nil
}

func (g *Gateway) unsubscribe(c *conn, p params) (any, *fail) {
	delete(c.keys, p.text("key"))
	return map[string]any{"subscribed": false}, nil
}

func (g *Gateway) history(_ *conn, p params) (any, *fail) {
	key, f := g.canonical(p.text("sessionKey"))
	if f != nil {
		return nil, f
	}
	info := map[string]any{"hasActiveRun": false, "activeRunIds": []string{}}
	out := map[string]any{"messages": []any{}, "hasMore": false, "sessionInfo": info}
	s := g.sessions[key]
	if s == nil {
		return out, nil
	}
	for _, r := range g.runs {
		if r.session == s && !r.ended {
			info["hasActiveRun"], info["activeRunIds"] = true, []string{r.ID}
			out["inFlightRun"] = map[string]any{"runId": r.ID, "text": ""}
		}
	}
	to := max(len(s.entries)-p.number("offset"), 0)
	from := max(to-p.number("limit"), 0)
	out["messages"] = s.entries[from:to]
	if from > 0 {
		out["hasMore"], out["nextOffset"] = true, len(s.entries)-from
	}
	return out, nil
}
