package openclaw

import (
	"context"
	"errors"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// obtain finds the session that is wished for, or makes it.
func (b *Bridge) obtain(ctx context.Context, w wish) (r row, made bool, notes []string, err error) {
	const what = "session/new"
	switch {
	case w.label != "":
		found, err := b.call(ctx, what, "sessions.resolve", resolveParams{Label: w.label, Agent: w.agent, AllowMissing: true})
		if err != nil {
			return r, false, nil, err
		}
		if !found.flag("ok") {
			return r, false, nil, domain.Errorf(domain.SessionNotFound, "no session has the label %q", w.label)
		}
		r, err = b.describe(ctx, what, found.text("key"))
		return r, false, nil, err
	case w.key != "":
		key := w.key
		if agent, _ := splitKey(key); agent == "" && key != "global" && key != "unknown" {
			key = keyOf(w.agent, key)
		} else if w.agent != "" && agent != "" && agent != w.agent {
			return r, false, nil, bad("the key %q belongs to agent %q, and not to %q", brief(key), agent, w.agent)
		}
		r, err = b.describe(ctx, what, key)
		if domain.CodeOf(err) != domain.SessionNotFound {
			return r, false, nil, err
		}
		if w.existing {
			return r, false, nil, err
		}
		r, notes, err = b.create(ctx, what, key, w.cwd)
		return r, err == nil, notes, err
	case w.existing:
		return r, false, nil, bad("an existing session is required, and none is named: use --session, --session-label or _meta.berth.sessionKey")
	}
	agent, err := b.ownerOf(ctx, what, w.agent)
	if err != nil {
		return r, false, nil, err
	}
	r, notes, err = b.create(ctx, what, keyOf(agent, bridgePart+b.cfg.NewID()), w.cwd)
	return r, err == nil, notes, err
}

type resolveParams struct {
	Label        string `json:"label,omitempty"`
	Agent        string `json:"agentId,omitempty"`
	AllowMissing bool   `json:"allowMissing"`
}

// ownerOf is the agent that gets a session: the one that is named, or the
// Gateway's default.
func (b *Bridge) ownerOf(ctx context.Context, what, named string) (string, error) {
	b.mu.Lock()
	known := b.agent
	b.mu.Unlock()
	if named != "" || known != "" {
		return or(named, known), nil
	}
	r, err := b.call(ctx, what, "agents.list", struct{}{})
	if err != nil {
		return "", err
	}
	if r.flag("selectionRequired") {
		var ids []string
		for a := range jsonrpc.Elements(r["agents"]) {
			ids = append(ids, fieldsOf(a).text("id"))
		}
		return "", bad("the gateway has several agents and no default: name one with --agent or _meta.berth.agent: %s", brief(strings.Join(ids, ", ")))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agent = r.text("defaultId")
	return b.agent, nil
}

type createParams struct {
	Key            string `json:"key"`
	Cwd            string `json:"cwd,omitempty"`
	IdempotencyKey string `json:"idempotencyKey"`
}

// create makes a session that works in cwd. A Gateway that does not have that
// directory, or does not let us use it, gets a session that works in the
// agent's own, and the notes say so.
func (b *Bridge) create(ctx context.Context, what, key, cwd string) (row, []string, error) {
	p := createParams{Key: key, Cwd: cwd, IdempotencyKey: b.cfg.NewID()}
	raw, err := b.gw.privileged(ctx, "sessions.create", p)
	var notes []string
	var e *RPCError
	if refusesDirectory(err) && errors.As(err, &e) {
		notes = []string{"the gateway's tools do not work in the cwd: " + brief(e.Message)}
		b.cfg.Log("%s", notes[0])
		p.Cwd, p.IdempotencyKey = "", b.cfg.NewID()
		raw, err = b.gw.privileged(ctx, "sessions.create", p)
	}
	if err != nil {
		return row{}, nil, b.worded(ctx, what, err)
	}
	made := fieldsOf(raw).text("key")
	r, err := b.describe(ctx, what, or(made, key))
	return r, notes, err
}

// refusesDirectory reports whether the Gateway would make the session, but
// not with that directory: it does not have it, or operator.admin is needed
// and not to be had.
func refusesDirectory(err error) bool {
	var e *RPCError
	if !errors.As(err, &e) {
		return false
	}
	said := strings.ToLower(e.Message)
	return e.Details.MissingScope != "" || isPairing(err) ||
		e.Code == "INVALID_REQUEST" && (strings.Contains(said, "cwd") || strings.Contains(said, "director") || strings.Contains(said, "path"))
}
