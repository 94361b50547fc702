package bootstrap

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A daemon that is told things, and what it does with them.
func TestConduct(t *testing.T) {
	end, hup := os.Signal(os.Interrupt), os.Signal(syscall.SIGHUP)
	type sent struct {
		at  time.Duration
		sig os.Signal
	}
	broke := errors.New("the listener broke")
	const limit = 10 * time.Second
	for _, tt := range []struct {
		name    string
		signals []sent
		fails   time.Duration // when the listener breaks; 0 never
		drains  time.Duration // how long turns take
		stops   time.Duration // how long the rest takes
		none    bool          // no time is given to turns

		ended   time.Duration
		reloads int32
		exit    int32 // 0 when run returned
		err     error
		says    string
	}{
		{name: "turns finish", signals: []sent{{0, end}}, drains: 3 * time.Second, stops: time.Second, ended: 4 * time.Second, says: "may finish for 10s"},
		{name: "nothing runs", signals: []sent{{time.Minute, end}}, ended: time.Minute},
		{name: "turns take too long", signals: []sent{{0, end}}, drains: time.Hour, stops: time.Second, ended: 11 * time.Second, says: "are cancelled"},
		{name: "no time is given", signals: []sent{{0, end}}, drains: time.Hour, none: true, ended: 0},
		{name: "a second signal in the drain", signals: []sent{{0, end}, {2 * time.Second, end}}, drains: time.Hour, ended: 2 * time.Second, exit: 1},
		{name: "a second signal while it stops", signals: []sent{{0, end}, {2 * time.Second, end}}, stops: time.Hour, ended: 2 * time.Second, exit: 1},
		{name: "one told twice in the drain", signals: []sent{{0, end}, {0, end}, {sameSignal - 1, end}}, drains: time.Second, stops: time.Second, ended: 2 * time.Second},
		{name: "one told twice while it stops", signals: []sent{{0, end}, {0, end}, {sameSignal - 1, end}}, stops: time.Second, none: true, ended: time.Second},
		{name: "another signal is a second one", signals: []sent{{0, end}, {0, syscall.SIGTERM}}, drains: time.Hour, ended: 0, exit: 1},
		{name: "a second signal as soon as it is one", signals: []sent{{0, end}, {0, end}, {sameSignal, end}}, drains: time.Hour, ended: sameSignal, exit: 1},
		{name: "something hangs", signals: []sent{{0, end}}, stops: time.Hour, ended: leaveLimit, exit: 1},
		{name: "reloads", signals: []sent{{0, hup}, {time.Second, hup}, {2 * time.Second, end}}, ended: 2 * time.Second, reloads: 2},
		{name: "a reload in the drain is none", signals: []sent{{0, end}, {time.Second, hup}}, drains: 3 * time.Second, ended: 3 * time.Second},
		{name: "a reload while it stops is none", signals: []sent{{0, end}, {time.Second, hup}}, stops: 3 * time.Second, ended: 3 * time.Second},
		{name: "the listener breaks", fails: time.Second, drains: time.Hour, stops: time.Second, ended: 2 * time.Second, err: broke},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				signals, reloadings, failed := make(chan os.Signal), make(chan os.Signal, 1), make(chan error)
				var reloads, code, left atomic.Int32
				var said []string
				over := make(chan struct{})
				hold := func(ctx context.Context, d time.Duration) error {
					timer := time.NewTimer(d)
					defer timer.Stop()
					select {
					case <-timer.C:
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					case <-over: // the process is gone
						return nil
					}
				}
				c := conduct{
					signals: signals, reloads: reloadings, failed: failed, limit: limit,
					reload: func() { reloads.Add(1) },
					leave:  func() { left.Add(1) },
					drain:  func(ctx context.Context) error { return hold(ctx, tt.drains) },
					stop:   func(ctx context.Context) error { return hold(ctx, tt.stops) },
					tell:   func(s string) { said = append(said, s) },
					exit: func(n int) {
						code.Store(int32(n))
						close(over)
					},
				}
				if tt.none {
					c.limit = 0
				}
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					err = c.run()
				}()
				go func() {
					for _, s := range tt.signals {
						time.Sleep(time.Until(start.Add(s.at)))
						if s.sig == hup {
							reloadings <- s.sig
							continue
						}
						signals <- s.sig
					}
					if tt.fails > 0 {
						time.Sleep(tt.fails)
						failed <- broke
					}
				}()
				<-done
				if took := time.Since(start); took != tt.ended {
					t.Errorf("it ended after %v, want %v", took, tt.ended)
				}
				synctest.Wait()
				if !errors.Is(err, tt.err) || err != nil && tt.err == nil {
					t.Errorf("it ended with %v, want %v", err, tt.err)
				}
				if reloads.Load() != tt.reloads || code.Load() != tt.exit {
					t.Errorf("%d reloads and exit %d, want %d and %d", reloads.Load(), code.Load(), tt.reloads, tt.exit)
				}
				if left.Load() != 1 {
					t.Errorf("it told %d times that it ends", left.Load())
				}
				if got := strings.Join(said, "\n"); !strings.Contains(got, tt.says) {
					t.Errorf("it said %q, want %q", got, tt.says)
				}
			})
		})
	}
}

// A signal that comes again at once is no second one.
func TestAwaitSecond(t *testing.T) {
	first, other := os.Signal(syscall.SIGTERM), os.Signal(os.Interrupt)
	for _, tt := range []struct {
		name  string
		after []time.Duration // since the first one
		sig   os.Signal
		ended time.Duration
	}{
		{"none", nil, first, leaveLimit},
		{"the same one told twice", []time.Duration{0, sameSignal - 1}, first, leaveLimit},
		{"a second one", []time.Duration{0, sameSignal}, first, sameSignal},
		{"another one at once", []time.Duration{0}, other, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, signals := time.Now(), make(chan os.Signal, len(tt.after))
				go func() {
					for _, d := range tt.after {
						time.Sleep(time.Until(start.Add(d)))
						signals <- tt.sig
					}
				}()
				awaitSecond(signals, first)
				if took := time.Since(start); took != tt.ended {
					t.Errorf("it waited for %v, want %v", took, tt.ended)
				}
			})
		})
	}
}

// A turn that runs when the drain begins ends as it would have, its client
// sees it, and what comes later is told that the agent is shutting down.
func TestDrain_TurnsEndAndClientsSeeIt(t *testing.T) {
	w := written{t, t.TempDir()}
	app := w.start(w.scripts(map[string]string{"s": "--- next always\ntext \"begun \"\ndelay 300ms\ntext \"and finished\"\n"})+"[agents.a]\nmodel = \"s/m\"\n", WithLog(&safeBuffer{}))
	k := talk(t, app)
	running := k.prompt("one")
	k.until("begun ")
	drained := make(chan error, 1)
	go func() { drained <- app.Drain(t.Context()) }()
	if got := k.answer(running); !strings.Contains(got, "and finished") || !strings.Contains(got, "end_turn") {
		t.Errorf("the turn ended with %s", got)
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if got := k.answer(k.prompt("two")); !strings.Contains(got, "SHUTTING_DOWN") {
		t.Errorf("a later prompt got %s", got)
	}
	k.hangUp()
}
