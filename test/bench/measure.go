package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// measure is one figure. run takes one sample of a program.
type measure struct {
	key    string // for -only
	what   string
	unit   string
	aim    string // what docs/performance.md promises
	rounds int
	run    func(context.Context, *bench, *program) (float64, error)
}

// bench is what all measures share.
type bench struct {
	provider *provider
	sessions int
	turns    int
	chunks   int
	loads    map[string]string // program -> session with many turns
}

// measures lists every figure in the order of the table.
func (b *bench) measures(rounds int) []measure {
	few := max(rounds/4, 3)
	all := []measure{
		{"start", "spawn to the answer of `initialize`", "ms", "≤ 3 ×", rounds, start},
		{"fresh", "the same with an empty data directory", "ms", "", rounds, fresh},
		{"memory", "resident memory after `initialize`", "MiB", "≤ 20 MiB", rounds, memory},
		{"session", fmt.Sprintf("memory per idle session, %d of them", b.sessions), "KiB", "≤ 40 KiB", few, idle},
		{"stream", fmt.Sprintf("%d streamed chunks", b.chunks), "updates/s", "≥ 60,000", rounds, stream},
		{"first", "first text, over a direct call of the endpoint", "ms", "≤ 1.5 ms", few, first},
		{"cancel", "`session/cancel` to the answer of the prompt", "ms", "≤ 2 ms", rounds, cancelled},
		{"load", fmt.Sprintf("`session/load` of %d turns", b.turns), "ms", "≤ 3 ×", rounds, load},
	}
	if runtime.GOOS == "windows" {
		// Nothing here asks Windows how much memory a process has.
		all = slices.DeleteFunc(all, func(m measure) bool { return m.key == "memory" || m.key == "session" })
	}
	return all
}

// with starts a program, initializes it, runs fn and stops it.
func with(ctx context.Context, p *program, fn func(*process) error) error {
	c, _, err := p.ready(ctx)
	if err != nil {
		return err
	}
	return errors.Join(fn(c), c.stop())
}

// warm is with, a session and one turn, so that nothing lazy is measured.
func warm(ctx context.Context, p *program, fn func(c *process, session string) error) error {
	return with(ctx, p, func(c *process) error {
		session, err := c.session(p.dir)
		if err != nil {
			return err
		}
		if _, _, err := turnOf(c, session, "chunks=1"); err != nil {
			return err
		}
		return fn(c, session)
	})
}

// turnOf plays one turn to its end.
func turnOf(c *process, session, wish string) (*turn, reply, error) {
	t, ch, err := c.prompt(session, wish)
	if err != nil {
		return nil, reply{}, err
	}
	r, err := c.await("session/prompt", ch)
	return t, r, err
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func start(ctx context.Context, _ *bench, p *program) (float64, error) {
	c, took, err := p.ready(ctx)
	if err != nil {
		return 0, err
	}
	return ms(took), c.stop()
}

func fresh(ctx context.Context, b *bench, p *program) (float64, error) {
	dir, err := os.MkdirTemp("", "berth-bench-fresh-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	return start(ctx, b, &program{name: p.name, command: p.command, dir: dir})
}

func memory(ctx context.Context, _ *bench, p *program) (kib float64, err error) {
	err = with(ctx, p, func(c *process) error {
		kib, err = resident(ctx, c.cmd.Process.Pid)
		return err
	})
	return kib / 1024, err
}

func idle(ctx context.Context, b *bench, p *program) (slope float64, err error) {
	err = with(ctx, p, func(c *process) error {
		if _, err := c.session(p.dir); err != nil {
			return err
		}
		before, err := resident(ctx, c.cmd.Process.Pid)
		if err != nil {
			return err
		}
		for range b.sessions {
			if _, err := c.session(p.dir); err != nil {
				return err
			}
		}
		after, err := resident(ctx, c.cmd.Process.Pid)
		slope = (after - before) / float64(b.sessions)
		return err
	})
	return slope, err
}

func stream(ctx context.Context, b *bench, p *program) (perSecond float64, err error) {
	err = warm(ctx, p, func(c *process, session string) error {
		begin := time.Now()
		t, r, err := turnOf(c, session, fmt.Sprintf("chunks=%d", b.chunks))
		if err != nil {
			return err
		}
		if t.updates != b.chunks {
			return fmt.Errorf("%d chunks came as %d updates", b.chunks, t.updates)
		}
		perSecond = float64(t.updates) / r.at.Sub(begin).Seconds()
		return nil
	})
	return perSecond, err
}

// first compares turns with calls of the endpoint made from here, one after
// the other, so that both see the same machine.
func first(ctx context.Context, b *bench, p *program) (over float64, err error) {
	err = warm(ctx, p, func(c *process, session string) error {
		if _, err := b.direct(ctx); err != nil { // opens the connection
			return err
		}
		var through, straight []float64
		for range 20 {
			begin := time.Now()
			t, _, err := turnOf(c, session, "chunks=1")
			if err != nil {
				return err
			}
			through = append(through, ms(t.first.Sub(begin)))
			took, err := b.direct(ctx)
			if err != nil {
				return err
			}
			straight = append(straight, ms(took))
		}
		over = median(through) - median(straight)
		return nil
	})
	return over, err
}

// direct calls the endpoint and returns how long the first text took.
func (b *bench) direct(ctx context.Context) (time.Duration, error) {
	body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"chunks=1"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.provider.url+"/chat/completions", strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	line, err := bufio.NewReader(resp.Body).ReadBytes('\n')
	took := time.Since(begin)
	if err != nil || !bytes.Contains(line, []byte(word)) {
		return 0, fmt.Errorf("the endpoint began with %q, %w", line, err)
	}
	_, err = io.Copy(io.Discard, resp.Body) // so that the connection is used again
	return took, err
}

func cancelled(ctx context.Context, _ *bench, p *program) (took float64, err error) {
	err = warm(ctx, p, func(c *process, session string) error {
		t, ch, err := c.prompt(session, "chunks=100000 every=2ms")
		if err != nil {
			return err
		}
		select {
		case <-t.firstCh:
		case <-time.After(time.Minute):
			return errors.New("no text within a minute")
		}
		begin := time.Now()
		if err := c.notify("session/cancel", fmt.Sprintf(`{"sessionId":%s}`, session)); err != nil {
			return err
		}
		r, err := c.await("session/prompt", ch)
		if err != nil {
			return err
		}
		if !bytes.Contains(r.Result, []byte(`"cancelled"`)) {
			return fmt.Errorf("the cancelled turn answered %s", r.Result)
		}
		took = ms(r.at.Sub(begin))
		return nil
	})
	return took, err
}

func load(ctx context.Context, b *bench, p *program) (took float64, err error) {
	session, err := b.filled(ctx, p)
	if err != nil {
		return 0, err
	}
	err = with(ctx, p, func(c *process) error {
		t := &turn{firstCh: make(chan struct{})}
		begin := time.Now()
		ch, err := c.begin("session/load", fmt.Sprintf(`{"sessionId":%s,"cwd":%q,"mcpServers":[]}`, session, p.dir), t)
		if err != nil {
			return err
		}
		r, err := c.await("session/load", ch)
		if err != nil {
			return err
		}
		if t.updates < 2*b.turns {
			return fmt.Errorf("%d turns were replayed as %d updates", b.turns, t.updates)
		}
		took = ms(r.at.Sub(begin))
		return nil
	})
	return took, err
}

// filled returns a session with many turns, made the first time.
func (b *bench) filled(ctx context.Context, p *program) (string, error) {
	if s, ok := b.loads[p.name]; ok {
		return s, nil
	}
	var session string
	err := with(ctx, p, func(c *process) (err error) {
		if session, err = c.session(p.dir); err != nil {
			return err
		}
		for range b.turns {
			if _, _, err := turnOf(c, session, "chunks=1"); err != nil {
				return err
			}
		}
		return nil
	})
	b.loads[p.name] = session
	return session, err
}

// median returns the middle of the values.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	if len(s) == 0 {
		return 0
	}
	if len(s)%2 == 1 {
		return s[len(s)/2]
	}
	return (s[len(s)/2-1] + s[len(s)/2]) / 2
}
