package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// watch holds every frame of a scene against what always applies:
//
//   - it has the shape of the protocol, no member besides, and fits the
//     published schema where one was named
//   - one response for each request, none for anything else
//   - -32000 means that signing in is required and nothing else
//   - an update names a session the client knows
//   - a tool call is announced once, settled once, and before its turn ends
//   - nothing of a turn comes after its response, nothing at all after a load's
type watch struct {
	signIn  bool
	broken  []string
	clients map[string]*link
}

// link is what the watch knows of one connection.
type link struct {
	checker  *acp1.Checker
	open     map[string]asked // the client's requests without an answer, by id
	known    map[string]bool  // sessions
	calls    map[string]string
	settled  map[string]string // session → what ended last, until the client speaks of it
	nonsense bool              // the client sent what may be no message
}

type asked struct{ method, session string }

func newWatch(signIn bool) *watch { return &watch{signIn: signIn, clients: map[string]*link{}} }

func (w *watch) report(format string, args ...any) {
	w.broken = append(w.broken, fmt.Sprintf(format, args...))
}

// reset forgets a client's connection, because a new one begins.
func (w *watch) reset(client string) { delete(w.clients, client) }

func (w *watch) frame(f transcript.Frame) {
	l := w.clients[f.Client]
	if l == nil {
		l = &link{
			checker: acp1.NewChecker(), open: map[string]asked{}, known: map[string]bool{},
			calls: map[string]string{}, settled: map[string]string{},
		}
		w.clients[f.Client] = l
	}
	m, err := jsonrpc.Parse(f.Data)
	if f.Dir == transcript.ToAgent {
		l.checker.Client(f.Data)
		l.fromClient(m, err)
		return
	}
	if err := l.checker.Agent(f.Data); err != nil {
		w.report("shape: %v in %.300s", err, f.Data)
	}
	if err != nil {
		return // said by the checker
	}
	method := m.Method
	if m.Kind == jsonrpc.Response {
		method = l.open[string(m.ID)].method
	}
	if schema != nil {
		for _, fault := range schema.faults(m, method) {
			w.report("published schema: %s in %.300s", fault, f.Data)
		}
	}
	switch {
	case m.Kind == jsonrpc.Response:
		w.response(l, m, f)
	case m.Method == "session/update":
		w.update(l, m, f)
	}
}

func (l *link) fromClient(m jsonrpc.Message, err error) {
	if err != nil || m.Kind == jsonrpc.Response {
		l.nonsense = l.nonsense || err != nil
		return
	}
	sid := text(m.Params, "sessionId")
	delete(l.settled, sid)
	if m.Kind != jsonrpc.Request {
		return
	}
	if _, twice := l.open[string(m.ID)]; twice {
		l.nonsense = true
		return
	}
	l.open[string(m.ID)] = asked{m.Method, sid}
	if m.Method == "session/load" || m.Method == "session/resume" {
		l.known[sid] = true
	}
}

func (w *watch) response(l *link, m jsonrpc.Message, f transcript.Frame) {
	if m.Error != nil && m.Error.Code == jsonrpc.CodeAuthRequired && !w.signIn {
		w.report("-32000 where nobody has to sign in: %.300s", f.Data)
	}
	req, ok := l.open[string(m.ID)]
	if !ok {
		if !l.nonsense {
			w.report("a response that answers nothing: %.300s", f.Data)
		}
		return
	}
	delete(l.open, string(m.ID))
	switch req.method {
	case "session/new":
		l.known[text(m.Result, "sessionId")] = true
	case "session/prompt", "session/load":
		if m.Error != nil && req.method == "session/load" || l.busy(req.session) {
			return
		}
		l.settled[req.session] = req.method
		for key, status := range l.calls {
			if strings.HasPrefix(key, req.session+" ") && status != "completed" && status != "failed" {
				w.report("call %s is %q when the %s is answered", key, status, req.method)
			}
		}
	}
}

// busy reports whether a prompt or a load of the session has no answer yet.
func (l *link) busy(sid string) bool {
	for _, r := range l.open {
		if r.session == sid && (r.method == "session/prompt" || r.method == "session/load") {
			return true
		}
	}
	return false
}

// ofTurns are the kinds of update that belong to a turn.
var ofTurns = []string{"agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan"}

func (w *watch) update(l *link, m jsonrpc.Message, f transcript.Frame) {
	sid, kind := text(m.Params, "sessionId"), text(m.Params, "update", "sessionUpdate")
	if !l.known[sid] {
		w.report("an update of a session the client was not told of: %.300s", f.Data)
	}
	if after := l.settled[sid]; after == "session/load" || after != "" && slices.Contains(ofTurns, kind) {
		w.report("an update follows the response of %s: %.300s", after, f.Data)
	}
	if kind != "tool_call" && kind != "tool_call_update" {
		return
	}
	key, status := sid+" "+text(m.Params, "update", "toolCallId"), text(m.Params, "update", "status")
	was, announced := l.calls[key]
	switch {
	case kind == "tool_call" && announced && !l.loading(sid):
		w.report("call %s was announced twice", key)
	case kind == "tool_call_update" && !announced:
		w.report("an update of call %s, which was not announced", key)
	case kind == "tool_call_update" && (was == "completed" || was == "failed"):
		w.report("an update of call %s after its final status", key)
	}
	if status == "" {
		if status = was; kind == "tool_call" {
			status = "pending"
		}
	}
	l.calls[key] = status
}

func (l *link) loading(sid string) bool {
	for _, r := range l.open {
		if r == (asked{"session/load", sid}) {
			return true
		}
	}
	return false
}

// finish reports requests that were never answered, unless the connection was
// cut.
func (w *watch) finish(cut bool) []string {
	for name, l := range w.clients {
		for id, r := range l.open {
			if !cut {
				w.report("client %q: request %s (%s) has no response", name, id, r.method)
			}
		}
	}
	return w.broken
}

// text returns a string inside a JSON value, "" when there is none.
func text(raw json.RawMessage, path ...string) string {
	s, _ := find(raw, path...).(string)
	return s
}

// find returns a value inside a JSON value, nil when there is none. Numbers
// keep their digits.
func find(raw json.RawMessage, path ...string) any { return in(decode(raw), path...) }

// in returns a value inside decoded JSON, nil when there is none.
func in(value any, path ...string) any {
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}
