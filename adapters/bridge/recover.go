package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// methodAwait is answered like the session/prompt of a turn that runs, for a
// client that came after it.
const methodAwait = "_berth/session/await"

// busyLimit is how long a session may be busy with what a lost connection had
// in hand.
const busyLimit = 10 * time.Second

// callLimit is how long the gateway may take to bring a session back.
const callLimit = 2 * time.Minute

// recover brings back, on a new channel, what the one before had: the
// agreement, the sessions, and what is open.
func (b *Bridge) recover(ctx context.Context, ch *channel, hello *request) error {
	for _, id := range b.book.orphans() {
		if err := b.tell(notification("$/cancel_request", `{"requestId":`+string(id)+`}`)); err != nil {
			return err
		}
	}
	m, err := b.call(ctx, ch, "initialize", hello.params)
	if err != nil {
		return err
	}
	if m.Error != nil {
		return &Refused{fmt.Errorf("the gateway refuses what it took before: %s", m.Error.Message)}
	}
	b.book.offers(m.Result)
	if params := b.book.signIn(); params != nil {
		if _, err := b.call(ctx, ch, "authenticate", params); err != nil {
			return err
		}
	}
	for _, id := range b.book.held() {
		if err := b.reopen(ctx, ch, id); err != nil {
			return err
		}
	}
	return b.askAgain(ctx, ch)
}

func (k *book) signIn() json.RawMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.signedIn
}

// call sends a request of the bridge's own and waits for the answer. What
// comes meanwhile is passed on.
func (b *Bridge) call(ctx context.Context, ch *channel, method string, params json.RawMessage) (jsonrpc.Message, error) {
	b.calls++
	id := jsonrpc.ID(`"bridge-` + strconv.Itoa(b.calls) + `"`)
	frame, err := jsonrpc.AppendRequest(nil, id, method, params)
	if err != nil {
		return jsonrpc.Message{}, err
	}
	if err := ch.frames.Write(frame); err != nil {
		return jsonrpc.Message{}, errLost
	}
	limit := time.AfterFunc(callLimit, func() { _ = ch.frames.Close() })
	defer limit.Stop()
	for {
		frame, err := b.read(ctx, ch)
		if err != nil {
			return jsonrpc.Message{}, err
		}
		if m, err := jsonrpc.Parse(frame); err == nil && m.Kind == jsonrpc.Response && m.ID == id {
			return m, nil
		}
		if err := b.fromGateway(frame); err != nil {
			return jsonrpc.Message{}, err
		}
	}
}

// reopen takes one session over and tells the editor what it missed of it.
func (b *Bridge) reopen(ctx context.Context, ch *channel, id string) error {
	method := "session/load"
	o := b.book.can()
	switch {
	case o.load:
	case o.resume:
		method = "session/resume"
	default:
		return b.lostSession(id, "the gateway cannot load sessions")
	}
	params := b.book.reopening(id, len(b.promptsOf(id)))
	if params == nil {
		return nil
	}
	m, err := b.call(ctx, ch, method, params)
	// Until the gateway has noticed that the connection before is lost, what
	// that one had in hand may still be under way.
	busy := outage{since: time.Now(), limit: busyLimit}
	for err == nil && m.Error != nil && text(at(m.Error.Data, "reason")) == "SESSION_ACTIVE" {
		if busy.wait(ctx, b, errLost) != nil {
			break
		}
		m, err = b.call(ctx, ch, method, b.book.reopening(id, len(b.promptsOf(id))))
	}
	switch {
	case err != nil:
		return err
	case isEnding(m):
		b.cfg.Log("the gateway is ending; session %s waits for the next one", id)
		return errLost
	case m.Error != nil:
		return b.lostSession(id, m.Error.Message)
	}
	missed := b.book.missed(id, method == "session/load")
	b.book.goesOn(id, m.Result, b.promptsOf(id))
	b.cfg.Log("session %s is back", id)
	return b.catchUp(ctx, ch, id, missed)
}

func (k *book) can() offer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.offer
}

// promptsOf returns the prompts of a session that were sent and not answered.
func (b *Bridge) promptsOf(id string) []*request {
	var list []*request
	for _, r := range b.book.open() {
		if r.session == id && r.method == "session/prompt" && r.sent.Load() {
			list = append(list, r)
		}
	}
	return list
}

// reopening is the params with which a session is taken over; nil when the
// editor has it no longer.
func (k *book) reopening(id string, prompts int) json.RawMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[id]
	if s == nil {
		return nil
	}
	s.replay = newReplay(&s.seen, prompts)
	var o object
	o.text("sessionId", id)
	if s.cwd != "" {
		o.text("cwd", s.cwd)
	}
	o.set("mcpServers", or(at(s.params, "mcpServers"), `[]`))
	if more := at(s.params, "additionalDirectories"); more != nil {
		o.set("additionalDirectories", more)
	}
	return inBerth(o.done(), "takeover", []byte("true"))
}

func or(raw json.RawMessage, fallback string) json.RawMessage {
	if raw == nil {
		return json.RawMessage(fallback)
	}
	return raw
}

// missed ends a replay and returns what the editor has not had.
func (k *book) missed(id string, whole bool) []kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[id]
	if s == nil || s.replay == nil {
		return nil
	}
	r := s.replay
	s.replay, s.asked, s.whole = nil, r.asked, whole
	return r.end(whole)
}

// goesOn notes what goes on in a session that was taken over with these prompts
// of the editor's open.
func (k *book) goesOn(id string, result json.RawMessage, prompts []*request) {
	berth := at(result, "_meta", "berth")
	var turns []string
	if running := text(at(berth, "running")); running != "" {
		turns = append(turns, running)
	}
	for q := range jsonrpc.Elements(at(berth, "queued")) {
		turns = append(turns, text(at(q, "turnId")))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range prompts {
		r.turn, r.place, r.missing, r.waits = "", 0, false, false
	}
	if s := k.sessions[id]; s != nil {
		s.turns, s.own = turns, len(turns) <= len(prompts)
		s.recognise(prompts)
	}
}

// lostSession gives up a session that does not come back.
func (b *Bridge) lostSession(id, why string) error {
	b.cfg.Log("session %s is lost: %s", id, why)
	b.book.forget(id)
	for _, r := range b.book.open() {
		if r.session != id || !r.sent.Load() {
			continue
		}
		if err := b.giveUp(r, "The connection to the gateway was lost, and the session did not come back: "+why); err != nil {
			return err
		}
	}
	return nil
}
