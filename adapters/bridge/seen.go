package bridge

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
)

// mostSeen is of how many messages, calls and states of a session the bridge
// knows what the editor has had.
const mostSeen = 1 << 14

// seen is what the editor has had of a session.
type seen struct {
	marks map[string]*mark
	order []string // of the marks, the oldest first
	place place
	seed  maphash.Seed
	// prompt is the number of the newest prompt of the editor's.
	prompt int
}

// mark is what the editor has had of one message, call or state.
type mark struct {
	length int    // bytes of a message
	final  bool   // a call has ended
	hash   uint64 // of the newest update of a call or state
	prompt int    // the newest when the mark was made
}

// before reports whether the editor had something of a turn before it sent a
// prompt. Ids of messages begin with their turn's.
func (s *seen) before(turn string, prompt int) bool {
	for key, m := range s.marks {
		if _, id, _ := strings.Cut(key, " "); m.prompt < prompt && strings.HasPrefix(id, turn) {
			return true
		}
	}
	return false
}

// place names messages that have no id: by their turn's order.
type place struct {
	kind    string
	segment int
}

// turn starts the count anew.
func (p *place) turn() { *p = place{} }

func (p *place) next(kind string) string {
	if p.kind != kind {
		p.kind = kind
		p.segment++
	}
	return strconv.Itoa(p.segment)
}

// topic is what an update is about.
type topic uint8

const (
	aboutMessage topic = iota + 1
	aboutUser          // a message of the user's
	aboutCall
	aboutState
	aboutEnd // how a turn ended, which a history tells
)

// update is one session/update as far as it matters here.
type update struct {
	about topic
	key   string
	opens bool // it is the tool_call
	final bool
	text  string // of a message; a block that is no text counts as one byte
	hash  uint64
}

// look reads an update; p is where messages without id stand.
func (s *seen) look(raw json.RawMessage, p *place) update {
	kind := text(at(raw, "sessionUpdate"))
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
		u := update{about: aboutMessage, text: text(at(raw, "content", "text"))}
		if u.text == "" {
			u.text = "."
		}
		if kind == "user_message_chunk" {
			u.about = aboutUser
		}
		id := text(at(raw, "messageId"))
		if id == "" {
			id = "#" + p.next(kind)
		}
		u.key = kind + " " + id
		return u
	case "tool_call", "tool_call_update":
		status := text(at(raw, "status"))
		return update{
			about: aboutCall, key: "call " + text(at(raw, "toolCallId")), opens: kind == "tool_call",
			final: status == "completed" || status == "failed", hash: s.sum(raw),
		}
	case "session_info_update":
		if turn := text(at(raw, "_meta", "berth", "turnId")); turn != "" {
			return update{about: aboutEnd, key: "end " + turn}
		}
	}
	return update{about: aboutState, key: "state " + kind, hash: s.sum(raw)}
}

func (s *seen) sum(raw []byte) uint64 {
	if s.marks == nil {
		s.marks, s.seed = map[string]*mark{}, maphash.MakeSeed()
	}
	return maphash.Bytes(s.seed, raw)
}

// note notes what the editor is told.
func (s *seen) note(u update) {
	if s.marks == nil {
		s.marks, s.seed = map[string]*mark{}, maphash.MakeSeed()
	}
	m := s.marks[u.key]
	if m == nil {
		if len(s.order) == mostSeen {
			delete(s.marks, s.order[0])
			s.order = s.order[1:]
		}
		m = &mark{prompt: s.prompt}
		s.marks[u.key] = m
		s.order = append(s.order, u.key)
	}
	m.length += len(u.text)
	m.final = m.final || u.final
	m.hash = u.hash
}

// replay sorts what a gateway sends when a session is loaded again: what the
// editor has had is dropped, and what came before that.
type replay struct {
	seen    *seen
	prompts int  // of the editor's that are open; their turns are the last
	direct  bool // the editor asked for the history: what it has not had is passed at once

	place place
	had   map[string]int // bytes of messages that the replay has come to
	known bool           // something was found that the editor has had
	turn  int
	user  string // key of the newest message of the user's
	held  []kept
	asked []asked // the newest prompts, as many as are open
}

// kept is an update that the editor may be told at the end.
type kept struct {
	update
	turn  int
	frame []byte
}

func newReplay(s *seen, prompts int) *replay {
	return &replay{seen: s, prompts: prompts, had: map[string]int{}}
}

// take judges one update and returns the frame to pass at once, if any.
func (r *replay) take(raw json.RawMessage, frame []byte) []byte {
	if u := text(at(raw, "sessionUpdate")); u == "user_message_chunk" && r.place.kind != u {
		r.place.turn()
	}
	u := r.seen.look(raw, &r.place)
	m := r.seen.marks[u.key]
	switch u.about {
	case aboutUser, aboutMessage:
		if u.about == aboutUser && r.user != u.key {
			r.turn++
		}
		r.user = ""
		if u.about == aboutUser {
			r.user = u.key
			r.hear(u.key, text(at(raw, "content", "text")))
		}
		before := r.had[u.key]
		r.had[u.key] += len(u.text)
		if m != nil && r.had[u.key] <= m.length {
			return r.drop()
		}
		if m != nil && before < m.length {
			_ = r.drop()
			u.text = u.text[m.length-before:]
			frame = withText(frame, u.text)
		}
	case aboutCall:
		r.user = ""
		if m != nil && (u.opens || m.final || m.hash == u.hash) {
			return r.drop()
		}
	case aboutState:
		if m != nil && m.hash == u.hash {
			// The editor has this one; what came before it is older.
			r.held = slices.DeleteFunc(r.held, func(h kept) bool { return h.key == u.key })
			return nil
		}
	case aboutEnd:
		if m != nil || !r.direct {
			return nil // the editor's prompts are answered, and the place of others has gone by
		}
	}
	if r.direct {
		r.seen.note(u)
		return frame
	}
	r.held = append(r.held, kept{u, r.turn, frame})
	return nil
}

// drop forgets what came before something that the editor has had, but for
// states, and the rest of what it has had in part.
func (r *replay) drop() []byte {
	r.known = true
	rest := r.held[:0]
	for _, h := range r.held {
		if h.about == aboutState || r.seen.marks[h.key] != nil {
			rest = append(rest, h)
		}
	}
	clear(r.held[len(rest):])
	r.held = rest
	return nil
}

// end returns what the editor is to be told. whole says that the replay began
// at the beginning of the session, and not where the editor was lost.
func (r *replay) end(whole bool) []kept {
	first := r.turn - max(r.prompts, 1) + 1
	var out []kept
	for i, h := range r.held {
		pass := !whole || r.known || r.prompts > 0 && h.turn >= first
		switch {
		case h.about == aboutState:
			pass = !r.newer(i)
		case h.about == aboutUser:
			pass = pass && r.prompts == 0 // else it is what the editor said itself
		}
		if pass {
			r.seen.note(h.update)
			out = append(out, h)
		}
	}
	return out
}

// newer reports whether a state has a newer value further on.
func (r *replay) newer(i int) bool {
	for _, h := range r.held[i+1:] {
		if h.key == r.held[i].key {
			return true
		}
	}
	return false
}

// withText returns the frame of a message chunk with another text.
func withText(frame []byte, s string) []byte {
	params := at(frame, "params")
	u := at(params, "update")
	content := with(at(u, "content"), "text", quote(s))
	return with(frame, "params", with(params, "update", with(u, "content", content)))
}

// update notes an update of the gateway's and returns the frame to pass: none
// when the editor has had it.
func (k *book) update(params json.RawMessage, frame []byte) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := text(at(params, "sessionId"))
	s := k.sessions[id]
	if s == nil {
		s = k.loading[id]
	}
	if s == nil {
		return frame
	}
	raw := at(params, "update")
	if s.replay != nil {
		return s.replay.take(raw, frame)
	}
	u := s.seen.look(raw, &s.seen.place)
	if u.about == aboutUser && s.isOwn(u.key) {
		return nil
	}
	s.seen.note(u)
	return frame
}

// isOwn reports whether a message of the user's is a prompt that the editor
// sent on a connection before this one: then it is not news to it. Ids of
// messages begin with their turn's.
func (s *session) isOwn(key string) bool {
	_, id, _ := strings.Cut(key, " ")
	return s.own && slices.ContainsFunc(s.turns, func(turn string) bool { return strings.HasPrefix(id, turn) })
}
