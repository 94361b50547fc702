package openclaw

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// openedResult is the answer to session/new, load and resume.
type openedResult struct {
	SessionID domain.SessionID    `json:"sessionId,omitempty"`
	Modes     *modes              `json:"modes,omitempty"`
	Options   []option            `json:"configOptions"`
	Meta      metaOf[openedBerth] `json:"_meta"`
}

type openedBerth struct {
	SessionID domain.SessionID `json:"sessionId"`
	Key       string           `json:"key"`
	Agent     string           `json:"agent,omitempty"`
	Label     string           `json:"label,omitempty"`
	Model     string           `json:"model,omitempty"`
	Created   bool             `json:"created"`
	// WorkspaceDir is where the Gateway's tools work; not the cwd when Notes
	// say why.
	WorkspaceDir string   `json:"workspaceDir,omitempty"`
	Notes        []string `json:"notes,omitempty"`
}

// wish is what a request, its _meta and the flags say about a session.
type wish struct {
	key, label, agent string
	reset, existing   bool
	cwd               string
}

// wished reads it: _meta comes before flags, and a label before a key.
func (b *Bridge) wished(p fields) (wish, error) {
	w := wish{cwd: p.text("cwd")}
	if !isAbsolute(w.cwd) {
		return w, bad("cwd must be an absolute path")
	}
	for server := range jsonrpc.Elements(p["mcpServers"]) {
		return w, bad("a gateway has no MCP servers for one session (%s): set them up at the gateway, and send an empty mcpServers", brief(fieldsOf(server).text("name")))
	}
	meta := p.in("_meta")
	own := meta.in("berth")
	f := b.cfg.Sessions
	w.label = or(own.first("sessionLabel", "label"), meta.first("sessionLabel", "label"))
	w.key = or(own.first("sessionKey"), meta.first("sessionKey", "session", "key"))
	w.agent = or(own.first("agent"), or(p.first("agentAlias", "agent_alias", "agent"), f.Agent))
	w.existing = f.RequireExisting
	for _, m := range []fields{meta, own} {
		for _, n := range []string{"requireExistingSession", "requireExisting"} {
			if m.has(n) {
				w.existing = m.flag(n)
			}
		}
		for _, n := range []string{"reset", "resetSession"} {
			if m.has(n) {
				w.reset = m.flag(n)
			}
		}
	}
	return w, nil
}

// asksReset reports whether a request says itself whether to reset.
func asksReset(p fields) bool {
	meta := p.in("_meta")
	return meta.has("reset") || meta.has("resetSession") || meta.in("berth").has("resetSession")
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// isAbsolute knows the absolute paths of all systems: the Gateway's may be
// another than ours.
func isAbsolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\\`) ||
		len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/')
}

// newSession opens the session that the request or a flag names, or makes one.
func (b *Bridge) newSession(ctx context.Context, p fields) (jsonrpc.Reply, error) {
	w, err := b.wished(p)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	if w.key == "" && w.label == "" {
		w.key, w.label = b.cfg.Sessions.Key, b.cfg.Sessions.Label
	}
	first := b.firstReset(true)
	if b.cfg.Sessions.Reset && first && !asksReset(p) {
		w.reset = true
	}
	reply, err := b.openNew(ctx, w)
	if first && err != nil {
		b.firstReset(false) // the next one is the first
	}
	return reply, err
}

// openNew opens a session that has no id that the editor knows.
func (b *Bridge) openNew(ctx context.Context, w wish) (jsonrpc.Reply, error) {
	r, made, notes, err := b.obtain(ctx, w)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	if w.reset && !made {
		if err := b.reset(ctx, "session/new", r.key); err != nil {
			return jsonrpc.Reply{}, err
		}
		if r, err = b.describe(ctx, "session/new", r.key); err != nil {
			return jsonrpc.Reply{}, err
		}
	}
	return b.present(ctx, w, r, made, notes, true)
}

// firstReset notes whether a session was opened, and reports whether none was.
func (b *Bridge) firstReset(opened bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := !b.wasReset
	b.wasReset = opened
	return first
}

// load opens a session and tells what has happened in it.
func (b *Bridge) load(ctx context.Context, p fields) (jsonrpc.Reply, error) {
	return b.reopen(ctx, "session/load", p, true)
}

// resume opens a session and tells nothing.
func (b *Bridge) resume(ctx context.Context, p fields) (jsonrpc.Reply, error) {
	return b.reopen(ctx, "session/resume", p, false)
}

func (b *Bridge) reopen(ctx context.Context, what string, p fields, replay bool) (jsonrpc.Reply, error) {
	id := p.text("sessionId")
	if id == "" {
		return jsonrpc.Reply{}, bad("sessionId is required and must be a string")
	}
	w, err := b.wished(p)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	r, err := b.find(ctx, what, id)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	if w.reset {
		if err := b.reset(ctx, what, r.key); err != nil {
			return jsonrpc.Reply{}, err
		}
	}
	var notes []string
	if r.cwd != "" && path.Clean(r.cwd) != path.Clean(w.cwd) {
		notes = []string{"the gateway's tools work in " + r.cwd + ", where the session was made"}
	}
	known := b.of(r.key) != nil
	s := b.keep(r.key, w.cwd, r)
	if replay {
		if err := b.replay(ctx, what, s); err != nil {
			if !known {
				b.forget(s)
				b.unobserve(s)
			}
			return jsonrpc.Reply{}, err
		}
	}
	return b.present(ctx, w, r, false, notes, false)
}

func (b *Bridge) reset(ctx context.Context, what, key string) error {
	_, err := b.privileged(ctx, what, "sessions.reset", keyParams{Key: key})
	return err
}

// present registers an open session, asks for its events and makes the
// answer. What the editor should know besides follows it when the session is
// new to it, and precedes it otherwise.
func (b *Bridge) present(ctx context.Context, w wish, r row, made bool, notes []string, fresh bool) (jsonrpc.Reply, error) {
	s := b.keep(r.key, w.cwd, r)
	b.watch(ctx, s)
	agent, _ := splitKey(r.key)
	out := openedResult{
		Modes: r.modes(), Options: r.options(b.knownModels(ctx)),
		Meta: metaOf[openedBerth]{openedBerth{
			SessionID: s.id, Key: r.key, Agent: or(r.agent, agent), Label: r.label, Model: r.model,
			Created: made, WorkspaceDir: r.cwd, Notes: notes,
		}},
	}
	if fresh {
		out.SessionID = s.id
		return jsonrpc.Reply{Result: out, Then: func(ctx context.Context) { b.introduce(ctx, s, r) }}, nil
	}
	b.introduce(ctx, s, r)
	return jsonrpc.Reply{Result: out}, nil
}

// introduce tells the editor the state of a session.
func (b *Bridge) introduce(ctx context.Context, s *session, r row) {
	b.tellRow(ctx, s, r)
	b.tellCommands(ctx, s)
}

type watchParams struct {
	Key string `json:"key"`
}

// watch asks the Gateway for the events of a session. They end with the
// connection; reattach asks again.
func (b *Bridge) watch(ctx context.Context, s *session) {
	l, err := b.gw.link(ctx)
	if err == nil {
		err = s.watch(ctx, l)
	}
	if err != nil {
		b.cfg.Log("the events of %s: %v", s.key, err)
	}
}

// watch asks for the session's events on a connection, once. What runs before
// the Gateway has answered may be told to nobody.
func (s *session) watch(ctx context.Context, l *link) error {
	s.mu.Lock()
	done := s.watched == l
	s.mu.Unlock()
	if done {
		return nil
	}
	if _, err := l.call(ctx, "sessions.messages.subscribe", watchParams{s.key}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched = l
	return nil
}

// rawOf marshals what cannot fail.
func rawOf(v any) json.RawMessage {
	raw, _ := json.Marshal(v)
	return raw
}
