package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// spare is how many connections more than the idle ones a daemon takes.
const spare = 5

// idleStage measures what connections cost that do nothing.
func idleStage(ctx context.Context, b *daemonBench, r *report) error {
	for _, kind := range []string{overSocket, overHTTP, overHTTP2} {
		for _, sessions := range []bool{false, true} {
			if err := b.idle(ctx, r, kind, sessions); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	return nil
}

// crowd are clients that are connected.
type crowd struct {
	clients []*client
	took    []time.Duration // to connect and initialize, each
	all     time.Duration   // for all of them, eight at a time
}

// end disconnects all.
func (c *crowd) end() {
	var leaving sync.WaitGroup
	for part := range slices.Chunk(c.clients, max(1, len(c.clients)/8)) {
		leaving.Go(func() {
			for _, c := range part {
				c.close()
			}
		})
	}
	leaving.Wait()
	c.clients = nil
}

// gather connects n clients, eight at a time.
func (b *daemonBench) gather(ctx context.Context, h *host, kind string, n int, book *ledger) (*crowd, error) {
	c := &crowd{}
	var mu sync.Mutex
	var errs []error
	next := make(chan int)
	var busy sync.WaitGroup
	begin := time.Now()
	for range 8 {
		busy.Go(func() {
			for i := range next {
				start := time.Now()
				one, err := dial(ctx, h.way(kind, i), book, b.endpoint.now)
				took := time.Since(start)
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				} else {
					c.clients, c.took = append(c.clients, one), append(c.took, took)
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	busy.Wait()
	c.all = time.Since(begin)
	return c, errors.Join(errs...)
}

// idle measures one kind of connection, with a session each or without.
func (b *daemonBench) idle(ctx context.Context, r *report, kind string, sessions bool) (err error) {
	name := fmt.Sprintf("%s, idle", kind)
	if sessions {
		name += " with a session"
	}
	h, err := b.host(ctx, "idle-"+filepath.Base(kind)+fmt.Sprint(sessions), limits{connections: b.daemonOptions.idle + spare, sessions: b.daemonOptions.idle + 10})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	book := newLedger()
	work := filepath.Join(h.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	populate := func(n int) (*crowd, error) {
		c, err := b.gather(ctx, h, kind, n, book)
		for i := 0; sessions && err == nil && i < len(c.clients); i++ {
			_, err = c.clients[i].newSession(work)
		}
		return c, err
	}
	first, err := populate(10) // what is made once is not counted
	if err != nil {
		return err
	}
	first.end()
	before, base, err := h.rest(ctx, b.settle)
	if err != nil {
		return err
	}
	c, err := populate(b.daemonOptions.idle)
	if err != nil {
		return err
	}
	soon, err := h.usage()
	if err != nil {
		return err
	}
	after, full, err := h.rest(ctx, b.settle)
	if err != nil {
		return err
	}
	n := float64(len(c.clients))
	each := (after.rss - before.rss) / n
	r.hold(name+": resident memory for each", "≤ 60 KiB", each <= 60, "**%.1f KiB** (right after %.1f, PSS %.1f; of %d, base %.1f MiB)",
		each, (soon.rss-before.rss)/n, (after.pss-before.pss)/n, len(c.clients), before.rss/1024)
	r.add(name+": goroutines, descriptors, heap for each", "%.1f, %.1f, %.1f KiB",
		(full["go_goroutines"]-base["go_goroutines"])/n, float64(after.fds-before.fds)/n, (full["go_memstats_heap_alloc_bytes"]-base["go_memstats_heap_alloc_bytes"])/n/1024)
	if !sessions {
		took, _ := spread3(c.took)
		r.add(fmt.Sprintf("%s: %d connects, eight at a time", kind, len(c.clients)), "%.2f s; each %s", c.all.Seconds(), took)
		if err := b.overfill(ctx, r, h, kind, c, book); err != nil {
			return err
		}
	}
	c.end()
	_, faults := book.snapshot()
	for fault, n := range faults {
		r.hold(name+": faults", "0", false, "%d × %s", n, fault)
	}
	gone, left, err := h.quiet(ctx, b.calm, func(u usage, p page) bool {
		return u.fds <= before.fds && p["go_goroutines"] <= base["go_goroutines"]
	})
	if err != nil {
		return err
	}
	r.hold(name+": left behind", "0 goroutines, 0 descriptors", left["go_goroutines"] <= base["go_goroutines"] && gone.fds <= before.fds,
		"%.0f goroutines, %d descriptors", left["go_goroutines"]-base["go_goroutines"], gone.fds-before.fds)
	return nil
}

// rest waits until a daemon's memory has settled and reads it.
func (h *host) rest(ctx context.Context, d time.Duration) (usage, page, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return usage{}, nil, context.Cause(ctx)
	}
	u, err := h.usage()
	if err != nil {
		return usage{}, nil, err
	}
	p, err := h.scrape(ctx)
	return u, p, err
}

// overfill sees what happens at gateway.max_connections: those beyond are told
// to come back, those there stay, and a place that is left is taken.
func (b *daemonBench) overfill(ctx context.Context, r *report, h *host, kind string, c *crowd, book *ledger) error {
	refused, polite := 0, 0
	for i := range 2 * spare {
		one, err := dial(ctx, h.way(kind, i), book, b.endpoint.now)
		var no *refusedError
		switch {
		case errors.As(err, &no) && no.status == 503:
			refused++
			if no.retry != "" {
				polite++
			}
		case err != nil:
			return err
		default:
			c.clients = append(c.clients, one)
		}
	}
	if _, err := c.clients[0].call("session/list", "", `{}`); err != nil {
		return fmt.Errorf("a connection of a full gateway: %w", err)
	}
	last := len(c.clients) - 1
	c.clients[last].close()
	c.clients = c.clients[:last]
	var one *client
	err := errors.New("no place")
	for tries := 0; err != nil; tries++ { // as it was told to
		if tries == 20 {
			return fmt.Errorf("a place that was left: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
		one, err = dial(ctx, h.way(kind, 0), book, b.endpoint.now)
	}
	c.clients = append(c.clients, one)
	r.hold(kind+": beyond max_connections", "503 and Retry-After, the others stay", refused == spare && polite == spare,
		"%d of %d refused, %d told when to come back; a place that was left was taken", refused, 2*spare, polite)
	return nil
}
