package sessions

import (
	"context"
	"sync"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// What may wait for an observer that is slow: updates, and about how many bytes
// of them. One that has more coming to it is dropped: it never holds up a turn.
const (
	watchLimit = 4096
	watchBytes = 16 << 20
)

// watcher is one client that observes a session. What it is told passes a queue
// of its own, which a chore of the service empties. The registry's mutex guards
// started and disturbed.
type watcher struct {
	client    ports.Client
	id        domain.SessionID
	ready     <-chan struct{} // closed when it may be told what goes on; nil is now
	ctx       context.Context // ends with its time
	cancel    context.CancelFunc
	started   bool          // it is told what goes on
	over      chan struct{} // closed when nothing more is told to it
	disturbed bool          // the session came into memory before it was started

	mu     sync.Mutex
	queue  []told
	bytes  int
	slow   bool
	filled chan struct{} // holds something when the queue does
}

// told is one thing in a watcher's queue: an update, or a place in it.
type told struct {
	u       domain.Update
	reached chan struct{} // closed when all before it was sent; nil for an update
}

func newWatcher(c ports.Client, id domain.SessionID, ready <-chan struct{}) *watcher {
	w := &watcher{client: c, id: id, ready: ready, over: make(chan struct{}), filled: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// tell queues an update, without waiting.
func (w *watcher) tell(u domain.Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slow || w.ctx.Err() != nil {
		return
	}
	w.bytes += weight(u)
	if len(w.queue) >= watchLimit || w.bytes > watchBytes {
		w.slow, w.queue = true, nil
	} else {
		w.queue = append(w.queue, told{u: u})
	}
	w.signal()
}

// begin queues what it is told first, however much that is.
func (w *watcher) begin(ups []domain.Update) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, u := range ups {
		w.queue = append(w.queue, told{u: u})
	}
	w.signal()
}

// reached is closed when the client was sent all that it was told before now,
// which may be never when its time ends.
func (w *watcher) reached() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	place := told{reached: make(chan struct{})}
	w.queue = append(w.queue, place)
	w.signal()
	return place.reached
}

func (w *watcher) signal() {
	select {
	case w.filled <- struct{}{}:
	default:
	}
}

// take takes what is queued. slow says that it was dropped for being so.
func (w *watcher) take() (ups []told, slow bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ups, w.queue, w.bytes = w.queue, nil, 0
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
		for _, t := range ups {
			if t.reached != nil {
				close(t.reached)
			} else if w.client.Send(w.ctx, w.id, t.u) != nil {
				return
			}
		}
		if slow {
			_ = w.client.Send(w.ctx, w.id, domain.Notice{
				Severity: "error", Reason: domain.ObserverDropped, Title: "This session is not observed any more",
				Detail: "More was told than this client took. Observe it again, with replay, to see the rest.",
			})
			return
		}
	}
}

// weight is about how many bytes an update takes.
func weight(u domain.Update) int {
	switch u := u.(type) {
	case domain.AgentText:
		return len(u.Text)
	case domain.AgentThought:
		return len(u.Text)
	case domain.CompactionText:
		return len(u.Text)
	case domain.CompactionChanged:
		return len(u.Summary)
	case domain.UserMessage:
		return blockWeight(u.Block)
	case domain.CallOpened:
		return len(u.RawInput) + contentWeight(u.Content)
	case domain.CallChanged:
		return len(u.RawOutput) + contentWeight(u.Content)
	case domain.PlanChanged, domain.UsageChanged, domain.InfoChanged, domain.CommandsChanged, domain.Notice, domain.QueueChanged,
		domain.TurnStarted, domain.TurnEnded:
	}
	return 0
}

func contentWeight(list []domain.CallContent) int {
	n := 0
	for _, c := range list {
		switch c := c.(type) {
		case domain.ContentBlock:
			n += blockWeight(c.Block)
		case domain.Diff:
			n += len(c.OldText) + len(c.NewText)
		case domain.FileContent:
			n += len(c.Data)
		}
	}
	return n
}

func blockWeight(b domain.Block) int {
	switch b := b.(type) {
	case domain.Text:
		return len(b.Text)
	case domain.Resource:
		return len(b.Text) + len(b.Blob)
	case domain.Image:
		return len(b.Data)
	case domain.Audio:
		return len(b.Data)
	case domain.Link, domain.Attachment:
	}
	return 0
}

// watch says who observes.
func (a *Attachment) watch(watchers []*watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers = watchers
	a.wake()
}

// show tells observers alone.
func (a *Attachment) show(u domain.Update) {
	_, watchers, _ := a.current()
	for _, w := range watchers {
		w.tell(u)
	}
}
