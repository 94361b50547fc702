package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// spare is how many connections more than the idle ones a daemon takes.
const spare = 5

// idleStage measures what connections cost that do nothing. The daemons of all
// kinds rest at the same time.
func idleStage(ctx context.Context, b *daemonBench, r *report) (err error) {
	var all []*rested
	defer func() {
		for _, d := range all {
			d.crowd.end()
			err = errors.Join(err, d.h.stop())
		}
	}()
	for _, kind := range []string{overSocket, overHTTP, overHTTP2, overShared} {
		for _, had := range []past{hadNothing, hadSession, hadTurn} {
			d, err := b.prepare(ctx, kind, had)
			if d != nil {
				all = append(all, d)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	if err := pause(ctx, b.settle); err != nil {
		return err
	}
	for _, d := range all {
		if err := d.fill(ctx, b, r); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	if err := pause(ctx, b.settle); err != nil {
		return err
	}
	for _, d := range all {
		if err := d.judge(r); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	for _, d := range all {
		if err := d.leave(ctx, b, r); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return nil
}

// pause waits for d, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// past is what idle clients did before.
type past int

const (
	hadNothing past = iota
	hadSession      // opened a session
	hadTurn         // and had a turn of some hundred words at once
)

func (p past) String() string {
	return [...]string{"", " with a session", " with a session that had a turn"}[p]
}

// rested is a daemon whose clients do nothing.
type rested struct {
	h      *host
	kind   string
	had    past
	name   string
	book   *ledger
	work   string
	crowd  crowd
	before usage
	soon   usage // right after all have connected
	base   page
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

// prepare starts a daemon and has it do once what is made once.
func (b *daemonBench) prepare(ctx context.Context, kind string, had past) (*rested, error) {
	d := &rested{kind: kind, had: had, name: kind + ", idle" + had.String(), book: newLedger()}
	place := strings.NewReplacer(" ", "-", ",", "", "/", "").Replace(d.name)
	h, err := b.host(ctx, place, limits{connections: b.daemonOptions.idle + spare, sessions: b.daemonOptions.idle + 10})
	if err != nil {
		return nil, err
	}
	d.h, d.work = h, filepath.Join(h.dir, "work")
	if err := os.Mkdir(d.work, 0o700); err != nil {
		return d, err
	}
	err = d.populate(ctx, b, 10)
	if err == nil { // opens the database for reading, which stays open
		_, err = d.crowd.clients[0].call("session/list", "", `{}`)
	}
	d.crowd.end()
	return d, err
}

// populate connects clients.
func (d *rested) populate(ctx context.Context, b *daemonBench, n int) error {
	c, err := b.gather(ctx, d.h, d.kind, n, d.book)
	d.crowd = *c
	for i := 0; d.had >= hadSession && err == nil && i < len(c.clients); i++ {
		s := seat{c: c.clients[i]}
		if s.session, err = s.c.newSession(d.work); err == nil && d.had == hadTurn {
			err = b.drink(s, 300)
		}
	}
	return err
}

// fill reads the base and connects all.
func (d *rested) fill(ctx context.Context, b *daemonBench, r *report) (err error) {
	if d.before, d.base, err = d.h.read(ctx); err != nil {
		return err
	}
	if err := d.populate(ctx, b, b.daemonOptions.idle); err != nil {
		return err
	}
	if d.soon, err = d.h.usage(); err != nil || d.had != hadNothing {
		return err
	}
	took, _ := spread3(d.crowd.took)
	r.add(fmt.Sprintf("%s: %d connects, eight at a time", d.kind, len(d.crowd.clients)), "%.2f s; each %s", d.crowd.all.Seconds(), took)
	return b.overfill(ctx, r, d.h, d.kind, &d.crowd, d.book)
}

// judge reads what the connections cost. The aim is one for connections; what
// a session may cost besides is that of sessions.
func (d *rested) judge(r *report) error {
	after, full, err := d.h.read(context.Background())
	if err != nil {
		return err
	}
	n, most := float64(len(d.crowd.clients)), 60.0
	if d.had != hadNothing {
		most += 40
	}
	each := (after.rss - d.before.rss) / n
	r.hold(d.name+": resident memory for each", fmt.Sprintf("≤ %.0f KiB", most), each <= most, "**%.1f KiB** (right after connecting %.1f, PSS %.1f; %d of them, base %.1f MiB)",
		each, (d.soon.rss-d.before.rss)/n, (after.pss-d.before.pss)/n, len(d.crowd.clients), d.before.rss/1024)
	r.add(d.name+": goroutines, descriptors, heap for each", "%.1f, %.1f, %.1f KiB",
		(full["go_goroutines"]-d.base["go_goroutines"])/n, float64(after.fds-d.before.fds)/n, (full["go_gc_heap_live_bytes"]-d.base["go_gc_heap_live_bytes"])/n/1024)
	return nil
}

// leave disconnects all and looks at what is left.
func (d *rested) leave(ctx context.Context, b *daemonBench, r *report) error {
	d.crowd.end()
	_, faults := d.book.snapshot()
	r.hold(d.name+": faults", "0", len(faults) == 0, "%d%s", len(faults), list(faults))
	gone, left, err := d.h.quiet(ctx, b.calm, func(u usage, p page) bool {
		return u.fds <= d.before.fds && p["go_goroutines"] <= d.base["go_goroutines"]
	})
	if err != nil {
		return err
	}
	r.hold(d.name+": left behind", "0 goroutines, 0 descriptors", left["go_goroutines"] <= d.base["go_goroutines"] && gone.fds <= d.before.fds,
		"%.0f goroutines, %d descriptors", left["go_goroutines"]-d.base["go_goroutines"], gone.fds-d.before.fds)
	return nil
}

// read reads what a daemon uses.
func (h *host) read(ctx context.Context) (usage, page, error) {
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
		if tries == 300 {
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
