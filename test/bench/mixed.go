package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// mixedStage has many clients do all there is to do for some minutes and looks
// at what is left afterwards.
func mixedStage(ctx context.Context, b *daemonBench, r *report) (err error) {
	h, err := b.host(ctx, "mixed", limits{connections: 1000, sessions: 1000})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	warm := newLedger()
	if err := b.labour(ctx, h, warm, "warm", min(b.length/5, 10*time.Second)); err != nil {
		return err
	}
	if _, faults := warm.snapshot(); len(faults) > 0 {
		return fmt.Errorf("already while warming up%s", list(faults))
	}
	before, base, err := h.quiet(ctx, b.calm, nil)
	if err != nil {
		return err
	}
	begun, book, trend := b.endpoint.accounts(), newLedger(), &trend{}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { trend.follow(watching, h) })
	err = b.labour(ctx, h, book, "mixed", b.length)
	stop()
	watch.Wait()
	if err := errors.Join(err, trend.err); err != nil {
		return err
	}
	after, left, err := h.quiet(ctx, b.calm, func(u usage, p page) bool {
		return u.fds <= before.fds && u.children <= before.children && p["go_goroutines"] <= base["go_goroutines"]
	})
	if err != nil {
		return err
	}
	r.work(book, h, b.length)
	name := fmt.Sprintf("%s of mixed load: ", b.length)
	r.hold(name+"goroutines, descriptors, children afterwards", "back to base",
		left["go_goroutines"] <= base["go_goroutines"] && after.fds <= before.fds && after.children <= before.children,
		"%.0f → %.0f, %d → %d, %d → %d", base["go_goroutines"], left["go_goroutines"], before.fds, after.fds, before.children, after.children)
	trend.judge(r, name)
	r.hold(name+"what /metrics still counts", "0", left.open() == 0,
		"%.0f connections, sessions, turns, prompts and questions", left.open())
	compare(r, name, base, left, begun, b.endpoint.accounts(), book)
	return nil
}

// labour runs the workers.
func (b *daemonBench) labour(ctx context.Context, h *host, book *ledger, phase string, length time.Duration) error {
	until := time.Now().Add(length)
	var workers []*worker
	for i := range b.workers {
		w, err := newWorker(ctx, b, h, book, phase, i)
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	var busy sync.WaitGroup
	for _, w := range workers {
		busy.Go(func() { w.run(ctx, until) })
	}
	busy.Wait()
	return context.Cause(ctx)
}

// quiet waits until a daemon has come to rest, for at most so many seconds.
// Without enough that is when nothing has changed for 10 seconds.
func (h *host) quiet(ctx context.Context, seconds int, enough func(usage, page) bool) (u usage, p page, err error) {
	same := 0
	for range seconds {
		last := [3]float64{float64(u.fds), float64(u.children), p["go_goroutines"]}
		if err := pause(ctx, time.Second); err != nil {
			return u, p, err
		}
		if u, p, err = h.read(ctx); err != nil {
			return u, p, err
		}
		if same++; last != [3]float64{float64(u.fds), float64(u.children), p["go_goroutines"]} {
			same = 0
		}
		if enough != nil && enough(u, p) || enough == nil && same == 10 && p.open() == 0 {
			return u, p, nil
		}
	}
	return u, p, nil
}

// open is how much of a daemon's work goes on.
func (p page) open() float64 {
	return p.sum("berth_gateway_connections") + p.sum("berth_sessions") + p.sum("berth_turns_running") +
		p.sum("berth_prompts_queued") + p.sum("berth_permissions_pending")
}

// work tells what was done and what went wrong.
func (r *report) work(book *ledger, h *host, length time.Duration) {
	counts, faults := book.snapshot()
	var acts []string
	for what, n := range counts {
		if act, ok := strings.CutPrefix(what, "act "); ok {
			acts = append(acts, fmt.Sprintf("%s %d", act, n))
		}
	}
	slices.Sort(acts)
	r.add(fmt.Sprintf("%s of mixed load: what was done", length), "%s", strings.Join(acts, ", "))
	r.hold("protocol errors and other faults", "0", len(faults) == 0, "%d%s", len(faults), list(faults))
	r.hold("unanswered requests", "0", counts["unanswered"] == 0, "%d", counts["unanswered"])
	n, first, err := h.errorsInLog()
	if err != nil {
		first = err.Error()
	}
	r.hold("errors in the daemon's log", "0", n == 0 && err == nil, "%d %s", n, first)
}

// trend is how the daemon's memory goes.
type trend struct {
	minutes, rss, heap []float64 // MiB
	err                error
}

// follow takes a sample every two seconds until ctx ends.
func (t *trend) follow(ctx context.Context, h *host) {
	begin, tick := time.Now(), time.NewTicker(2*time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		u, err := h.usage()
		var p page
		if err == nil {
			p, err = h.scrape(context.WithoutCancel(ctx))
		}
		if err != nil {
			t.err = err
			return
		}
		t.minutes = append(t.minutes, time.Since(begin).Minutes())
		t.rss = append(t.rss, u.rss/1024)
		t.heap = append(t.heap, p["go_gc_heap_live_bytes"]/(1<<20))
	}
}

// judge fits lines, without the first fifth.
func (t *trend) judge(r *report, name string) {
	from := len(t.minutes) / 5
	if len(t.minutes)-from < 3 {
		r.add(name+"memory", "too short to tell")
		return
	}
	for _, m := range []struct {
		what   string
		values []float64
	}{{"resident memory", t.rss}, {"heap after each collection", t.heap}} {
		v := m.values[from:]
		up := slope(t.minutes[from:], v)
		r.hold(name+m.what, "≤ 0.2 MiB/min", up <= 0.2, "**%+.2f MiB/min** (%.1f to %.1f MiB, median %.1f, %d samples)", up, slices.Min(v), slices.Max(v), median(v), len(v))
	}
}

// compare holds the daemon's metrics against what was counted outside. A turn
// that was cancelled amid its tools may or may not have come to each of them.
func compare(r *report, name string, base, left page, begun, done accounts, book *ledger) {
	counts, _ := book.snapshot()
	slack := float64(counts["act cancel amid tools"])
	grew := func(family string, with ...string) float64 {
		return left.sum(family, with...) - base.sum(family, with...)
	}
	for _, c := range []struct {
		what        string
		told, count float64
		slack       float64
	}{
		{"turns ended", grew("berth_turns_total", `outcome="end_turn"`), float64(counts["prompt end_turn"]), 0},
		{"turns cancelled", grew("berth_turns_total", `outcome="cancelled"`), float64(counts["prompt cancelled"]), 0},
		{"turns failed", grew("berth_turns_total", `outcome="failed"`), 0, 0},
		{"requests to the model", grew("berth_model_requests_total"), float64(done.requests - begun.requests), slack},
		{"tokens in", grew("berth_model_tokens_total", `type="input"`), float64(done.tokensIn - begun.tokensIn), 100 * slack},
		{"tokens out", grew("berth_model_tokens_total", `type="output"`), float64(done.tokensOut - begun.tokensOut), 50 * slack},
		{"tool calls", grew("berth_tool_calls_total"), float64(done.calls - begun.calls), slack},
		{"permissions allowed", grew("berth_permissions_total", `outcome="allowed"`), float64(counts["permission allowed"]), slack},
		{"permissions rejected", grew("berth_permissions_total", `outcome="rejected"`), float64(counts["permission rejected"]), slack},
		{"troubles", grew("berth_troubles_total"), 0, 0},
	} {
		diff := c.told - c.count
		r.hold(name+"/metrics, "+c.what, "as counted outside", diff <= c.slack && -diff <= c.slack,
			"%.0f, counted %.0f%s", c.told, c.count, map[bool]string{true: fmt.Sprintf(" (± %.0f, cancelled amid tools)", c.slack), false: ""}[c.slack > 0])
	}
}
