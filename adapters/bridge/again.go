package bridge

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// askAgain sends what the editor asked on the channel before and was not
// answered, where doing it twice does no harm, and answers the rest.
func (b *Bridge) askAgain(ctx context.Context, ch *channel) error {
	o := b.book.can()
	for _, r := range b.book.open() {
		if !r.sent.Load() {
			continue // it has not been asked yet
		}
		if r.missing && o.await {
			if err := b.sendMissing(ctx, ch, r.session); err != nil {
				return err
			}
			if !r.sent.Load() {
				continue
			}
		}
		if r.waits && b.book.isOver(r) {
			continue // catchUp has asked; a gateway that ends has not answered
		}
		var frame []byte
		switch r.method {
		case "session/prompt":
			frame = b.await(r, o)
			r.waits = frame != nil
		case "session/new":
			if named(r.params) {
				frame = r.frame
			}
		default:
			if harmless(r.method) {
				frame = r.frame
			}
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

// harmless reports whether what a request does may be done twice.
func harmless(method string) bool {
	switch method {
	case "initialize", "authenticate", "session/list", "session/load", "session/resume", "session/close", "session/stop",
		"session/delete", "session/set_mode", "session/set_config_option", "session/set_model", "_berth/session/observe", methodAwait:
		return true
	}
	return false
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
// none runs: the prompt's, if it has reached the gateway, see awaited. Of several
// the history may have shown the turns, see recognise.
func (b *Bridge) await(r *request, o offer) []byte {
	prompts := b.promptsOf(r.session)
	turns := b.book.turnsOf(r.session)
	known := r.turn != "" || len(turns) == len(prompts) || len(turns) == 0 && len(prompts) == 1
	if !o.await || !known {
		return nil
	}
	var params object
	params.text("sessionId", r.session)
	if r.turn != "" {
		params.text("turnId", r.turn)
	} else if i := slices.Index(prompts, r); i < len(turns) {
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
		if !isUnknown(m) {
			return false, nil
		}
	} else if !b.book.older(r, text(at(m.Result, "_meta", "berth", "turnId"))) {
		return false, nil
	}
	return true, b.sendAgain(r)
}

// sendAgain sends a prompt that the gateway does not have.
func (b *Bridge) sendAgain(r *request) error {
	if r.again++; r.again > mostAgain {
		return b.giveUp(r, "The connection to the gateway is lost whenever this prompt is sent; it may be longer than the gateway takes.")
	}
	b.cfg.Log("the prompt %s had not reached the gateway; it is sent again", r.id)
	r.waits = false
	b.out.again(r)
	return nil
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
