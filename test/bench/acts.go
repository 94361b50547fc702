package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func (w *worker) answer(_ context.Context, s *seat) error {
	return w.whole(s, w.words(), nothing)
}

func (w *worker) tools(_ context.Context, s *seat) error {
	return w.whole(s, w.toolWords(), nothing)
}

// queue sends a prompt behind one that runs.
func (w *worker) queue(_ context.Context, s *seat) error {
	_, first, err := s.c.prompt(s.session, w.words())
	if err != nil {
		return err
	}
	v, second, err := s.c.prompt(s.session, w.words())
	if err != nil {
		return err
	}
	r, err := s.c.wait("session/prompt", first)
	if err != nil {
		return err
	}
	w.book.count("prompt "+stopReason(r), 1)
	return s.c.settle(v, second, "end_turn")
}

// cancel ends a turn in the middle of its words.
func (w *worker) cancel(_ context.Context, s *seat) error {
	v, ch, err := s.c.prompt(s.session, wish{key: w.key(), chunks: 100_000, every: 2 * time.Millisecond})
	if err != nil {
		return err
	}
	if err := await(v.first); err != nil {
		return err
	}
	w.pause(50 * time.Millisecond)
	if err := s.c.notify("session/cancel", s.session, fmt.Sprintf(`{"sessionId":%q}`, s.session)); err != nil {
		return err
	}
	return s.c.settle(v, ch, "cancelled")
}

// cancelAmid ends a turn anywhere.
func (w *worker) cancelAmid(_ context.Context, s *seat) error {
	v, ch, err := s.c.prompt(s.session, w.toolWords())
	if err != nil {
		return err
	}
	w.pause(80 * time.Millisecond)
	if err := s.c.notify("session/cancel", s.session, fmt.Sprintf(`{"sessionId":%q}`, s.session)); err != nil {
		return err
	}
	return s.c.settle(v, ch, "cancelled", "end_turn")
}

// observe has another client watch a turn, and answer its questions too.
func (w *worker) observe(ctx context.Context, s *seat) (err error) {
	other, err := dial(ctx, w.h.way(overSocket, w.index+1), w.book, w.b.endpoint.now)
	if err != nil {
		return fmt.Errorf("connect the observer: %w", err)
	}
	defer other.close()
	seen := other.watch(s.session)
	if _, err := other.call("_berth/session/observe", s.session, fmt.Sprintf(`{"sessionId":%q,"replay":true}`, s.session)); err != nil {
		return err
	}
	if err := w.whole(s, w.toolWords(), nothing); err != nil {
		return err
	}
	if err := await(seen.first); err != nil {
		return fmt.Errorf("the observer: %w", err)
	}
	if w.rnd.IntN(2) == 0 {
		return nil // it just leaves
	}
	_, err = other.call("_berth/session/unobserve", s.session, fmt.Sprintf(`{"sessionId":%q}`, s.session))
	return err
}

// takeover has another client take the session in the middle of a turn, and go
// on with it.
func (w *worker) takeover(ctx context.Context, s *seat) error {
	v, ch, err := s.c.prompt(s.session, w.toolWords())
	if err != nil {
		return err
	}
	if err := await(v.begun); err != nil {
		return err
	}
	w.pause(60 * time.Millisecond)
	other, err := dial(ctx, w.h.way(overSocket, w.index+1), w.book, w.b.endpoint.now)
	if err != nil {
		return err
	}
	if err := w.load(&seat{other, s.session}); err != nil {
		other.close()
		return err
	}
	err = s.c.settle(v, ch, "end_turn")
	s.c.close()
	s.c = other
	if err != nil {
		return fmt.Errorf("the prompt of the one before: %w", err)
	}
	// What its turn told may still be on the way here. It is here before this
	// answer.
	if _, err := other.call("session/list", "", "{}"); err != nil {
		return err
	}
	return w.answer(ctx, s)
}

// load opens a session, whoever has it.
func (w *worker) load(s *seat) error {
	if err := s.c.wire.listen(s.session); err != nil {
		return err
	}
	_, err := s.c.call("session/load", s.session,
		fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[],"_meta":{"berth":{"takeover":true}}}`, s.session, w.dir))
	return err
}

// cut breaks the connection in the middle of a turn, comes back, loads the
// session and waits for the end.
func (w *worker) cut(ctx context.Context, s *seat) error {
	v, _, err := s.c.prompt(s.session, w.toolWords())
	if err != nil {
		return err
	}
	if err := await(v.begun); err != nil {
		return err
	}
	w.pause(80 * time.Millisecond)
	s.c.cut()
	s.c = nil
	c, err := w.connect(ctx)
	if err != nil {
		return fmt.Errorf("come back: %w", err)
	}
	s.c = c
	if err := w.load(s); err != nil {
		return err
	}
	r, err := c.call("_berth/session/await", s.session, fmt.Sprintf(`{"sessionId":%q}`, s.session))
	if err != nil {
		return err
	}
	w.book.count("prompt "+stopReason(r), 1)
	if stopReason(r) != "end_turn" {
		return fmt.Errorf("the turn ended with %q", stopReason(r))
	}
	return nil
}

// cutBridge breaks the network behind a bridge. Its client loses nothing.
func (w *worker) cutBridge(_ context.Context, s *seat) error {
	return w.whole(s, w.toolWords(), func() error {
		for range 1 + w.rnd.IntN(3) {
			w.pause(60 * time.Millisecond)
			w.proxy.cut()
		}
		return nil
	})
}

// cutStream breaks the stream of a session and opens it again behind the last
// event.
func (w *worker) cutStream(_ context.Context, s *seat) error {
	wire, ok := s.c.wire.(*streams)
	if !ok { // somebody took over
		return w.whole(s, w.words(), nothing)
	}
	return w.whole(s, w.toolWords(), func() error {
		w.pause(60 * time.Millisecond)
		return wire.again(s.session)
	})
}

// await waits for something that must happen.
func await(ch <-chan struct{}) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-ch:
		return nil
	case <-limit.C:
		return errors.New("no update")
	}
}
