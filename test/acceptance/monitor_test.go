package acceptance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// monitor watches the frames of one run for the invariants that hold whatever
// a script says:
//
//	I1  one response per request, none for notifications
//	I2  no update of a turn after its response
//	I3  a cancel that was read while a turn ran is never lost
//	I4  a cancelled turn is a result, never an error
//	I5  the turns of a session are answered in order
//	I6  no update names a session the client was not told of
//	I7  every announced call has a final status before the response, and one only;
//	    every compaction likewise
//	I8  nothing follows the response of a load
//	I10 every frame is one JSON-RPC message in the protocol's own shape
//
// I9, that nothing is left running, is checked where a run ends.
type monitor struct {
	mu      sync.Mutex // frames of one client come while another connects
	broken  []string
	clients map[string]*conversation
	exact   bool // time is fake: between two instants everything has happened
}

// conversation is what the monitor knows of one connection.
type conversation struct {
	checker  *acp1.Checker
	zeroclaw bool
	requests map[string]*request // of the client, open, by id
	answered map[string]int
	known    map[string]bool // sessions
	sessions map[string]*session
	raw      bool // the client sent something that may be no message
}

type request struct {
	method  string
	session string
	sent    time.Time
	order   int
}

type session struct {
	prompts []*request // open, in the order of the wire
	cancel  time.Time  // of the newest cancel
	calls   map[string]string
	shrinks map[string]string // compactions that were announced, and their status
	settled bool              // the last answer of a turn or a load is out and the client has sent nothing since
	why     string            // what settled it
	// shared says that turns of other clients are told here, or were begun on
	// another connection: they end without an answer, and what came before the
	// client had or after it lost the session was told to others.
	shared bool
}

func newMonitor(exact bool) *monitor {
	return &monitor{clients: map[string]*conversation{}, exact: exact}
}

func (m *monitor) report(rule, format string, args ...any) {
	m.broken = append(m.broken, rule+": "+fmt.Sprintf(format, args...))
}

// message is any JSON-RPC message.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// reset forgets a client's connection, because a new one begins.
func (m *monitor) reset(client string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clients, client)
}

func (m *monitor) frame(f transcript.Frame) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clients[f.Client]
	if c == nil {
		c = &conversation{
			checker: acp1.NewChecker(), requests: map[string]*request{}, answered: map[string]int{},
			known: map[string]bool{}, sessions: map[string]*session{},
		}
		m.clients[f.Client] = c
	}
	if f.Dir == transcript.ToAgent {
		c.checker.Client(f.Data)
		m.fromClient(c, f)
		return
	}
	if err := c.checker.Agent(f.Data); err != nil {
		m.report("I10", "%v in %.300s", err, f.Data)
	}
	m.fromAgent(c, f)
}

func (c *conversation) session(id string) *session {
	s := c.sessions[id]
	if s == nil {
		s = &session{calls: map[string]string{}, shrinks: map[string]string{}}
		c.sessions[id] = s
	}
	return s
}

// longest is the frame beyond which the monitor does not count on an answer by
// id: a case may set the agent's limit as low as this.
const longest = 64 << 10

func (m *monitor) fromClient(c *conversation, f transcript.Frame) {
	var msg message
	if len(f.Data) > longest {
		c.raw = true
		return
	}
	if m, err := jsonrpc.Parse(f.Data); err != nil {
		c.raw = c.raw || m.Kind != jsonrpc.Response
		return
	}
	if json.Unmarshal(f.Data, &msg) != nil || msg.Method == "" {
		return // a response
	}
	var p struct {
		SessionID  string `json:"sessionId"`
		SessionID2 string `json:"session_id"`
		Meta       struct {
			Berth struct {
				Takeover bool `json:"takeover"`
			} `json:"berth"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(msg.Params, &p)
	id := p.SessionID
	if id == "" {
		id = p.SessionID2
	}
	if id != "" {
		s := c.session(id)
		s.settled = false
		if msg.Method == "session/cancel" {
			s.cancel = f.Time
		}
	}
	if msg.ID == nil {
		return
	}
	r := &request{method: msg.Method, session: id, sent: f.Time, order: len(c.answered) + len(c.requests)}
	if c.requests[string(msg.ID)] != nil {
		c.raw = true // the client repeats an open id; the second one is an error
		return
	}
	c.requests[string(msg.ID)] = r
	switch msg.Method {
	case "session/prompt":
		s := c.session(id)
		s.prompts = append(s.prompts, r)
	case "session/load", "session/resume":
		c.known[id] = true
		if p.Meta.Berth.Takeover {
			m.taken(c, id)
		}
		c.session(id).shared = msg.Method == "session/resume" // it goes on where another connection was
	case "_berth/session/observe":
		c.known[id], c.session(id).shared = true, true
	}
}

// taken notes that other connections lose a session, if they had it.
func (m *monitor) taken(by *conversation, id string) {
	for _, c := range m.clients {
		if c != by && c.known[id] {
			c.session(id).shared = true
		}
	}
}

// opened follows the answer to a request that opened a session, and reports
// whether a turn that another connection began runs in it.
func (m *monitor) opened(c *conversation, id string, result json.RawMessage) bool {
	var res struct {
		Meta struct {
			Berth struct {
				Running string `json:"running"`
			} `json:"berth"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(result, &res)
	m.taken(c, id)
	s := c.session(id)
	s.shared = res.Meta.Berth.Running != "" && !c.open(id, "session/prompt")
	return s.shared
}

func (m *monitor) fromAgent(c *conversation, f transcript.Frame) {
	var msg message
	if err := json.Unmarshal(f.Data, &msg); err != nil || msg.JSONRPC != "2.0" {
		m.report("I10", "not a JSON-RPC message: %.200s", f.Data)
		return
	}
	switch {
	case msg.Method == "session/update":
		m.update(c, msg, f)
	case msg.Method != "":
	default:
		m.response(c, msg, f)
	}
}

func (m *monitor) response(c *conversation, msg message, f transcript.Frame) {
	id := string(msg.ID)
	r := c.requests[id]
	if r == nil {
		if !c.raw {
			m.report("I1", "a response that answers nothing: %.200s", f.Data)
		}
		return
	}
	delete(c.requests, id)
	c.answered[id]++
	switch r.method {
	case "session/new", "session/load", "session/resume":
		var res struct {
			SessionID string `json:"sessionId"`
		}
		if msg.Error == nil && json.Unmarshal(msg.Result, &res) == nil && res.SessionID != "" {
			c.known[res.SessionID] = true
			c.session(res.SessionID).settled = false // a key may name one that is open
		}
		opened := cmp.Or(res.SessionID, r.session)
		if msg.Error == nil && r.method != "session/load" && c.session(opened).settled {
			c.session(opened).why = "turn" // what belongs to the opening follows its response
		}
		if msg.Error == nil && m.opened(c, opened, msg.Result) {
			return // more of that turn follows
		}
		if msg.Error == nil && r.method == "session/load" {
			m.openCalls(c.session(r.session), r.session, "the load's response")
			c.settle(r.session, "load")
		}
	case "session/prompt":
		m.turnEnded(c, r, msg, f)
	case "_berth/session/await":
		if msg.Error == nil {
			m.openCalls(c.session(r.session), r.session, "the answer about its turn")
			c.session(r.session).shared = false
			c.settle(r.session, "turn")
		}
	}
}

// settle notes that nothing of the session is to follow, unless a prompt or a
// load of it has no answer yet.
func (c *conversation) settle(id, why string) {
	if s := c.session(id); !s.shared && !c.open(id, "session/prompt") && !c.open(id, "session/load") {
		s.settled, s.why = true, why
	}
}

// open reports whether a request of the session has no answer yet.
func (c *conversation) open(session, method string) bool {
	for _, r := range c.requests {
		if r.session == session && r.method == method {
			return true
		}
	}
	return false
}

func (m *monitor) turnEnded(c *conversation, r *request, msg message, f transcript.Frame) {
	s := c.session(r.session)
	i := slices.Index(s.prompts, r)
	s.prompts = slices.Delete(s.prompts, i, i+1)
	var res struct {
		StopReason string `json:"stopReason"`
	}
	_ = json.Unmarshal(msg.Result, &res)
	if msg.Error == nil && i > 0 && res.StopReason != "cancelled" {
		m.report("I5", "a prompt was answered before %d older ones of session %s", i, r.session)
	}
	// An error may also refuse a prompt that came during a load.
	if i == 0 && (msg.Error == nil || !c.open(r.session, "session/load")) {
		m.openCalls(s, r.session, "its turn's response")
	}
	c.settle(r.session, "turn")
	// A cancel that lies between the prompt and its answer, in time that
	// stands still while anything can happen, was read before the turn ended.
	if m.exact && s.cancel.After(r.sent) && f.Time.After(s.cancel) {
		switch {
		case msg.Error != nil:
			m.report("I4", "a cancelled turn was answered with an error: %.200s", f.Data)
		case res.StopReason != "cancelled":
			m.report("I3", "a cancel was lost: %.200s", f.Data)
		}
		if late := f.Time.Sub(s.cancel); late > 250*time.Millisecond {
			m.report("I3", "a cancel was answered after %v", late)
		}
	}
}

func (m *monitor) openCalls(s *session, id, when string) {
	if s.shared {
		return
	}
	for shrink, status := range s.shrinks {
		if status == "in_progress" {
			m.report("I7", "compaction %s of session %s is %q at %s", shrink, id, status, when)
		}
	}
	for call, status := range s.calls {
		if status != "completed" && status != "failed" {
			m.report("I7", "call %s of session %s is %q at %s", call, id, status, when)
		}
	}
	clear(s.calls)
}

// live are the updates that belong to a turn.
var live = []string{"agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan", "compaction_update", "compaction_summary_chunk"}

func (m *monitor) update(c *conversation, msg message, f transcript.Frame) {
	var p struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Kind   string `json:"sessionUpdate"`
			Call   string `json:"toolCallId"`
			Shrink string `json:"compactionId"`
			Status string `json:"status"`
		} `json:"update"`
	}
	if err := json.Unmarshal(msg.Params, &p); err != nil {
		m.report("I10", "an update that cannot be read: %.200s", f.Data)
		return
	}
	if !c.known[p.SessionID] {
		m.report("I6", "an update names session %q, which the client was not told of", p.SessionID)
	}
	s := c.session(p.SessionID)
	if s.settled {
		rule := "I2"
		if s.why == "load" {
			rule = "I8"
		}
		if rule == "I8" || slices.Contains(live, p.Update.Kind) {
			m.report(rule, "an update follows the response of a %s: %.200s", s.why, f.Data)
		}
	}
	m.compaction(s, p.Update.Kind, p.Update.Shrink, p.Update.Status, c.open(p.SessionID, "session/load"))
	m.call(s, p.Update.Kind, p.Update.Call, p.Update.Status, c.open(p.SessionID, "session/load"))
}

// compaction follows the life of one compaction. A load tells of it again.
func (m *monitor) compaction(s *session, kind, id, status string, loading bool) {
	was := s.shrinks[id]
	switch {
	case s.shared:
	case kind == "compaction_summary_chunk" && was != "in_progress":
		m.report("I7", "a piece of the summary of compaction %s, which is %q", id, was)
	case kind == "compaction_update" && was == "" && status != "in_progress" && !loading:
		m.report("I7", "compaction %s begins as %q", id, status)
	case kind == "compaction_update" && was != "" && was != "in_progress" && !loading:
		m.report("I7", "compaction %s is told of after its final status", id)
	}
	if kind == "compaction_update" {
		s.shrinks[id] = status
	}
}

// call follows the life of one tool call. A load tells of it again.
func (m *monitor) call(s *session, kind, id, status string, loading bool) {
	switch kind {
	case "tool_call":
		if _, again := s.calls[id]; again && !loading {
			m.report("I7", "call %s was announced twice", id)
		}
		if status == "" {
			status = "pending"
		}
		s.calls[id] = status
	case "tool_call_update":
		was, ok := s.calls[id]
		switch {
		case !ok && !s.shared:
			m.report("I7", "an update of call %s, which was not announced", id)
		case was == "completed" || was == "failed":
			m.report("I7", "an update of call %s after its final status", id)
		case was == "in_progress" && status == "pending":
			m.report("I7", "call %s went back to pending", id)
		}
		if status != "" {
			s.calls[id] = status
		}
	}
}

// finish reports requests that were never answered on connections that were
// not cut.
func (m *monitor) finish(cut bool) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, c := range m.clients {
		for id, r := range c.requests {
			if !cut {
				m.report("I1", "client %q: request %s (%s) has no response", name, id, r.method)
			}
		}
	}
	return m.broken
}
