package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// serve keeps a channel to the gateway open and passes on what comes from it.
// It returns why there is none any more.
func (b *Bridge) serve(ctx context.Context) error {
	o := outage{since: time.Now(), limit: b.cfg.StartLimit}
	for {
		ch, err := b.connect(ctx, &o)
		if err != nil {
			return err
		}
		ended := context.AfterFunc(ctx, func() { _ = ch.frames.Close() })
		err = b.begin(ctx, ch)
		if err == nil {
			o = outage{since: time.Now(), limit: b.cfg.LostLimit}
			b.out.open(ch)
			b.found()
			err = b.pump(ctx, ch)
			o.since = time.Now()
		}
		ended()
		_ = ch.frames.Close()
		b.out.pause()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isEnd(err) && b.out.isClosed():
			return errDrained
		case isEnd(err):
			return &Refused{errors.New("the gateway ended the connection")}
		case !errors.Is(err, errLost):
			return err
		}
		b.missing(nil)
		if err := o.wait(ctx, b, err); err != nil {
			return err
		}
	}
}

// pump passes frames on until the channel is lost.
func (b *Bridge) pump(ctx context.Context, ch *channel) error {
	for {
		frame, err := b.read(ctx, ch)
		if err == nil {
			err = b.fromGateway(frame)
		}
		if err != nil {
			return err
		}
	}
}

// fromGateway passes one frame on. The error is that the editor has gone, or
// that there is no use in going on.
func (b *Bridge) fromGateway(frame []byte) error {
	m, err := jsonrpc.Parse(frame)
	switch {
	case err != nil:
		b.cfg.Log("the gateway sent what is no message: %v", err)
		return nil
	case m.Kind == jsonrpc.Response:
		return b.gatewayAnswers(frame, m)
	case m.Kind == jsonrpc.Request:
		if known := b.book.ask(m.ID); known != m.ID {
			frame = with(frame, "id", []byte(known))
		}
		return b.tell(frame)
	case m.Method == "$/cancel_request":
		asked := jsonrpc.ID(at(m.Params, "requestId"))
		if known, ok := b.book.knownAs(asked); ok && known != asked {
			frame = with(frame, "params", with(m.Params, "requestId", []byte(known)))
		}
	case m.Method == "session/update":
		if frame = b.book.update(m.Params, frame); frame == nil {
			return nil
		}
	}
	return b.tell(frame)
}

// gatewayAnswers passes an answer on and notes what follows from it.
func (b *Bridge) gatewayAnswers(frame []byte, m jsonrpc.Message) error {
	if r := b.book.find(m.ID); r != nil && r.awaits {
		if done, err := b.awaited(r, m); done {
			return err
		}
	}
	if r := b.book.find(m.ID); r != nil && b.book.isOver(r) && isUnknown(m) && at(m.Error.Data, "sessionId") != nil {
		return b.giveUp(r, lostWords(r)) // a gateway that knows of no older turns
	}
	if r := b.book.find(m.ID); r != nil && b.comesTooLate(r, m) {
		b.cfg.Log("the gateway is ending; %s %s waits for the next one", r.method, r.id)
		if r.waits {
			return nil // what it waits for is no new turn, there neither
		}
		if r.method == "session/load" {
			b.book.loadsAgain(r.session) // some of the history may have come
		}
		b.out.hold(r)
		return nil
	}
	r := b.book.answered(m.ID)
	switch {
	case r == nil && m.ID != jsonrpc.NullID:
		b.cfg.Log("the gateway answers %s, which nobody asked", m.ID)
		return nil
	case r == nil:
		return b.tell(frame)
	case r.method == "initialize":
		return b.opened(r, frame, m)
	}
	// The session is known before the editor can say anything about it.
	b.book.settled(r, m)
	return b.tell(frame)
}

// comesTooLate reports whether an answer says that the gateway takes nothing new
// because it ends. It has done nothing for a prompt or a new session, and other
// requests that wait may be made twice; it is about to close the connection, so
// the next gateway can be asked.
func (b *Bridge) comesTooLate(r *request, m jsonrpc.Message) bool {
	return isEnding(m) && (r.method == "session/prompt" || r.method == "session/new" || harmless(r.method)) && !b.out.isClosed()
}

// isEnding reports whether an answer is that of a gateway that ends.
func isEnding(m jsonrpc.Message) bool {
	return m.Error != nil && text(at(m.Error.Data, "reason")) == "SHUTTING_DOWN"
}

// isUnknown reports whether an answer says that there is no such thing.
func isUnknown(m jsonrpc.Message) bool {
	return m.Error != nil && text(at(m.Error.Data, "reason")) == "NOT_FOUND"
}

// settled notes what a request has changed.
func (k *book) settled(r *request, m jsonrpc.Message) {
	if m.Error != nil {
		k.loaded(r, false)
		return
	}
	result := m.Result
	switch r.method {
	case "session/new":
		id := text(at(result, "sessionId"))
		if id == "" {
			id = text(at(result, "_meta", "berth", "sessionId"))
		}
		if id != "" {
			k.hold(id, r.params)
		}
	case "session/load", "session/resume":
		k.loaded(r, true)
	case "session/prompt":
		k.endedWith(r.session, text(at(result, "_meta", "berth", "turnId")))
	case "session/close", "session/stop", "session/delete":
		k.forget(r.session)
	case "authenticate":
		k.mu.Lock()
		defer k.mu.Unlock()
		k.signedIn = r.params
	case "logout":
		k.mu.Lock()
		defer k.mu.Unlock()
		k.signedIn = nil
	}
}

// mostEnded is of how many turns of a session it is known that they were
// answered.
const mostEnded = 64

// endedWith notes which turn a prompt was answered with.
func (k *book) endedWith(id, turn string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.sessions[id]
	if s == nil || turn == "" {
		return
	}
	if s.ended = append(s.ended, turn); len(s.ended) > mostEnded {
		s.ended = s.ended[1:]
	}
}

// begin makes a new channel speak: it sends the editor's initialize and, when
// there was a channel before, brings back what that had.
func (b *Bridge) begin(ctx context.Context, ch *channel) error {
	select {
	case <-b.book.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	hello, agreed := b.book.hello()
	switch {
	case agreed:
		return b.recover(ctx, ch, hello)
	case hello != nil: // else they were refused, and the editor may try again
		hello.sent.Store(true)
		if err := ch.frames.Write(hello.frame); err != nil {
			b.cfg.Log("initialize could not be sent: %v", err)
			return errLost
		}
		for answered := false; !answered; {
			frame, err := b.read(ctx, ch)
			if err == nil {
				err = b.fromGateway(frame)
			}
			if err != nil {
				return err
			}
			answered = b.book.find(hello.id) != hello
		}
	}
	return nil
}

// hello is the initialize that the gateway agreed to, or the first one that is
// open; nil when there is neither.
func (k *book) hello() (r *request, agreed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.agreed != nil {
		return k.agreed, true
	}
	for _, o := range k.requests {
		if o.method == "initialize" && (r == nil || o.number < r.number) {
			r = o
		}
	}
	return r, false
}

// fail answers every open request of the editor's: nobody else will.
func (b *Bridge) fail(why error) {
	what := "The gateway is gone"
	if !b.reached || isRefused(why) {
		what = "No connection" // it may be there, or never was
	}
	for _, r := range b.book.open() {
		if b.giveUp(r, fmt.Sprintf("%s: %v", what, why)) != nil {
			return
		}
	}
}

// giveUp answers a request with an error of the bridge's.
func (b *Bridge) giveUp(r *request, text string) error {
	if b.book.answered(r.id) == nil || r.answered {
		return nil
	}
	e := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Reason: "CONNECTION_LOST", Message: text}
	if r.session != "" {
		e.Data = []domain.Detail{{Key: "sessionId", Value: r.session}}
	}
	return b.refuse(r.id, e)
}
