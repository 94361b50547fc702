package bootstrap

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Drain takes no more prompts and sessions and returns when the last turn has
// ended, or with the context's cause. Clients stay connected and see their
// turns to the end; Stop follows.
func (a *App) Drain(ctx context.Context) error {
	a.draining.Store(true)
	return a.p.Sessions.Drain(ctx)
}

// conduct is how a daemon behaves until it ends.
type conduct struct {
	signals <-chan os.Signal // that ask for the end
	reloads <-chan os.Signal // that ask for a reload
	failed  <-chan error     // what ends the daemon by itself
	limit   time.Duration
	reload  func()
	leave   func() // is told that the end begins
	// drain takes nothing new and returns when what runs has ended.
	drain func(context.Context) error
	// stop ends everything, in at most leaveLimit.
	stop func(context.Context) error
	tell func(string)
	exit func(code int) // ends the process at once
}

// sameSignal is how soon after a signal it is still the same one when it comes
// again. Who ends a process and then its group, as timeout(1) does, means it
// once.
const sameSignal = 300 * time.Millisecond

// repeats returns what tells a second signal from the first one that came
// again. Now is when the first came; nil is none.
func repeats(first os.Signal) func(os.Signal) bool {
	came := time.Now()
	return func(sig os.Signal) bool { return sig == first && time.Since(came) < sameSignal }
}

// awaitSecond returns with the second signal, and leaveLimit after the first
// one at the latest.
func awaitSecond(signals <-chan os.Signal, first os.Signal) {
	again, limit := repeats(first), time.NewTimer(leaveLimit)
	defer limit.Stop()
	for {
		select {
		case sig := <-signals:
			if !again(sig) {
				return
			}
		case <-limit.C:
			return
		}
	}
}

// daemonChannels are where a daemon is sent signals. Those that ask for a
// reload have a channel of their own: however many there are while one is
// under way, they mean one more, and none of them may take the place of one
// that asks for the end.
func daemonChannels() (ends, reloads <-chan os.Signal, stop func()) {
	end, reload := make(chan os.Signal, 2), make(chan os.Signal, 1)
	signal.Notify(end, daemonSignals()...)
	if list := reloadSignals(); list != nil { // none would mean all
		signal.Notify(reload, list...)
	}
	return end, reload, func() {
		signal.Stop(end)
		signal.Stop(reload)
	}
}

// run obeys signals: one of reloading reloads, one of ending lets turns finish
// for as long as they may and then ends everything, a second one ends the
// process at once. It returns when all has ended.
func (c conduct) run() error {
	first, failed := c.wait()
	again := repeats(first)
	second := func(sig os.Signal) bool { return !again(sig) }
	c.leave()
	if failed == nil && c.limit > 0 {
		c.finish(second)
	}
	over := make(chan struct{})
	defer close(over)
	go func() { // ends with run, or with the process
		limit := time.NewTimer(leaveLimit)
		defer limit.Stop()
		for {
			select {
			case sig := <-c.signals:
				if !second(sig) {
					continue
				}
			case <-limit.C:
			case <-over:
				return
			}
			c.exit(1)
			return
		}
	}()
	return errors.Join(failed, c.stop(context.Background()))
}

// wait returns when the daemon is to end: with the signal, or with why if that
// is a failure.
func (c conduct) wait() (os.Signal, error) {
	for {
		select {
		case sig := <-c.signals:
			return sig, nil
		case <-c.reloads:
			c.reload()
		case err := <-c.failed:
			return nil, err
		}
	}
}

// finish gives turns their time. A second signal ends the process; there is
// nothing left to reload for.
func (c conduct) finish(second func(os.Signal) bool) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.limit, domain.ProcessEnding)
	defer cancel()
	c.tell("ending: no more connections and prompts are taken; turns may finish for " + c.limit.String())
	drained := make(chan error, 1)
	go func() { drained <- c.drain(ctx) }() // ends with ctx at the latest
	for {
		select {
		case err := <-drained:
			if err != nil {
				c.tell("ending: turns that did not finish in " + c.limit.String() + " are cancelled")
			}
			return
		case sig := <-c.signals:
			if second(sig) {
				c.exit(1)
				return
			}
		}
	}
}
