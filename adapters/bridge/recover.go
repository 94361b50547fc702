package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
	return b.askAgain(ch)
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
	case m.Error != nil:
		return b.lostSession(id, m.Error.Message)
	}
	for _, frame := range b.book.missed(id, method == "session/load") {
		if err := b.tell(frame); err != nil {
			return err
		}
	}
	b.book.goesOn(id, m.Result, len(b.promptsOf(id)))
	b.cfg.Log("session %s is back", id)
	return nil
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
func (k *book) missed(id string, whole bool) [][]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[id]
	if s == nil || s.replay == nil {
		return nil
	}
	r := s.replay
	s.replay = nil
	return r.end(whole)
}

// goesOn notes what goes on in a session that was taken over with so many
// prompts of the editor's open.
func (k *book) goesOn(id string, result json.RawMessage, prompts int) {
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
	if s := k.sessions[id]; s != nil {
		s.turns, s.own = turns, len(turns) <= prompts
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

// askAgain sends what the editor asked on the channel before and was not
// answered, where doing it twice does no harm, and answers the rest.
func (b *Bridge) askAgain(ch *channel) error {
	o := b.book.can()
	for _, r := range b.book.open() {
		if !r.sent.Load() {
			continue // it has not been asked yet
		}
		var frame []byte
		switch r.method {
		case "session/prompt":
			frame = b.await(r, o)
		case "session/new":
			if named(r.params) {
				frame = r.frame
			}
		case "initialize", "authenticate", "session/list", "session/load", "session/resume", "session/close", "session/stop",
			"session/delete", "session/set_mode", "session/set_config_option", "session/set_model", "_berth/session/observe":
			frame = r.frame
		case methodAwait:
			frame = r.frame
		}
		if frame == nil {
			if err := b.giveUp(r, lostWords(r)); err != nil {
				return err
			}
			continue
		}
		if r.method == "session/load" {
			b.book.loadsAgain(r.session)
		}
		if err := ch.frames.Write(frame); err != nil {
			return errLost
		}
		if r.cancelled.Load() {
			if err := ch.frames.Write(cancelAgain(r)); err != nil {
				return errLost
			}
		}
	}
	return nil
}

// cancelAgain is what the editor sent to end a request.
func cancelAgain(r *request) []byte {
	if r.method == "session/prompt" {
		return cancelOf(r.session)
	}
	return notification("$/cancel_request", `{"requestId":`+string(r.id)+`}`)
}

// await is the frame that waits for the end of a prompt's turn, nil when that
// cannot be waited for. With one prompt open it asks for the newest turn when
// none runs: the prompt's, if it has reached the gateway, see awaited.
func (b *Bridge) await(r *request, o offer) []byte {
	prompts := b.promptsOf(r.session)
	turns := b.book.turnsOf(r.session)
	if !o.await || len(turns) != len(prompts) && (len(turns) > 0 || len(prompts) > 1) {
		return nil
	}
	var params object
	params.text("sessionId", r.session)
	if i := slices.Index(prompts, r); i < len(turns) {
		params.text("turnId", turns[i])
	} else {
		r.awaits = true
	}
	frame, err := jsonrpc.AppendRequest(nil, r.id, methodAwait, json.RawMessage(params.done()))
	if err != nil {
		return nil
	}
	return frame
}

func (k *book) turnsOf(id string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.sessions[id]; s != nil {
		return s.turns
	}
	return nil
}

// awaited judges the answer to an await for the newest turn. When that is an
// older turn than the prompt's, the prompt never reached the gateway, and is
// sent again: not for ever, for it may be what ends the connection. done is
// false when the answer is the prompt's.
func (b *Bridge) awaited(r *request, m jsonrpc.Message) (done bool, err error) {
	r.awaits = false
	if m.Error != nil {
		if text(at(m.Error.Data, "reason")) != "NOT_FOUND" {
			return false, nil
		}
	} else if !b.book.older(r, text(at(m.Result, "_meta", "berth", "turnId"))) {
		return false, nil
	}
	if r.again++; r.again > mostAgain {
		return true, b.giveUp(r, "The connection to the gateway is lost whenever this prompt is sent; it may be longer than the gateway takes.")
	}
	b.cfg.Log("the prompt %s had not reached the gateway; it is sent again", r.id)
	b.out.again(r)
	return true, nil
}

// mostAgain is how often a prompt is sent again.
const mostAgain = 2

// older reports whether a turn is older than a prompt.
func (k *book) older(r *request, turn string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[r.session]
	return s != nil && turn != "" && (slices.Contains(s.ended, turn) || s.seen.before(turn, r.number))
}

// named reports whether a session/new names its session, so that asking twice
// gives the same one.
func named(params json.RawMessage) bool {
	key := spellings{[]string{"sessionKey", "sessionLabel", "label"}, []string{"sessionKey", "session", "key", "sessionLabel", "label"}, nil}
	reset := spellings{[]string{"resetSession"}, []string{"resetSession", "reset"}, nil}
	return key.in(params) && !reset.in(params)
}

// lostWords says what became of a request that cannot be sent twice.
func lostWords(r *request) string {
	if r.method == "session/prompt" {
		return "The connection to the gateway was lost before the turn's end was told, and the turn does not run any more. " +
			"What it did is in the session; send the prompt again if nothing of it is there."
	}
	return "The connection to the gateway was lost before " + r.method + " was answered. It may have been done; ask again if it was not."
}

// loadsAgain lets a replay that was interrupted go on where it was.
func (k *book) loadsAgain(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[id]
	if s == nil {
		s = k.loading[id]
	}
	if s != nil {
		s.replay = newReplay(&s.seen, 0)
		s.replay.direct = true
	}
}
