package openclawtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Run is a prompt that is being answered. Its methods are for scripts, which
// run on a goroutine of their own and end when the run is killed.
type Run struct {
	ID, Message string
	Params      json.RawMessage // of chat.send

	script  func(r *Run) // nil: the Gateway's
	g       *Gateway
	session *session
	by      *conn
	seq     int
	item    int
	whole   string // of the current message
	thought string // before it
	calls   int
	dead    chan struct{} // closed when nothing more may happen
	killed  bool
	ended   bool
	status  map[string]any // of agent.wait
}

func (g *Gateway) sendChat(c *conn, p params) (any, *fail) {
	s, f := g.known(p, "sessionKey")
	id := p.text("idempotencyKey")
	switch {
	case f != nil:
		return nil, f
	case id == "":
		return nil, invalid("idempotencyKey required")
	case g.runs[id] != nil && g.runs[id].ended:
		return map[string]any{"runId": id, "status": "ok"}, nil
	case g.runs[id] != nil:
		return map[string]any{"runId": id, "status": "in_flight"}, nil
	}
	raw, _ := json.Marshal(p)
	r := &Run{ID: id, Message: p.text("message"), Params: raw, g: g, session: s, by: c, dead: make(chan struct{})}
	g.start(r)
	return map[string]any{"runId": id, "status": "started"}, nil
}

// Recover begins a run that goes on with what a session did before the
// Gateway was started anew.
func (g *Gateway) Recover(key, id string, script func(r *Run)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.start(&Run{ID: id, Message: "[System] Go on.", g: g, session: g.sessions[key], dead: make(chan struct{}), script: script})
}

// start begins a run.
func (g *Gateway) start(r *Run) {
	id, s := r.ID, r.session
	g.runs[id] = r
	r.write(map[string]any{"role": "user", "content": r.Message, "idempotencyKey": id + ":user"})
	g.touch(s)
	g.all.Go(func() {
		defer func() { _ = recover() }() // a script that was killed
		r.event("agent", "lifecycle", map[string]any{"phase": "start"})
		switch {
		case r.script != nil:
			r.script(r)
		case g.cfg.Script != nil:
			g.cfg.Script(r)
		default:
			r.Say("You said: ", r.Message)
		}
		r.End("stop")
	})
}

// lock takes the Gateway's lock, and ends the script of a dead run.
func (r *Run) lock() {
	r.g.mu.Lock()
	if r.killed || r.ended {
		r.g.mu.Unlock()
		panic("the run is over")
	}
}

func (r *Run) kill() {
	if !r.killed {
		r.killed = true
		close(r.dead)
	}
}

// write puts an entry into the transcript.
func (r *Run) write(e map[string]any) {
	e["__openclaw"] = map[string]any{"runId": r.ID}
	if e["role"] == "user" {
		e["__openclaw"] = map[string]any{}
	}
	r.session.entries = append(r.session.entries, e)
	if e["role"] == "user" {
		r.g.tell(r.session.key, nil, "session.message", map[string]any{"sessionKey": r.session.key, "message": e}, false)
	}
}

// tell sends an event to who asked for the session's. only, if set, is the
// one connection it is for, besides those that asked for all when all is set.
func (g *Gateway) tell(key string, only *conn, name string, payload map[string]any, all bool) {
	for c := range g.conns {
		switch {
		case only != nil && c == only, only == nil && c.keys[key]:
			c.seq++
			c.send(map[string]any{"type": "event", "event": name, "payload": payload, "seq": c.seq})
		case all && c.all && c != only:
			c.seq++
			c.send(map[string]any{"type": "event", "event": "session.tool", "payload": payload, "seq": c.seq})
		}
	}
}

func (r *Run) base(more map[string]any) map[string]any {
	r.seq++
	more["runId"], more["sessionKey"], more["seq"] = r.ID, r.session.key, r.seq
	return more
}

func (r *Run) event(name, stream string, data map[string]any) {
	r.lock()
	defer r.g.mu.Unlock()
	r.g.tell(r.session.key, nil, name, r.base(map[string]any{"stream": stream, "data": data}), false)
}

// Say tells pieces of one message, each twice and with the whole so far.
func (r *Run) Say(pieces ...string) {
	for _, piece := range pieces {
		r.lock()
		if r.whole == "" {
			r.item++
		}
		r.whole += piece
		r.g.tell(r.session.key, nil, "agent", r.base(map[string]any{"stream": "assistant", "data": map[string]any{
			"text": r.whole, "delta": piece, "itemId": "item:" + strconv.Itoa(r.item),
		}}), false)
		r.g.tell(r.session.key, nil, "chat", r.base(map[string]any{
			"state": "delta", "deltaText": piece, "message": message(r.whole),
		}), false)
		r.g.mu.Unlock()
	}
}

// Chat tells pieces over the chat alone, as some Gateways do.
func (r *Run) Chat(pieces ...string) {
	for _, piece := range pieces {
		r.lock()
		r.whole += piece
		r.g.tell(r.session.key, nil, "chat", r.base(map[string]any{"state": "delta", "deltaText": piece, "message": message(r.whole)}), false)
		r.g.mu.Unlock()
	}
}

// Replace tells a whole that takes the place of what was said.
func (r *Run) Replace(whole string) {
	r.lock()
	defer r.g.mu.Unlock()
	r.whole = whole
	r.g.tell(r.session.key, nil, "agent", r.base(map[string]any{"stream": "assistant", "data": map[string]any{
		"text": whole, "delta": whole, "replace": true, "itemId": "item:" + strconv.Itoa(r.item),
	}}), false)
}

func message(text string) map[string]any {
	return map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": text}}}
}

// Think tells a thought in pieces.
func (r *Run) Think(pieces ...string) {
	whole := ""
	for _, piece := range pieces {
		whole += piece
		r.lock()
		r.thought = whole
		r.g.mu.Unlock()
		r.event("agent", "thinking", map[string]any{"text": whole, "delta": piece})
	}
}

// Plan tells the steps of a plan, each as "status: words".
func (r *Run) Plan(steps ...string) {
	list := []any{}
	for _, s := range steps {
		status, words, _ := strings.Cut(s, ": ")
		list = append(list, map[string]any{"status": status, "step": words})
	}
	r.event("agent", "plan", map[string]any{"phase": "update", "title": "Plan updated", "steps": list})
}

// Preamble tells what is said before a tool call as an item, and no text.
func (r *Run) Preamble(text string) {
	id := "commentary-" + strconv.Itoa(r.calls)
	r.event("agent", "item", map[string]any{"kind": "preamble", "phase": "end", "progressText": text, "itemId": id})
	r.lock()
	defer r.g.mu.Unlock()
	e := message(text)
	e["openclawStreamFallback"] = map[string]any{"itemId": id}
	r.write(e)
}

// settle writes the current message down.
func (r *Run) settle(stop string, more ...any) {
	content := []any{}
	if r.thought != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.thought})
		r.thought = ""
	}
	if r.whole != "" {
		content = append(content, map[string]any{"type": "text", "text": r.whole + " "}) // with the white space that is not told
	}
	content = append(content, more...)
	if len(content) > 0 {
		r.write(map[string]any{"role": "assistant", "content": content, "stopReason": stop})
	}
	r.whole = ""
}

// Tool calls a tool that brings a result.
func (r *Run) Tool(name string, args map[string]any, result string, bad bool) {
	id := r.call(name, args)
	r.result(id, name, result, bad)
}

func (r *Run) call(name string, args map[string]any) string {
	r.lock()
	defer r.g.mu.Unlock()
	r.calls++
	id := "call_" + strconv.Itoa(r.calls)
	r.settle("toolUse", map[string]any{"type": "toolCall", "id": id, "name": name, "arguments": args})
	r.g.tell(r.session.key, nil, "agent", r.base(map[string]any{"stream": "item", "data": map[string]any{
		"kind": "tool", "phase": "start", "toolCallId": id, "name": name, "title": "Use " + name,
	}}), false)
	r.tool(map[string]any{"phase": "start", "name": name, "toolCallId": id, "args": args})
	return id
}

func (r *Run) tool(data map[string]any) {
	r.g.tell(r.session.key, r.by, "agent", r.base(map[string]any{"stream": "tool", "data": data}), true)
}

func (r *Run) result(id, name, result string, bad bool) {
	r.lock()
	defer r.g.mu.Unlock()
	content := []any{map[string]any{"type": "text", "text": result}}
	r.tool(map[string]any{"phase": "result", "name": name, "toolCallId": id, "isError": bad, "result": map[string]any{"content": content}})
	r.write(map[string]any{"role": "toolResult", "toolCallId": id, "toolName": name, "content": content, "isError": bad})
}

// Exec runs a command once somebody allows it, and returns the decision.
func (r *Run) Exec(command string, decisions ...string) string {
	id := r.call("exec", map[string]any{"command": command})
	r.lock()
	r.g.last++
	a := &approval{id: fmt.Sprintf("ask-%d", r.g.last), answered: make(chan struct{}), request: map[string]any{
		"command": command, "cwd": "/ws", "host": "gateway", "sessionKey": r.session.key, "runId": r.ID, "toolCallId": id,
		"allowedDecisions": decisions, "commandAnalysis": map[string]any{"warningLines": []string{"Deletes files"}},
	}}
	r.g.asks[a.id] = a
	for c := range r.g.conns {
		if slices.Contains(c.caps, "exec-approvals") && slices.Contains(c.scopes, approvals) {
			c.seq++
			c.send(map[string]any{"type": "event", "event": "exec.approval.requested", "seq": c.seq, "payload": r.g.pending(a)})
		}
	}
	r.g.mu.Unlock()
	select {
	case <-a.answered:
	case <-r.dead:
		panic("the run is over")
	}
	r.g.mu.Lock()
	decision := a.decision
	r.g.mu.Unlock()
	r.result(id, "exec", map[bool]string{true: "denied", false: "ran"}[decision == "deny"], decision == "deny")
	return decision
}

func (g *Gateway) pending(a *approval) map[string]any {
	return map[string]any{"id": a.id, "request": a.request}
}

func (g *Gateway) listApprovals(*conn, params) (any, *fail) {
	list := []any{}
	for _, a := range g.asks {
		if a.decision == "" {
			list = append(list, g.pending(a))
		}
	}
	return list, nil
}

func (g *Gateway) resolveApproval(_ *conn, p params) (any, *fail) {
	if !g.resolve(p.text("id"), p.text("decision")) {
		return nil, invalid("unknown or expired approval id")
	}
	return map[string]any{"ok": true}, nil
}

func (g *Gateway) resolve(id, decision string) bool {
	a := g.asks[id]
	if a == nil {
		return false
	}
	allowed, _ := a.request["allowedDecisions"].([]string)
	if a.decision != "" || !slices.Contains(allowed, decision) {
		return false
	}
	a.decision = decision
	close(a.answered)
	for c := range g.conns {
		c.seq++
		c.send(map[string]any{"type": "event", "event": "exec.approval.resolved", "seq": c.seq, "payload": map[string]any{"id": id, "decision": decision}})
	}
	return true
}

// Hold waits until the channel is closed, or the run is over.
func (r *Run) Hold(until <-chan struct{}) {
	select {
	case <-until:
	case <-r.dead:
		panic("the run is over")
	}
}

// Skip leaves a number out of the events of the connections, as a Gateway
// does whose client is slow.
func (r *Run) Skip(pieces ...string) {
	r.lock()
	defer r.g.mu.Unlock()
	r.whole += strings.Join(pieces, "")
	for c := range r.g.conns {
		c.seq++
	}
}

// End ends the run in an orderly way. Later calls change nothing.
func (r *Run) End(stop string) {
	r.lock()
	defer r.g.mu.Unlock()
	last := r.whole
	r.settle(stop)
	r.session.tokens += 100
	r.over(map[string]any{"status": "ok", "runId": r.ID})
	r.g.tell(r.session.key, nil, "chat", r.base(map[string]any{"state": "final", "stopReason": stop, "message": message(last)}), false)
}

// Fail ends the run with an error, of which is told twice, as Gateways do.
func (r *Run) Fail(kind, words string) {
	r.lock()
	defer r.g.mu.Unlock()
	r.over(map[string]any{"status": "error", "error": words, "runId": r.ID})
	r.session.entries = append(r.session.entries, map[string]any{
		"role": "custom", "display": true, "content": "This turn ended before a reply: " + words, "__openclaw": map[string]any{"runId": r.ID},
	})
	for range 2 {
		p := r.base(map[string]any{"state": "error", "errorMessage": words})
		if kind != "" {
			p["errorKind"] = kind
		}
		r.g.tell(r.session.key, nil, "chat", p, false)
	}
}

func (r *Run) over(status map[string]any) {
	r.ended, r.status = true, status
	r.kill()
	r.g.touch(r.session)
}

func (g *Gateway) abort(_ *conn, p params) (any, *fail) {
	r := g.runs[p.text("runId")]
	if r == nil || r.ended {
		return map[string]any{"ok": true, "aborted": false, "runIds": []string{}}, nil
	}
	last := r.whole
	r.settle("aborted")
	r.over(map[string]any{"status": "error", "stopReason": "rpc", "runId": r.ID})
	g.tell(r.session.key, nil, "chat", r.base(map[string]any{"state": "aborted", "stopReason": "rpc", "message": message(last)}), false)
	return map[string]any{"ok": true, "aborted": true, "runIds": []string{r.ID}}, nil
}

func (g *Gateway) wait(_ *conn, p params) (any, *fail) {
	if r := g.runs[p.text("runId")]; r != nil && r.ended {
		return r.status, nil
	}
	return map[string]any{"runId": p.text("runId"), "status": "timeout"}, nil
}
