package bridge

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// asked is a prompt as a gateway's history shows it.
type asked struct {
	key   string // of its message
	turn  string // "" when its message has no id that tells
	place int
	words string
	any   bool // it waits, or has just begun: its words are not known
}

// hear takes a piece of a prompt that a history shows. Of several prompts that
// are open it is to be known which turns are theirs; the turn of one is known
// without.
func (r *replay) hear(key, words string) {
	if r.prompts < 2 {
		return
	}
	if n := len(r.asked); n > 0 && r.asked[n-1].key == key {
		r.asked[n-1].words += words
		return
	}
	if len(r.asked) == r.prompts {
		r.asked = r.asked[1:]
	}
	_, id, _ := strings.Cut(key, " ")
	turn, _ := strings.CutSuffix(id, "-u") // see docs/protocol.md
	if turn == id {
		turn = ""
	}
	r.asked = append(r.asked, asked{key: key, turn: turn, place: r.turn, words: words})
}

// recognise finds the turns of several open prompts, of which at least one has
// ended: they are the newest in the history and those that run or wait, in the
// order of the prompts, and say the same. The rest is missing. Where one says
// something else, or some are missing and it cannot be said which, none is known.
// The book's mutex is held.
func (s *session) recognise(prompts []*request) {
	list := s.asked
	s.asked = nil
	if !s.whole || len(prompts) < 2 || len(s.turns) >= len(prompts) {
		return
	}
	for _, turn := range s.turns {
		if !slices.ContainsFunc(list, func(a asked) bool { return a.turn == turn }) {
			list = append(list, asked{turn: turn, any: true})
		}
	}
	list = list[max(len(list)-len(prompts), 0):]
	if slices.ContainsFunc(list, func(a asked) bool { return a.turn == "" }) {
		return
	}
	for len(list) > 0 && (slices.Contains(s.ended, list[0].turn) || s.seen.before(list[0].turn, prompts[0].number)) {
		list = list[1:]
	}
	words := make([]string, len(prompts))
	for i, r := range prompts {
		words[i] = wordsOf(r.params)
	}
	if len(list) < len(prompts) {
		if slices.ContainsFunc(list, func(a asked) bool { return a.any }) || repeats(words) {
			return
		}
	}
	for i, a := range list {
		if !a.any && a.words != words[i] {
			return
		}
	}
	for i, r := range prompts {
		if r.missing = i >= len(list); !r.missing {
			r.turn, r.place = list[i].turn, list[i].place
		}
	}
}

// sendMissing sends prompts of a session again that have not begun. While a turn
// runs they have not reached the gateway; when none does, one may have ended
// before it began, which is left to await.
func (b *Bridge) sendMissing(ctx context.Context, ch *channel, session string) error {
	var list []*request
	known := false
	for _, r := range b.promptsOf(session) {
		if r.missing {
			list = append(list, r)
		}
		known = known || r.cancelled.Load()
	}
	if !known && len(b.book.turnsOf(session)) == 0 {
		var params object
		params.text("sessionId", session)
		m, err := b.call(ctx, ch, methodAwait, params.done())
		switch {
		case err != nil:
			return err
		case isEnding(m):
			return errLost
		}
		known = !isUnknown(m) && (m.Error != nil || !b.book.older(list[0], text(at(m.Result, "_meta", "berth", "turnId"))))
	}
	for _, r := range slices.Backward(list) {
		r.missing = false
		if known {
			continue
		}
		if err := b.sendAgain(r); err != nil {
			return err
		}
	}
	return nil
}

// wordsOf is the text of a prompt.
func wordsOf(params json.RawMessage) string {
	prompt := at(params, "prompt")
	if len(prompt) > 0 && prompt[0] == '"' {
		return text(prompt)
	}
	var words strings.Builder
	for block := range jsonrpc.Elements(prompt) {
		words.WriteString(text(at(block, "text")))
	}
	return words.String()
}

func repeats(list []string) bool {
	list = slices.Clone(list)
	slices.Sort(list)
	return len(slices.Compact(list)) < len(list)
}

// isOver reports whether a request is a prompt that is known to be that of a turn
// which had ended when the session was taken over.
func (k *book) isOver(r *request) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[r.session]
	return r.turn != "" && s != nil && !slices.Contains(s.turns, r.turn)
}

// catchUp tells the editor what it missed of a session. A prompt whose turn has
// ended is answered behind what was missed of that turn, as if nothing had been
// lost; what goes on meanwhile comes behind all that.
func (b *Bridge) catchUp(ctx context.Context, ch *channel, id string, missed []kept) error {
	var over []*request
	if b.book.can().await {
		over = slices.DeleteFunc(b.promptsOf(id), func(r *request) bool { return !b.book.isOver(r) })
	}
	var behind [][]byte
	var lost error
	answer := func() {
		lost = b.settle(ctx, ch, over[0], &behind)
		over = over[1:]
	}
	for _, u := range missed {
		for lost == nil && len(over) > 0 && over[0].place < u.turn {
			answer()
		}
		if err := b.tell(u.frame); err != nil { // also when lost: it counts as told
			return err
		}
	}
	for lost == nil && len(over) > 0 {
		answer()
	}
	for _, frame := range behind {
		if err := b.fromGateway(frame); err != nil {
			return err
		}
	}
	return lost
}

// settle has a prompt answered whose turn has ended, and adds to behind what else
// comes until then.
func (b *Bridge) settle(ctx context.Context, ch *channel, r *request, behind *[][]byte) error {
	frame := b.await(r, b.book.can())
	r.waits = true
	if err := ch.frames.Write(frame); err != nil {
		return errLost
	}
	limit := time.AfterFunc(callLimit, func() { _ = ch.frames.Close() })
	defer limit.Stop()
	for {
		frame, err := b.read(ctx, ch)
		if err != nil {
			return err
		}
		if m, err := jsonrpc.Parse(frame); err == nil && m.Kind == jsonrpc.Response && m.ID.Key() == r.id.Key() {
			return b.fromGateway(frame)
		}
		*behind = append(*behind, frame)
	}
}
