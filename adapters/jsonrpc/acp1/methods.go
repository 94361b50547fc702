// Package acp1 is version 1 of the Agent Client Protocol over a JSON-RPC peer:
// it turns wire messages into calls of the services and domain updates back
// into wire messages. Nothing of the protocol is known anywhere else.
//
// A connection is served by Serve. Each inbound method has a two-phase
// handler (see jsonrpc.Admit): what decides the fate of the next message
// happens on the read goroutine, in wire order; what may block happens in the
// task. Outbound, client is the connection as ports.Client: updates,
// permission requests and the editor's files.
//
// Two dialects share the methods. "acp" is the published schema: whatever we
// add stands in _meta.berth. "zeroclaw" is what ZeroClaw's own clients expect:
// its extra fields stand at the root of results and its errors have other
// numbers. initialize fixes the dialect of a connection.
//
// Where to find things: initialize.go negotiation; auth.go sign-in; new.go,
// open.go, list.go, end.go, event.go the sessions; prompt.go prompt and
// cancel; params.go and content.go reading; updates.go and encode.go writing;
// attach.go what clients share; rights.go what they may; client.go,
// permission.go, workspace.go the client; unimplemented.go what we
// refuse and why; check.go the strict reader that tests hold against every
// frame we send.
package acp1

import (
	"context"
	"encoding/json"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// The methods by name, as far as more than one file needs them.
const (
	methodNew        = "session/new"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodList       = "session/list"
	methodDelete     = "session/delete"
	methodUpdate     = "session/update"
	methodPermission = "session/request_permission"
	methodReadFile   = "fs/read_text_file"
	methodWriteFile  = "fs/write_text_file"
	methodAwait      = "_berth/session/await"
	methodObserve    = "_berth/session/observe"
	methodUnobserve  = "_berth/session/unobserve"
	methodQueue      = "_berth/session/queue"
)

// Method finds an inbound method. Those whose capability was not advertised
// are not there.
func (c *connection) Method(name string) (jsonrpc.Method, bool) {
	if c.onlyObserves() && !observes(name) {
		return jsonrpc.Method{Admit: beyondRights(name)}, true
	}
	switch name {
	case "initialize":
		return jsonrpc.Method{Admit: c.initialize, Flags: jsonrpc.Opens}, true
	case "authenticate":
		if c.state().zeroclaw() {
			return jsonrpc.Method{}, false // it advertises no way to sign in
		}
		return jsonrpc.Method{Admit: c.authenticate}, true
	case "logout":
		if c.state().logout {
			return jsonrpc.Method{Admit: c.logout}, true
		}
	case methodNew:
		return jsonrpc.Method{Admit: c.newSession}, true
	case "session/prompt":
		return jsonrpc.Method{Admit: c.named(c.prompt)}, true
	case "session/cancel":
		return jsonrpc.Method{Admit: c.named(c.cancel), Notify: c.named(c.cancel)}, true
	case "session/close":
		return jsonrpc.Method{Admit: c.named(c.closeSession)}, true
	case "session/stop":
		return jsonrpc.Method{Admit: c.named(c.stopSession)}, true
	case methodAwait:
		return jsonrpc.Method{Admit: c.named(c.await)}, true
	case methodObserve:
		return jsonrpc.Method{Admit: c.named(c.observe)}, true
	case methodUnobserve:
		return jsonrpc.Method{Admit: c.named(c.unobserve)}, true
	case methodUpdate, "session/event":
		return jsonrpc.Method{Admit: c.named(c.event), Notify: c.named(c.event)}, true
	case methodLoad, methodResume, methodList, methodDelete:
		return c.stored(name)
	}
	if reason, ok := unimplemented(name); ok {
		return jsonrpc.Method{Admit: refuse(name, reason)}, true
	}
	return jsonrpc.Method{}, false
}

// stored finds a method that needs sessions to outlive the process.
func (c *connection) stored(name string) (jsonrpc.Method, bool) {
	if !c.state().durable {
		if c.state().zeroclaw() && (name == methodLoad || name == methodResume) {
			return jsonrpc.Method{Admit: c.named(noStore)}, true
		}
		return jsonrpc.Method{}, false
	}
	switch name {
	case methodLoad:
		return jsonrpc.Method{Admit: c.named(c.load)}, true
	case methodResume:
		return jsonrpc.Method{Admit: c.named(c.resume)}, true
	case methodDelete:
		return jsonrpc.Method{Admit: c.named(c.deleteSession)}, true
	}
	return jsonrpc.Method{Admit: c.list}, true
}

// noStore answers load and resume where nothing is kept, the way ZeroClaw's
// clients expect it.
func noStore(_ context.Context, id domain.SessionID, _ object) (jsonrpc.Task, error) {
	return nil, domain.Errorf(domain.SessionNotFound,
		"session %s cannot be opened: this agent keeps no sessions; start a new one", id)
}

// sessionAdmit is the first phase of a method that names a session.
type sessionAdmit func(ctx context.Context, id domain.SessionID, p object) (jsonrpc.Task, error)

// named makes a method of fn: it reads the session id, and gives every error
// of both phases the id as data.sessionId.
func (c *connection) named(fn sessionAdmit) jsonrpc.Admit {
	return func(ctx context.Context, params json.RawMessage) (jsonrpc.Task, error) {
		p := objectOf(params)
		id, err := p.sessionID()
		if err != nil {
			return nil, err
		}
		task, err := fn(ctx, id, p)
		if err != nil {
			return nil, c.explain(err, id)
		}
		if task == nil {
			return nil, nil
		}
		return func(ctx context.Context) (jsonrpc.Reply, error) {
			reply, err := task(ctx)
			return reply, c.explain(err, id)
		}, nil
	}
}
