package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// overBridge is a way through `berth bridge`, with a network that breaks.
const overBridge = "bridge"

// worker is one of those that make the mixed load: it connects, works in a
// few sessions, each in a few ways, and leaves, again and again.
type worker struct {
	b     *daemonBench
	h     *host
	book  *ledger
	name  string
	index int
	kind  string
	rnd   *rand.Rand
	dir   string
	proxy *proxy // of a bridge
	turns int
}

// newWorker makes the worker of a number, which chooses its way.
func newWorker(ctx context.Context, b *daemonBench, h *host, book *ledger, phase string, i int) (*worker, error) {
	ways := []string{overSocket, overHTTP, overSocket, overBridge, overHTTP2, overSocket}
	w := &worker{
		b: b, h: h, book: book, name: fmt.Sprintf("%s%d", phase, i), index: i, kind: ways[i%len(ways)],
		rnd: rand.New(rand.NewPCG(uint64(i), 1)), // the same in every run, as far as time allows
	}
	w.dir = filepath.Join(h.dir, "work", w.name)
	err := errors.Join(os.MkdirAll(w.dir, 0o700), os.WriteFile(filepath.Join(w.dir, "notes.txt"), []byte("a note\n"), 0o600))
	if err == nil && w.kind == overBridge {
		w.proxy, err = newProxy(ctx, h.address())
	}
	return w, err
}

// run works until the time is over. What goes wrong is a fault.
func (w *worker) run(ctx context.Context, until time.Time) {
	for time.Now().Before(until) && ctx.Err() == nil {
		if err := w.visit(ctx); err != nil {
			w.book.fault("%s: %v", w.kind, err)
		}
	}
	if w.proxy != nil {
		if err := w.proxy.close(); err != nil {
			w.book.fault("%v", err)
		}
	}
}

// connect opens a connection the worker's way.
func (w *worker) connect(ctx context.Context) (*client, error) {
	way := w.h.way(w.kind, w.index)
	if w.kind == overBridge {
		cmd := w.h.command(ctx, "bridge", "--url", w.proxy.url(), "--token-file", w.h.tokenFile())
		way = dialPipe(cmd.Args, cmd.Env, w.dir)
	}
	return dial(ctx, way, w.book, w.b.endpoint.now)
}

// visit is one connection.
func (w *worker) visit(ctx context.Context) error {
	c, err := w.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	s := &seat{c: c}
	defer func() {
		if s.c != nil {
			s.c.close()
		}
	}()
	for range 1 + w.rnd.IntN(3) {
		if s.session, err = s.c.newSession(w.dir); err != nil {
			return err
		}
		for range 1 + w.rnd.IntN(4) {
			name, act := w.choose()
			if err := act(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			w.book.count("act "+name, 1)
		}
		method := "session/close"
		if w.rnd.IntN(4) == 0 {
			method = "session/delete"
		}
		if _, err := s.c.call(method, s.session, fmt.Sprintf(`{"sessionId":%q}`, s.session)); err != nil {
			return err
		}
	}
	if w.rnd.IntN(5) == 0 { // a client that just goes
		s.c.cut()
		s.c = nil
	}
	return nil
}

// act is something to do in a session. It may leave another connection in the
// seat.
type act func(ctx context.Context, s *seat) error

// choose picks what to do next.
func (w *worker) choose() (string, act) {
	acts := []struct {
		name string
		run  act
	}{
		{"answer", w.answer}, {"answer", w.answer}, {"tools", w.tools}, {"tools", w.tools}, {"queue", w.queue},
		{"cancel", w.cancel}, {"cancel amid tools", w.cancelAmid}, {"observe", w.observe}, {"take over", w.takeover},
		{"cut", w.cut},
	}
	chosen := acts[w.rnd.IntN(len(acts))]
	if chosen.name != "cut" {
		return chosen.name, chosen.run
	}
	switch w.kind { // what breaks, and who mends it
	case overBridge:
		return "cut the bridge", w.cutBridge
	case overHTTP, overHTTP2:
		if w.rnd.IntN(2) == 0 {
			return "cut a stream", w.cutStream
		}
	}
	return "cut and load", w.cut
}

// key names a turn.
func (w *worker) key() string {
	w.turns++
	return fmt.Sprintf("%s-%d", w.name, w.turns)
}

// words is a short answer.
func (w *worker) words() wish {
	return wish{key: w.key(), chunks: 5 + w.rnd.IntN(40), every: time.Duration(1+w.rnd.IntN(5)) * time.Millisecond}
}

// toolWords is an answer behind tools that ask.
func (w *worker) toolWords() wish {
	ask := w.words()
	ask.tools = [][]string{{"write_file"}, {"shell"}, {"read_file", "write_file", "shell"}}[w.rnd.IntN(3)]
	return ask
}

// whole plays a turn and sees that each of its words came once.
func (w *worker) whole(s *seat, ask wish, meanwhile func() error) error {
	v, ch, err := s.c.prompt(s.session, ask)
	if err != nil {
		return err
	}
	if err := meanwhile(); err != nil {
		return err
	}
	if err := s.c.settle(v, ch, "end_turn"); err != nil {
		return err
	}
	if seen := s.c.endView(v); seen.chunks != ask.chunks {
		return fmt.Errorf("%d words came as %d updates", ask.chunks, seen.chunks)
	}
	return nil
}

func nothing() error { return nil }

// pause waits a random time, at most d.
func (w *worker) pause(d time.Duration) {
	time.Sleep(time.Duration(w.rnd.Int64N(int64(d))))
}
