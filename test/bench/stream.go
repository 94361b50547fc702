package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// streaming is how many clients stream at once.
const streaming = 8

// streamStage measures how many updates pass when the model is as fast as it
// is read: through one daemon, and through as many processes on stdio.
func streamStage(ctx context.Context, b *daemonBench, r *report) (err error) {
	h, err := b.host(ctx, "stream", limits{connections: 50, sessions: 50})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	work := filepath.Join(h.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	kinds := []string{overSocket, overHTTP, overHTTP2, "stdio"}
	perSecond, perUpdate := map[string][]float64{}, map[string][]float64{}
	for range 3 { // the ways take turns, so that what else runs hits all
		for _, kind := range kinds {
			rate, cost, err := b.flood(ctx, h, kind, work)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			perSecond[kind] = append(perSecond[kind], rate)
			perUpdate[kind] = append(perUpdate[kind], cost)
		}
	}
	for _, kind := range kinds {
		through := "one daemon"
		if kind == "stdio" {
			through = fmt.Sprintf("%d processes", streaming)
		}
		r.add(fmt.Sprintf("%d clients stream %d words each, %s, %s", streaming, b.streamed, kind, through),
			"%s updates/s; %s µs of processor each, %.2f of stdio", number(median(perSecond[kind])), number(median(perUpdate[kind])), median(perUpdate[kind])/median(perUpdate["stdio"]))
	}
	return nil
}

// flood streams to all clients at once. cost is the processor time of the
// agent's processes for one update, in microseconds.
func (b *daemonBench) flood(ctx context.Context, h *host, kind, work string) (rate, cost float64, err error) {
	book := newLedger()
	var seats []seat
	var pids []int
	defer func() {
		for _, s := range seats {
			s.c.close()
		}
		_, faults := book.snapshot()
		if len(faults) > 0 {
			err = errors.Join(err, fmt.Errorf("faults%s", list(faults)))
		}
	}()
	for i := range streaming {
		way := h.way(kind, i)
		if kind == "stdio" {
			cmd := h.command(ctx, "acp")
			way = dialPipe(cmd.Args, cmd.Env, work)
		}
		c, err := dial(ctx, way, book, b.endpoint.now)
		if err != nil {
			return 0, 0, err
		}
		session, err := c.newSession(work)
		if err != nil {
			return 0, 0, err
		}
		seats = append(seats, seat{c, session})
		if p, ok := c.wire.(*pipe); ok {
			pids = append(pids, p.cmd.Process.Pid)
		}
	}
	if pids == nil {
		pids = []int{h.cmd.Process.Pid}
	}
	before, err := processor(pids)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	errs := make([]error, len(seats))
	var busy sync.WaitGroup
	for i, s := range seats {
		busy.Go(func() { errs[i] = b.drink(s, b.streamed) })
	}
	busy.Wait()
	took := time.Since(begin).Seconds()
	after, err := processor(pids)
	updates := float64(len(seats) * b.streamed)
	return updates / took, (after - before) / updates * 1e6, errors.Join(append(errs, err)...)
}

// drink plays one turn of many words at once.
func (b *daemonBench) drink(s seat, words int) error {
	v, ch, err := s.c.prompt(s.session, wish{key: s.session, chunks: words})
	if err != nil {
		return err
	}
	if err := s.c.settle(v, ch, "end_turn"); err != nil {
		return err
	}
	if seen := s.c.endView(v); seen.chunks != words {
		return fmt.Errorf("%d words came as %d updates", words, seen.chunks)
	}
	return nil
}

// processor is the processor time of some processes, in seconds.
func processor(pids []int) (seconds float64, err error) {
	for _, pid := range pids {
		u, err := usageOf(pid)
		if err != nil {
			return 0, err
		}
		seconds += u.cpu
	}
	return seconds, nil
}
