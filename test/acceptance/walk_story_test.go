package acceptance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// story is what a client was shown of one session: the items of each turn, in
// order, chunks of one message merged.
type story struct {
	turns []*chapter
	by    map[string]*chapter
}

// chapter is one turn.
type chapter struct {
	id    string
	items []*item
	calls map[string]map[string]json.RawMessage // merged state of each call
	by    *walker                               // who was shown it live
	done  bool                                  // its response was seen
	gone  bool                                  // it may have been reset
}

// item is one thing that was shown: a message, a call's announcement or its
// end.
type item struct {
	kind, id, text string
	call           map[string]json.RawMessage
}

func (i *item) String() string { return fmt.Sprintf("%s %s %s", i.kind, i.id, i.text) }

func newStory() *story { return &story{by: map[string]*chapter{}} }

// add puts an item where it belongs.
func (s *story) add(i *item, by *walker) {
	if len(i.id) < 36 {
		return // it belongs to no turn
	}
	turn := i.id[:36]
	c := s.by[turn]
	if c == nil {
		c = &chapter{id: turn, by: by, calls: map[string]map[string]json.RawMessage{}}
		s.by[turn] = c
		s.turns = append(s.turns, c)
	}
	switch i.kind {
	case "tool_call":
		state := map[string]json.RawMessage{}
		for k, v := range i.call {
			state[k] = v
		}
		c.calls[i.id] = state
		c.items = append(c.items, &item{kind: "opened", id: i.id})
	case "tool_call_update":
		state := c.calls[i.id]
		if state == nil {
			return // the monitors tell
		}
		for k, v := range i.call {
			state[k] = v
		}
		if st := string(state["status"]); st == `"completed"` || st == `"failed"` {
			text, _ := json.Marshal(state) // the keys are sorted
			c.items = append(c.items, &item{kind: "ended", id: i.id, text: string(text)})
		}
	default:
		if n := len(c.items); n > 0 && c.items[n-1].id == i.id && c.items[n-1].kind == i.kind {
			c.items[n-1].text += i.text
			return
		}
		c.items = append(c.items, &item{kind: i.kind, id: i.id, text: i.text})
	}
}

// readItem reads a session/update; nil when it is no part of a turn.
func readItem(params json.RawMessage) (session string, i *item) {
	var p struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Kind    string          `json:"sessionUpdate"`
			Message string          `json:"messageId"`
			Call    string          `json:"toolCallId"`
			Content json.RawMessage `json:"content"`
		} `json:"update"`
	}
	_ = json.Unmarshal(params, &p)
	switch p.Update.Kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		var block struct {
			Text string `json:"text"`
		}
		_ = json.Unmarshal(p.Update.Content, &block)
		return p.SessionID, &item{kind: p.Update.Kind, id: p.Update.Message, text: block.Text}
	case "tool_call", "tool_call_update":
		i := &item{kind: p.Update.Kind, id: p.Update.Call}
		var whole struct {
			Update map[string]json.RawMessage `json:"update"`
		}
		_ = json.Unmarshal(params, &whole)
		delete(whole.Update, "sessionUpdate")
		i.call = whole.Update
		delete(i.call, "body") // the zeroclaw dialect says its text a second time
		if raw := i.call["rawOutput"]; len(raw) > 0 && raw[0] == '"' {
			delete(i.call, "rawOutput") // and a third
		}
		return p.SessionID, i
	}
	return p.SessionID, nil
}

// take handles a frame of the agent, with the walk's mutex held.
func (c *walker) take(data []byte) {
	var m message
	if json.Unmarshal(data, &m) != nil {
		return // the monitors tell
	}
	switch {
	case m.Method == "session/update":
		id, i := readItem(m.Params)
		if i == nil {
			return
		}
		if c.loads[id] > 0 {
			c.held[id] = append(c.held[id], i)
			return
		}
		c.live(id, i)
	case m.Method != "":
		c.asks = append(c.asks, m)
	default:
		c.answered(string(m.ID), m)
	}
}

// live adds what was shown by a running turn.
func (c *walker) live(id string, i *item) {
	if i.kind == "user_message_chunk" {
		c.w.told = append(c.w.told, fmt.Sprintf("a user message of session %s came outside of a load: %s", id, i))
		return
	}
	s := c.w.seen[id]
	if s == nil {
		s = newStory()
		c.w.seen[id] = s
	}
	s.add(i, c)
}

func (c *walker) answered(id string, m message) {
	req, ok := c.open[id]
	if !ok {
		return
	}
	delete(c.open, id)
	c.answers[id] = m
	var res struct {
		SessionID string `json:"sessionId"`
		Stop      string `json:"stopReason"`
		Meta      struct {
			Berth struct {
				TurnID  string `json:"turnId"`
				Created bool   `json:"created"`
			} `json:"berth"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Result, &res)
	switch req.method {
	case "session/resume":
		if m.Error == nil {
			c.mine = append(c.mine, req.session)
		}
	case "session/new":
		if m.Error != nil {
			if req.reset {
				c.w.forget(req.key) // it may have broken off after its effect
			}
			return
		}
		if req.key != "" {
			c.w.keyed[req.key] = res.SessionID
		}
		c.mine = append(c.mine, res.SessionID)
		if !slices.Contains(c.w.sessions, res.SessionID) {
			c.w.sessions = append(c.w.sessions, res.SessionID)
		}
		if req.reset {
			c.w.forget(req.key)
		}
	case "session/prompt":
		c.prompted(id, req, res.Meta.Berth.TurnID)
	case "session/load":
		if m.Error == nil {
			c.mine = append(c.mine, req.session)
		}
		c.loaded(req.session, m)
	}
}

// prompted ends a turn: what was held back because of a load that is refused
// was live, and when the oldest prompt is answered its turn is complete.
func (c *walker) prompted(id string, req sent, turn string) {
	order := c.order[req.session]
	first := len(order) > 0 && order[0] == id
	c.order[req.session] = slices.DeleteFunc(order, func(o string) bool { return o == id })
	for len(c.held[req.session]) > 0 && c.held[req.session][0].kind != "user_message_chunk" {
		c.live(req.session, c.held[req.session][0])
		c.held[req.session] = c.held[req.session][1:]
	}
	if turn != "" {
		c.w.asked[turn] = req.text
	}
	if s := c.w.seen[req.session]; s != nil && first {
		for _, ch := range s.turns {
			ch.done = ch.done || ch.by == c
		}
	}
}

// loaded compares what a load replayed with what was seen live.
func (c *walker) loaded(id string, m message) {
	c.loads[id]--
	if c.loads[id] > 0 && m.Error != nil {
		return // another one goes on
	}
	held := c.held[id]
	delete(c.held, id)
	if m.Error != nil {
		for _, i := range held {
			if i.kind == "user_message_chunk" {
				return // it broke off while it replayed
			}
			c.live(id, i)
		}
		return
	}
	replay := newStory()
	for _, i := range held {
		replay.add(i, nil)
	}
	c.compare(id, replay)
}

func (c *walker) compare(id string, replay *story) {
	tell := func(format string, args ...any) {
		c.w.told = append(c.w.told, fmt.Sprintf("the load of session %s: ", id)+fmt.Sprintf(format, args...))
	}
	for _, r := range replay.turns {
		if len(r.items) == 0 || r.items[0].kind != "user_message_chunk" {
			tell("turn %s does not begin with the user's message", r.id)
			continue
		}
		if asked, ok := c.w.asked[r.id]; ok && !strings.HasPrefix(r.items[0].text, asked) {
			tell("turn %s shows the user saying %q, not %q", r.id, r.items[0].text, asked)
		}
	}
	live := c.w.seen[id]
	if live == nil {
		return
	}
	var order []string
	for _, l := range live.turns {
		if !l.done || l.gone {
			continue
		}
		r := replay.by[l.id]
		if r == nil {
			tell("turn %s, which was seen, is missing", l.id)
			continue
		}
		order = append(order, l.id)
		var items []*item
		for _, i := range r.items {
			if i.kind != "user_message_chunk" && !strings.HasSuffix(i.id, "-end") {
				items = append(items, i)
			}
		}
		if diff := differ(l.items, items); diff != "" {
			tell("turn %s was shown otherwise: %s", l.id, diff)
		}
	}
	var replayed []string
	for _, r := range replay.turns {
		if slices.Contains(order, r.id) {
			replayed = append(replayed, r.id)
		}
	}
	if !slices.Equal(order, replayed) {
		tell("the turns come in another order: %v, seen %v", replayed, order)
	}
}

// differ names the first difference.
func differ(live, replay []*item) string {
	for i := range max(len(live), len(replay)) {
		switch {
		case i >= len(live):
			return fmt.Sprintf("not seen live: %s", replay[i])
		case i >= len(replay):
			return fmt.Sprintf("not replayed: %s", live[i])
		case live[i].String() != replay[i].String():
			return fmt.Sprintf("live %s, replayed %s", live[i], replay[i])
		}
	}
	return ""
}
