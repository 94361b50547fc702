package bridge

import (
	"context"
	"slices"
	"sync"
)

// outboxBytes is how much of the editor's waits for the gateway before the
// editor is read no further.
const outboxBytes = 1 << 20

// outbox is what the gateway is to be sent, in order, and W, which sends it.
type outbox struct {
	mu      sync.Mutex
	changed chan struct{} // closed and made anew at every change
	items   []item
	held    []*request // for the next channel, before everything else
	size    int
	closed  bool     // the editor says nothing more
	ch      *channel // nil while W must not write
	writing bool

	drained chan struct{} // closed when all that was put before close is handed over
}

// item is one frame, and the request it is, if any.
type item struct {
	frame []byte
	req   *request
}

func (o *outbox) init() {
	o.changed, o.drained = make(chan struct{}), make(chan struct{})
}

// wake tells everybody who waits. The lock is held.
func (o *outbox) wake() {
	close(o.changed)
	o.changed = make(chan struct{})
	if o.closed && len(o.items) == 0 && !o.writing {
		select {
		case <-o.drained:
		default:
			close(o.drained)
		}
	}
}

// put adds a frame of the editor's, when there is room.
func (o *outbox) put(ctx context.Context, it item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.items) > 0 && o.size+len(it.frame) > outboxBytes {
		if !o.wait(ctx) {
			return
		}
	}
	o.add(it)
}

// late adds a frame of the bridge's own, at once.
func (o *outbox) late(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(item{frame: frame})
}

// again puts a request in front of everything else.
func (o *outbox) again(r *request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.sent.Store(false)
	o.items = slices.Insert(o.items, 0, item{r.frame, r})
	o.size += len(r.frame)
	o.wake()
}

// hold keeps a request for the next channel: the gateway of this one takes no
// more.
func (o *outbox) hold(r *request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r.sent.Store(false)
	o.held = append(o.held, r)
}

func (o *outbox) add(it item) {
	o.items = append(o.items, it)
	o.size += len(it.frame)
	o.wake()
}

// wait releases the lock until something changes. It reports whether ctx lasts.
func (o *outbox) wait(ctx context.Context) bool {
	changed := o.changed
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

// close says that the editor says nothing more.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.wake()
}

func (o *outbox) isClosed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

// current is the channel that W writes to, or nil.
func (o *outbox) current() *channel {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ch
}

// open lets W write to a channel. What the editor cancelled meanwhile is asked
// all the same, and cancelled behind it, so that it is answered.
func (o *outbox) open(ch *channel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var first []item
	for _, r := range o.held {
		first = append(first, item{r.frame, r})
		o.size += len(r.frame)
		if r.cancelled.Load() {
			frame := cancelAgain(r)
			first = append(first, item{frame: frame})
			o.size += len(frame)
		}
	}
	o.items, o.held = append(first, o.items...), nil
	o.ch = ch
	o.wake()
}

// pause keeps W from writing. What it was writing has been given up when pause
// returns: the channel must be closed.
func (o *outbox) pause() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ch = nil
	o.wake()
	for o.writing {
		o.wait(context.Background())
	}
}

// run is W. It ends with ctx.
func (o *outbox) run(ctx context.Context) {
	for {
		it, ch := o.next(ctx)
		if ch == nil {
			return
		}
		_ = ch.frames.Write(it.frame) // the reader sees that the channel is lost
		o.mu.Lock()
		o.writing = false
		o.wake()
		o.mu.Unlock()
	}
}

// next takes the first frame when there is a channel for it.
func (o *outbox) next(ctx context.Context) (item, *channel) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		for len(o.items) == 0 || o.ch == nil {
			if !o.wait(ctx) {
				return item{}, nil
			}
		}
		it := o.items[0]
		o.items[0] = item{}
		o.items = o.items[1:]
		o.size -= len(it.frame)
		sent := it.req != nil && it.req.sent.Swap(true) // by begin
		o.writing = !sent
		o.wake()
		if !sent {
			return it, o.ch
		}
	}
}
