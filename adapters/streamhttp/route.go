package streamhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// The methods whose place is special.
const (
	methodInitialize = "initialize"
	methodLoad       = "session/load"
	methodResume     = "session/resume"
	methodCancel     = "$/cancel_request"
)

// sessionScoped reports whether a request must say its session in the header,
// whatever its params hold.
func sessionScoped(method string) bool {
	switch method {
	case methodLoad, methodResume, "session/prompt", "session/cancel", "session/close", "session/stop", "session/delete",
		"session/fork", "session/set_mode", "session/set_model", "session/set_config_option":
		return true
	}
	return false
}

// route is where the answer to a request of the client goes: to a session's
// stream, or to the main one, there behind what a session's stream holds.
type route struct {
	session string
	behind  string
}

// routeOf is the route of the answer to a request with a session header. The
// answers to load and resume go to the main stream, which is open in any case.
func routeOf(method, session string) route {
	if method == methodLoad || method == methodResume {
		return route{behind: session}
	}
	return route{session: session}
}

// note remembers where the answer to a request goes, before it is handed on.
func (c *connection) note(id jsonrpc.ID, r route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[string(id)] = append(c.asked[string(id)], r)
}

// unnote forgets the last route of an id.
func (c *connection) unnote(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.routeOfAnswer(string(id))
}

// routeOfAnswer takes the route of an answer. Of two requests with one id the
// later one is answered first: it is refused. The lock is held.
func (c *connection) routeOfAnswer(id string) route {
	routes := c.asked[id]
	n := len(routes)
	switch n {
	case 0:
		return route{}
	case 1:
		delete(c.asked, id)
	default:
		c.asked[id] = routes[:n-1]
	}
	return routes[n-1]
}

// settle checks a response of the client against the stream its request went
// out on.
func (c *connection) settle(id jsonrpc.ID, session string) *refusal {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.asking[string(id)]
	switch {
	case s == nil:
		return nil // unknown or withdrawn; the peer deals with it
	case s != c.main && session == "":
		return &refusal{http.StatusBadRequest, "Acp-Session-Id is missing; the request that this answers belongs to a session."}
	case s != c.main && session != s.name:
		return &refusal{http.StatusBadRequest, "Acp-Session-Id is not the session of the request that this answers."}
	}
	delete(c.asking, string(id))
	return nil
}

// route puts a message of ours where it belongs. The lock is held.
func (c *connection) route(frame []byte) {
	m := look(frame)
	e := event{at: time.Now(), data: frame}
	switch {
	case m.method == "":
		c.answer(m.id, e)
	case m.method == methodCancel:
		if !c.withdraw(m.cancels) {
			c.put(c.main, e)
		}
	default:
		s := c.main
		if m.session != "" {
			if s = c.session(m.session); s == nil {
				c.lose(fmt.Errorf("more than %d session streams wait for the client", c.opts.MaxStreams))
				return
			}
		}
		if m.id != "" {
			e.call = m.id
			c.asking[m.id] = s
		}
		c.put(s, e)
	}
}

// answer routes a response. The lock is held.
func (c *connection) answer(id string, e event) {
	r := c.routeOfAnswer(id)
	if s := c.sessions[r.behind]; s != nil && s.reader != nil {
		if s.reader.writing || s.next < len(s.events) || s.reader.settles(e.at, c.opts.Settle) > 0 {
			e.held = true
			c.put(s, e)
			return
		}
	}
	s := c.main
	if r.session != "" {
		if s = c.session(r.session); s == nil {
			s = c.main
		}
	}
	c.put(s, e)
}

// withdraw takes a request of ours back. It reports whether the client never
// saw it, so that it needs no word about it. The lock is held.
func (c *connection) withdraw(id string) bool {
	s := c.asking[id]
	if s == nil {
		return false
	}
	delete(c.asking, id)
	for i, e := range s.events {
		if e.call == id {
			unsent := i >= s.next
			c.drop(s, i)
			return unsent
		}
	}
	return false
}

// looked is what a message of ours says about its place.
type looked struct{ id, method, session, cancels string }

// look reads a message of ours.
func look(frame []byte) looked {
	var m looked
	var params json.RawMessage
	for name, v := range jsonrpc.Members(frame) {
		switch name {
		case "id":
			m.id = string(v)
		case "method":
			m.method = text(v)
		case "params":
			params = v
		}
	}
	for name, v := range jsonrpc.Members(params) {
		switch name {
		case "sessionId":
			m.session = text(v)
			return m
		case "requestId":
			m.cancels = string(v)
		}
	}
	return m
}

// sessionOf returns the session that params name, if they do.
func sessionOf(params json.RawMessage) (string, bool) {
	for name, v := range jsonrpc.Members(params) {
		if name == "sessionId" && len(v) > 0 && v[0] == '"' {
			return text(v), true
		}
	}
	return "", false
}

// text returns the value of a JSON string, or nothing.
func text(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}
