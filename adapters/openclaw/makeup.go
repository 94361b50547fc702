package openclaw

import (
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// makeUp tells what the editor has not been told of the entries of the run.
func (t *turn) makeUp(list []entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	m := &makingUp{seen: map[*utterance]bool{}}
	for _, e := range list {
		switch e.role {
		case "assistant":
			t.makeUpMessage(e, m)
		case "toolResult":
			t.makeUpResult(e)
		}
	}
}

// makeUpResult tells the result of a call. One of no call says nothing.
func (t *turn) makeUpResult(e entry) {
	if e.call == "" {
		return
	}
	c := t.call(e.call)
	t.open(c, e.tool, nil)
	t.conclude(c, rawOf(e.raw), e.failed)
}

// makingUp is how far a transcript of a run was compared with what was told.
type makingUp struct {
	seen  map[*utterance]bool // what entries were found to be
	calls int                 // tool calls so far
}

// makeUpMessage does so for one message: its thoughts, its text, its calls.
func (t *turn) makeUpMessage(e entry, m *makingUp) {
	for c := range jsonrpc.Elements(e.content) {
		if f := fieldsOf(c); f.text("type") == "thinking" {
			t.speak(t.said.thoughtOf(or(f.text("thinking"), f.text("text")), m))
		}
	}
	t.speak(t.said.messageOf(e.item, messageText(rawOf(e.raw)), m))
	for c := range jsonrpc.Elements(e.content) {
		if f := fieldsOf(c); f.text("type") == "toolCall" && f.text("id") != "" {
			m.calls++
			t.open(t.call(f.text("id")), f.text("name"), f["arguments"])
		}
	}
}

// messageOf says what is missing of a message of the transcript.
func (s *said) messageOf(item, whole string, m *makingUp) []domain.Update {
	if strings.TrimSpace(whole) == "" || !s.fromAgent && s.holds(whole) { // chat tells several messages as one
		return nil
	}
	return s.entry(&s.messages, &utterance{item: item, after: m.calls}, whole, m)
}

// thoughtOf does so for a thought.
func (s *said) thoughtOf(whole string, m *makingUp) []domain.Update {
	if strings.TrimSpace(whole) == "" {
		return nil
	}
	return s.entry(&s.thoughts, &utterance{thought: true, after: m.calls}, whole, m)
}

// entry says what is missing of an entry: of what was told of it, or all of
// it. White space at its end is not told behind the rest.
func (s *said) entry(told *[]*utterance, as *utterance, whole string, m *makingUp) []domain.Update {
	u := same(*told, as, whole, m)
	if u == nil {
		u = as
		u.id = s.next()
		*told = append(*told, u)
	} else {
		whole = strings.TrimRight(whole, " \t\r\n")
	}
	m.seen[u] = true
	return s.until(u, whole)
}

// beginAlike reports whether one of two texts is the beginning of the other.
func beginAlike(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// same finds what was told of an entry: by its name, or as its beginning in
// its place between the tool calls. More may have been told than is written
// down yet.
func same(told []*utterance, as *utterance, whole string, m *makingUp) *utterance {
	var best *utterance
	for _, u := range told {
		if m.seen[u] {
			continue
		}
		if as.item != "" && u.item == as.item {
			return u
		}
		have := strings.TrimSpace(u.text.String())
		if u.after == as.after && have != "" && beginAlike(strings.TrimSpace(whole), have) &&
			(best == nil || u.text.Len() > best.text.Len()) {
			best = u
		}
	}
	return best
}
