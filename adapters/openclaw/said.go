package openclaw

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// said is what the editor was told of a run's text. The Gateway sends each
// piece with all that was before it, twice: as a stream of the agent, with
// the messages apart, and, later, as chat. The pieces are passed on as they
// are. The whole is looked at only when something may be missing.
type said struct {
	run       string
	fromAgent bool // the agent's stream tells the text
	doubts    int  // how often events may have been left out
	unsettled bool // since the last tool call
	calls     int  // how many tool calls were told
	messages  []*utterance
	thoughts  []*utterance
	count     int
}

// utterance is one message, or one thought.
type utterance struct {
	item    string // the Gateway's name, "" for none
	id      domain.MessageID
	thought bool
	after   int // how many tool calls were told before it
	doubts  int // as many as there were when it was last compared with the whole
	text    strings.Builder
}

// doubt has every message compared with the whole once more.
func (s *said) doubt() {
	s.doubts++
	s.unsettled = true
}

// message finds the message of that name, or begins it. A message that the
// transcript told of has no name until the Gateway goes on with it.
func (s *said) message(item string) *utterance {
	for i := len(s.messages) - 1; i >= 0; i-- {
		u := s.messages[i]
		if u.item == item && (item != "" || u.after == s.calls) {
			return u
		}
		if (u.item == "" || item == "") && u.after == s.calls && i == len(s.messages)-1 {
			u.item = or(item, u.item)
			return u
		}
	}
	u := &utterance{item: item, id: s.next(), after: s.calls, doubts: -1}
	s.messages = append(s.messages, u)
	return u
}

// next is the id of the run's next message.
func (s *said) next() domain.MessageID {
	s.count++
	return domain.MessageID(s.run + "-" + strconv.Itoa(s.count))
}

// more says a further piece.
func (u *utterance) more(piece string) []domain.Update {
	if piece == "" {
		return nil
	}
	u.text.WriteString(piece)
	if u.thought {
		return []domain.Update{domain.AgentThought{ID: u.id, Text: piece}}
	}
	return []domain.Update{domain.AgentText{ID: u.id, Text: piece}}
}

// until says what is missing of the whole message. A whole that is another
// message than the one that was told cannot be made of it; it is told as a new
// one. As long as the wholes are no longer than what was told, further pieces
// may be a part of it, and their wholes are looked at, too.
func (s *said) until(u *utterance, whole string) []domain.Update {
	have := u.text.String()
	solid := strings.TrimRight(have, " \t\r\n")
	switch {
	case strings.HasPrefix(whole, have):
		u.doubts = s.doubts
		return u.more(whole[len(have):])
	case strings.HasPrefix(have, strings.TrimRight(whole, " \t\r\n")):
		u.doubts = -1
		return nil // it is behind what was told, or ends in white space
	case strings.HasPrefix(whole, solid):
		u.doubts = s.doubts
		return u.more(strings.TrimLeft(whole[len(solid):], " \t\r\n"))
	}
	return s.replace(u, whole)
}

// replace takes a whole that takes the place of what was before. An empty one
// is the Gateway's new attempt after a failure: what comes is a new message.
func (s *said) replace(u *utterance, whole string) []domain.Update {
	u.doubts = s.doubts
	have := u.text.String()
	if have != "" && strings.HasPrefix(whole, have) {
		return u.more(whole[len(have):])
	}
	if have != "" {
		u.id = s.next()
		u.text.Reset()
	}
	return u.more(whole)
}

// piece says a delta, or what is missing of the whole when that may be more. A
// delta that ends in the middle of a character is said but for that; the next
// whole has the character. whole is asked only then.
func (s *said) piece(u *utterance, delta string, whole func() (string, bool)) []domain.Update {
	if u.doubts == s.doubts && !endsInHalf(delta) {
		return u.more(delta)
	}
	words, ok := whole()
	switch {
	case !ok:
		return u.more(delta)
	case !endsInHalf(words):
		return s.until(u, words)
	}
	out := s.until(u, strings.TrimSuffix(words, "\uFFFD"))
	u.doubts = -1
	return out
}

// wholeOf is the whole that comes with a delta, if one does.
func wholeOf(raw json.RawMessage) func() (string, bool) {
	return func() (string, bool) { return text(raw), len(raw) > 0 && raw[0] == '"' }
}

// agent takes an event of the stream assistant.
func (s *said) agent(data fields) []domain.Update {
	u := s.message(data.text("itemId"))
	if data.flag("replace") {
		return s.replace(u, data.text("text"))
	}
	return s.piece(u, data.text("delta"), wholeOf(data["text"]))
}

// chat takes a delta of the chat.
func (s *said) chat(p fields) []domain.Update {
	u := s.message("")
	if p.flag("replace") {
		return s.replace(u, p.text("deltaText"))
	}
	return s.piece(u, p.text("deltaText"), func() (string, bool) { return messageText(p["message"]), p.has("message") })
}

// thinking takes an event of the stream thinking. A text that is its own delta
// begins a new thought.
func (s *said) thinking(data fields) []domain.Update {
	delta, whole := data["delta"], data["text"]
	var last *utterance
	if n := len(s.thoughts); n > 0 {
		last = s.thoughts[n-1]
	}
	begins := string(delta) == string(whole)
	again := last != nil && last.doubts != s.doubts && strings.HasPrefix(text(whole), last.text.String())
	if last == nil || begins && !again {
		last = &utterance{id: s.next(), thought: true, after: s.calls, doubts: -1}
		s.thoughts = append(s.thoughts, last)
	}
	return s.piece(last, text(delta), wholeOf(whole))
}

// preamble takes what a model says before it calls a tool, which some
// Gateways tell as an item and not as text.
func (s *said) preamble(item, whole string) []domain.Update {
	for _, u := range s.messages {
		if u.item != item && strings.TrimSpace(whole) != "" && strings.HasPrefix(strings.TrimSpace(u.text.String()), strings.TrimSpace(whole)) {
			return nil // it was told as text
		}
	}
	return s.until(s.message(item), whole)
}

// final takes the text that a run ended with: its last message, or, as some
// Gateways have it, all of them.
func (s *said) final(whole string) []domain.Update {
	if strings.TrimSpace(whole) == "" || s.holds(whole) {
		return nil
	}
	return s.until(s.message(""), whole)
}

// holds reports whether a text is what was told since the last tool call, or
// all that was told, whatever the white space between messages.
func (s *said) holds(whole string) bool {
	var all, last []string
	for _, u := range s.messages {
		words := strings.Fields(u.text.String())
		all = append(all, words...)
		if u.after == s.calls {
			last = append(last, words...)
		}
	}
	words := strings.Fields(whole)
	return slices.Equal(words, last) || slices.Equal(words, all)
}

// notice says something in the Gateway's place, as a message of its own.
func (s *said) notice(words string) []domain.Update {
	return []domain.Update{domain.AgentText{ID: s.next(), Text: words}}
}

// messageText is the text of a message: a string, or the text blocks of its
// content.
func messageText(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return text(raw)
	}
	content := fieldsOf(raw)["content"]
	if len(content) == 0 {
		return text(fieldsOf(raw)["text"])
	}
	return blocksText(content)
}

func blocksText(content json.RawMessage) string {
	if content[0] == '"' {
		return text(content)
	}
	var parts []string
	for e := range jsonrpc.Elements(content) {
		if f := fieldsOf(e); f.text("type") == "text" || f.text("type") == "" {
			parts = append(parts, f.text("text"))
		}
	}
	return strings.Join(parts, "\n")
}
