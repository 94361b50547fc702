package sessions

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// watchLimit is how many updates may wait for an observer that is slow. One
// that has more coming to it is dropped: it never holds up a turn.
const watchLimit = 4096

// watcher is one client that observes a session. What it is told passes a queue
// of its own, which a chore of the service empties.
type watcher struct {
	client ports.Client
	id     domain.SessionID
	ready  <-chan struct{} // closed when it may be told what goes on; nil is now
	ctx    context.Context // ends with its time
	cancel context.CancelFunc

	mu      sync.Mutex
	queue   []domain.Update
	slow    bool
	filled  chan struct{} // holds something when the queue does
	stopped bool
}

func newWatcher(c ports.Client, id domain.SessionID, ready <-chan struct{}) *watcher {
	w := &watcher{client: c, id: id, ready: ready, filled: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// tell queues an update, without waiting.
func (w *watcher) tell(u domain.Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.slow {
		return
	}
	if len(w.queue) >= watchLimit {
		w.slow, w.queue = true, nil
	} else {
		w.queue = append(w.queue, u)
	}
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.filled <- struct{}{}:
	default:
	}
}

// stop ends its time: nothing more is told.
func (w *watcher) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.cancel()
}

// take takes what is queued. slow says that it was dropped for being so.
func (w *watcher) take() (ups []domain.Update, slow bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ups, w.queue = w.queue, nil
	return ups, w.slow
}

// run tells the client what is queued, until its time ends, it is gone, or it
// is too slow.
func (w *watcher) run() {
	if waitFor(w.ctx, w.ready) != nil {
		return
	}
	for {
		select {
		case <-w.filled:
		case <-w.ctx.Done():
			return
		}
		ups, slow := w.take()
		for _, u := range ups {
			if w.client.Send(w.ctx, w.id, u) != nil {
				return
			}
		}
		if slow {
			_ = w.client.Send(w.ctx, w.id, domain.Notice{
				Severity: "error", Title: "This session is not observed any more",
				Detail: "More was told than this client took. Observe it again, with replay, to see the rest.",
			})
			return
		}
	}
}

// watch adds an observer; false when the session is over.
func (a *Attachment) watch(w *watcher) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return false
	}
	a.watchers = append(append([]*watcher(nil), a.watchers...), w) // current gives the list away
	a.wake()
	return true
}

// unwatch takes the observers away that drop names and ends their time. It
// returns how many that were.
func (a *Attachment) unwatch(drop func(*watcher) bool) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	var kept []*watcher
	n := 0
	for _, w := range a.watchers {
		if drop(w) {
			w.stop()
			n++
			continue
		}
		kept = append(kept, w)
	}
	if n > 0 {
		a.watchers = kept
		a.wake()
	}
	return n
}

// show tells observers alone.
func (a *Attachment) show(u domain.Update) {
	_, watchers, _ := a.current()
	for _, w := range watchers {
		w.tell(u)
	}
}
