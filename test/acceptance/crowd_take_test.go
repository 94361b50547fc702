package acceptance

import (
	"encoding/json"
	"fmt"
	"slices"
)

// take handles a frame of the agent, with the mutex held.
func (g *guest) take(data []byte) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		g.c.wrong = append(g.c.wrong, fmt.Sprintf("%s: %v in %.300s", g.name, err, data))
		return
	}
	switch {
	case m.Method == "session/update":
		if id, i := readItem(m.Params); i != nil {
			g.view(id).show(i)
		}
	case m.Method == "$/cancel_request":
		var p struct {
			ID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &p)
		if q := g.asks[string(p.ID)]; q != nil {
			q.done = true
		}
	case m.Method != "" && m.ID != nil:
		g.questioned(m)
	case m.Method != "":
	default:
		g.answered(string(m.ID), m)
	}
}

// answered takes the answer to a request. The mutex is held.
func (g *guest) answered(id string, m message) {
	req, ok := g.open[id]
	if !ok {
		g.c.wrong = append(g.c.wrong, fmt.Sprintf("%s: a second answer, or one to nothing: %s", g.name, id))
		return
	}
	delete(g.open, id)
	g.answers[id] = m
	var res struct {
		SessionID string `json:"sessionId"`
	}
	_ = json.Unmarshal(m.Result, &res)
	switch {
	case req.method == "session/new" && m.Error == nil:
		if !slices.Contains(g.c.sessions, res.SessionID) {
			g.c.sessions = append(g.c.sessions, res.SessionID)
		}
		g.view(res.SessionID).goOn(owns)
	case req.method == "session/load" || req.method == "session/resume":
		g.view(req.session).replayed(id, string(m.Error), owns)
	case req.method == "_berth/session/observe":
		g.view(req.session).replayed(id, string(m.Error), observes)
	}
}

// questioned takes a request of the agent. The mutex is held.
func (g *guest) questioned(m message) {
	var p struct {
		Session string `json:"sessionId"`
		Call    struct {
			ID string `json:"toolCallId"`
		} `json:"toolCall"`
	}
	_ = json.Unmarshal(m.Params, &p)
	q := &question{id: string(m.ID), session: p.Session, call: p.Call.ID, method: m.Method, raw: m.Params}
	if g.asks[q.id] != nil {
		g.c.wrong = append(g.c.wrong, fmt.Sprintf("%s: the id %s is used twice", g.name, q.id))
	}
	g.asks[q.id], g.order = q, append(g.order, q.id)
	if g.patient {
		g.answer(q)
	}
}
