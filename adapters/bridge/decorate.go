package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// SessionFlags are what flags say about sessions. A request that says it
// itself has its way.
type SessionFlags struct {
	Agent           string
	Key             string
	Label           string
	Reset           bool // the first new session starts with a fresh transcript
	RequireExisting bool
}

// decorate returns the frame of a request with what flags add to it: the same
// frame when they add nothing.
func (b *Bridge) decorate(frame []byte, m jsonrpc.Message) []byte {
	params := m.Params
	switch m.Method {
	case "session/new":
		params = b.cfg.Sessions.onNew(params, b.book.takeReset(b.cfg.Sessions.Reset))
	case "session/load", "session/resume":
		params = b.cfg.Sessions.onOpen(params)
	case "session/prompt":
		params = b.provenance(params)
	}
	if bytes.Equal(params, m.Params) {
		return frame
	}
	return with(frame, "params", params)
}

// spellings are where a request may say a thing itself: in _meta.berth, at the
// root of _meta, at the root of the params.
type spellings struct {
	berth, meta, root []string
}

func (s spellings) in(params json.RawMessage) bool {
	meta := at(params, "_meta")
	berth := at(meta, "berth")
	for _, where := range []struct {
		raw   json.RawMessage
		names []string
	}{{berth, s.berth}, {meta, s.meta}, {params, s.root}} {
		for _, name := range where.names {
			if v := at(where.raw, name); len(v) > 0 && string(v) != "null" && string(v) != `""` {
				return true
			}
		}
	}
	return false
}

// onNew is the params of session/new with what flags add.
func (f SessionFlags) onNew(params json.RawMessage, reset bool) json.RawMessage {
	key := spellings{[]string{"sessionKey"}, []string{"sessionKey", "session", "key"}, nil}
	label := spellings{[]string{"sessionLabel", "label"}, []string{"sessionLabel", "label"}, nil}
	agent := spellings{[]string{"agent"}, nil, []string{"agentAlias", "agent_alias", "agent"}}
	named := key.in(params) || label.in(params)
	if f.Agent != "" && !agent.in(params) {
		params = inBerth(params, "agent", quote(f.Agent))
	}
	if !named && f.Key != "" {
		params = inBerth(params, "sessionKey", quote(f.Key))
	}
	if !named && f.Label != "" {
		params = inBerth(params, "sessionLabel", quote(f.Label))
	}
	if reset && !(spellings{[]string{"resetSession"}, []string{"resetSession", "reset"}, nil}).in(params) {
		params = inBerth(params, "resetSession", []byte("true"))
	}
	return f.onOpen(params)
}

// onOpen is the params of session/load and session/resume with what flags add.
func (f SessionFlags) onOpen(params json.RawMessage) json.RawMessage {
	if f.RequireExisting && !(spellings{[]string{"requireExisting"}, []string{"requireExisting", "requireExistingSession"}, nil}).in(params) {
		params = inBerth(params, "requireExisting", []byte("true"))
	}
	return params
}

// inBerth sets a member of _meta.berth. Params that are no object stay what
// they are: the gateway says what is wrong with them.
func inBerth(params json.RawMessage, name string, value []byte) json.RawMessage {
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	if params[0] != '{' {
		return params
	}
	meta := objectOr(at(params, "_meta"))
	berth := objectOr(at(meta, "berth"))
	return with(params, "_meta", with(meta, "berth", with(berth, name, value)))
}

func objectOr(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return json.RawMessage(`{}`)
	}
	return raw
}

// provenance is the params of session/prompt with where the prompt comes from.
func (b *Bridge) provenance(params json.RawMessage) json.RawMessage {
	if b.cfg.Provenance == "" || len(params) == 0 || params[0] != '{' {
		return params
	}
	session := text(at(params, "sessionId"))
	var from object
	from.text("kind", "external_user")
	from.text("originSessionId", session)
	from.text("sourceChannel", "acp")
	from.text("sourceTool", "berth_bridge")
	params = inBerth(params, "provenance", from.done())
	if b.cfg.Provenance != "meta+receipt" {
		return params
	}
	receipt := fmt.Sprintf("[Source receipt]\nbridge: berth\nhost: %s\ncwd: %s\nsession: %s\n[/Source receipt]",
		b.cfg.Host, b.book.cwdOf(session), session)
	var block object
	block.text("type", "text")
	block.text("text", receipt)
	list := append([]byte{'['}, block.done()...)
	prompt := at(params, "prompt")
	switch {
	case len(prompt) > 0 && prompt[0] == '"':
		block = nil
		block.text("type", "text")
		block.set("text", prompt)
		list = append(append(list, ','), block.done()...)
	case len(prompt) > 0 && prompt[0] == '[':
		for e := range jsonrpc.Elements(prompt) {
			list = append(append(list, ','), e...)
		}
	default:
		return params
	}
	return with(params, "prompt", append(list, ']'))
}
