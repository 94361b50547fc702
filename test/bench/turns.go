package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// The load of the latency figures.
const (
	present = 100 // connections, with a session each
	running = 20  // turns at any time
)

// turnsStage measures how long clients wait while others work too.
func turnsStage(ctx context.Context, b *daemonBench, r *report) error {
	for _, kind := range []string{overSocket, overHTTP, overHTTP2} {
		if err := b.latency(ctx, r, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// waits are the samples of the latency figures.
type waits struct {
	mu     sync.Mutex
	first  []time.Duration // to the first update, over the endpoint's own time
	lag    []time.Duration // of each update on its way
	cancel []time.Duration // from a cancel to the prompt's answer
	errs   []error
}

// latency measures one transport.
func (b *daemonBench) latency(ctx context.Context, r *report, kind string) (err error) {
	h, err := b.host(ctx, "turns-"+filepath.Base(kind), limits{connections: present + 10, sessions: present + 10})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	book := newLedger()
	work := filepath.Join(h.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	all, err := b.gather(ctx, h, kind, present, book)
	if err != nil {
		return err
	}
	free := make(chan seat, present)
	for _, c := range all.clients {
		session, err := c.newSession(work)
		if err != nil {
			return err
		}
		free <- seat{c, session}
	}
	w, begin := &waits{}, time.Now()
	before, err := h.usage()
	if err != nil {
		return err
	}
	b.play(free, w)
	took := time.Since(begin)
	after, err := h.usage()
	if err != nil {
		return err
	}
	if err := errors.Join(w.errs...); err != nil {
		return err
	}
	name := fmt.Sprintf("%s, %d connections, %d turns at any time", kind, present, running)
	first, p99 := spread3(w.first)
	r.hold(name+": first update over the endpoint's own time", "p99 ≤ 50 ms", p99 <= 50, "%s", first)
	lag, _ := spread3(w.lag)
	r.add(name+": an update on its way", "%s", lag)
	cancel, _ := spread3(w.cancel)
	r.add(name+": cancel to the prompt's answer", "%s", cancel)
	r.add(name+": turns, processor of the daemon", "%.0f turns/s, %.0f %% of one CPU", float64(b.daemonOptions.turns)/took.Seconds(), 100*(after.cpu-before.cpu)/took.Seconds())
	all.end()
	_, faults := book.snapshot()
	r.hold(name+": faults", "0", len(faults) == 0, "%d%s", len(faults), list(faults))
	return nil
}

// list writes what happened how often, behind a colon.
func list(faults map[string]int) string {
	var text []string
	for what, n := range faults {
		text = append(text, fmt.Sprintf("%d × %s", n, what))
	}
	if text == nil {
		return ""
	}
	return ": " + strings.Join(text, "; ")
}

// seat is a session of a client.
type seat struct {
	c       *client
	session string
}

// play runs the turns, as many at any time as there may be. One in ten is
// cancelled.
func (b *daemonBench) play(free chan seat, w *waits) {
	next := make(chan int)
	var busy sync.WaitGroup
	for range running {
		busy.Go(func() {
			for i := range next {
				s := <-free
				err := b.turn(s, i, w)
				free <- s
				if err != nil {
					w.mu.Lock()
					w.errs = append(w.errs, err)
					w.mu.Unlock()
				}
			}
		})
	}
	for i := range b.daemonOptions.turns {
		next <- i
	}
	close(next)
	busy.Wait()
}

// turn plays one turn: 20 ms until the first word, then 30 words of 10 ms.
func (b *daemonBench) turn(s seat, i int, w *waits) error {
	ask := wish{key: fmt.Sprintf("%s.%d", s.session, i), delay: 20 * time.Millisecond, chunks: 30, every: 10 * time.Millisecond}
	cancelled := i%10 == 9
	if cancelled {
		ask.chunks = 100_000
	}
	begin := time.Now()
	v, ch, err := s.c.prompt(s.session, ask)
	if err != nil {
		return err
	}
	s.c.mu.Lock()
	v.lags = make([]time.Duration, 0, 64)
	s.c.mu.Unlock()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-v.first:
	case <-limit.C:
		return errors.New("no first update")
	}
	var cancelAt time.Time
	if cancelled {
		time.Sleep(30 * time.Millisecond) // in the middle of its words
		cancelAt = time.Now()
		if err := s.c.notify("session/cancel", s.session, fmt.Sprintf(`{"sessionId":%q}`, s.session)); err != nil {
			return err
		}
	}
	r, err := s.c.wait("session/prompt", ch)
	if err != nil {
		return err
	}
	seen := s.c.endView(v)
	own, ok := b.endpoint.took(ask.key)
	switch want := map[bool]string{false: "end_turn", true: "cancelled"}[cancelled]; {
	case stopReason(r) != want:
		return fmt.Errorf("a turn ended with %q, not %q", stopReason(r), want)
	case !ok:
		return fmt.Errorf("the endpoint does not know the turn %s", ask)
	case !cancelled && seen.chunks != ask.chunks:
		return fmt.Errorf("%d chunks came as %d updates", ask.chunks, seen.chunks)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = append(w.first, seen.at.Sub(begin)-own)
	w.lag = append(w.lag, seen.lags...)
	if cancelled {
		w.cancel = append(w.cancel, r.at.Sub(cancelAt))
	}
	return nil
}
