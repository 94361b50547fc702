package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/berth-dev/berth/core/domain"
)

// writer is the one outgoing queue of a connection and the goroutine W that
// empties it. Frames leave in the order in which put returned, whoever put
// them, and what gathered while a write was under way leaves in the next one.
//
// The queue takes a frame while it holds less than its bounds, so it exceeds
// them by one frame at most, and a frame larger than the bound still passes.
// When it is full, producers wait in line.
type writer struct {
	frames    Frames
	maxBytes  int
	maxFrames int

	mu      sync.Mutex
	filled  *sync.Cond      // W waits here
	buf     []byte          // queued frames, a newline behind each
	ends    []int           // where each frame's newline stands
	line    []chan struct{} // producers waiting for room, first come first served
	granted bool            // the first of them was let in and has not appended yet
	closed  bool            // nothing more is taken; W ends when the queue is empty
	err     error           // why the transport is dead
	dead    chan struct{}   // closed together with setting err
	written chan struct{}   // closed when W has ended
}

// errClosed is returned for a frame that comes after the last one.
var errClosed = fmt.Errorf("the connection is closed: %w", domain.Disconnected)

// Buffers up to keepBuffer are used again for the next batch, those up to
// idleBuffer, and the places of up to idleFrames, also after a pause: a gateway
// has many connections that rest.
const (
	keepBuffer = 2 << 20
	idleBuffer = 4 << 10
	idleFrames = 64
)

func newWriter(frames Frames, maxBytes, maxFrames int) *writer {
	w := &writer{
		frames: frames, maxBytes: maxBytes, maxFrames: maxFrames,
		dead: make(chan struct{}), written: make(chan struct{}),
	}
	w.filled = sync.NewCond(&w.mu)
	return w
}

// put queues a frame, which it copies. It waits for room until ctx ends or
// the transport dies.
func (w *writer) put(ctx context.Context, frame []byte) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	frame, err := oneLine(frame)
	if err != nil {
		return err
	}
	w.mu.Lock()
	if w.open() {
		defer w.mu.Unlock()
		return w.append(frame)
	}
	turn := make(chan struct{}, 1)
	w.line = append(w.line, turn)
	w.mu.Unlock()

	select {
	case <-turn:
		w.mu.Lock()
		defer w.mu.Unlock()
		defer w.next()
		w.granted = false
		return w.append(frame)
	case <-ctx.Done():
		w.leave(turn)
		return context.Cause(ctx)
	case <-w.dead:
		return w.err
	}
}

// try queues a frame if that needs no waiting.
func (w *writer) try(frame []byte) bool {
	frame, err := oneLine(frame)
	if err != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open() && w.append(frame) == nil
}

// oneLine puts a frame on one line. Frames are built that way; only text that
// was passed on from elsewhere may need it.
func oneLine(frame []byte) ([]byte, error) {
	if bytes.IndexByte(frame, '\n') < 0 {
		return frame, nil
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, frame); err != nil {
		return nil, errors.New("the frame holds a newline and is not JSON")
	}
	return flat.Bytes(), nil
}

// room reports whether a frame may be appended. The lock is held.
func (w *writer) room() bool {
	return len(w.buf) < w.maxBytes && len(w.ends) < w.maxFrames || w.closed || w.err != nil
}

// open reports whether a newcomer may append at once. The lock is held.
func (w *writer) open() bool { return w.room() && len(w.line) == 0 && !w.granted }

// append adds a frame. The lock is held.
func (w *writer) append(frame []byte) error {
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return errClosed
	}
	w.buf = append(append(w.buf, frame...), '\n')
	w.ends = append(w.ends, len(w.buf)-1)
	if len(w.ends) == 1 {
		w.filled.Signal()
	}
	return nil
}

// next lets the first producer in line append, if there is room: it does so
// under its own steam and then calls next for the one behind. The lock is held.
func (w *writer) next() {
	if w.room() && len(w.line) > 0 && !w.granted {
		w.granted = true
		w.line[0] <- struct{}{}
		w.line = w.line[1:]
	}
}

// leave gives up a place in the line, or passes on a turn that came too late.
func (w *writer) leave(turn chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range w.line {
		if t == turn {
			w.line = append(w.line[:i:i], w.line[i+1:]...)
			return
		}
	}
	w.granted = false
	w.next()
}

// run is W. It ends when the queue was closed and is empty, or the transport
// is dead.
func (w *writer) run() {
	defer close(w.written)
	batch, batched := w.frames.(BatchWriter)
	var buf []byte
	var ends []int
	for {
		w.mu.Lock()
		for len(w.ends) == 0 && !w.closed && w.err == nil {
			buf, w.buf = shrunk(buf, idleBuffer), shrunk(w.buf, idleBuffer)
			ends, w.ends = shrunk(ends, idleFrames), shrunk(w.ends, idleFrames)
			w.filled.Wait()
		}
		if w.err != nil || len(w.ends) == 0 {
			w.mu.Unlock()
			return
		}
		buf, w.buf = w.buf, buf[:0]
		ends, w.ends = w.ends, ends[:0]
		w.next()
		w.mu.Unlock()

		var err error
		if batched {
			err = batch.WriteBatch(buf)
		} else {
			err = w.writeEach(buf, ends)
		}
		if err != nil {
			w.fail(err)
			return
		}
		if cap(buf) > keepBuffer {
			buf = nil
		}
	}
}

// shrunk returns an empty buffer for a time of rest.
func shrunk[T any](buf []T, most int) []T {
	if cap(buf) > most {
		return nil
	}
	return buf[:0]
}

func (w *writer) writeEach(buf []byte, ends []int) error {
	start := 0
	for _, end := range ends {
		if err := w.frames.Write(buf[start:end]); err != nil {
			return err
		}
		start = end + 1
	}
	return nil
}

// close lets W write what is queued and end. Later frames are refused.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.filled.Broadcast()
	w.next()
}

// fail declares the transport dead: nothing waits for room any more.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = &deadError{err}
		close(w.dead)
		w.filled.Broadcast()
	}
}

// deadError is what producers get once the transport is dead. It is the
// cause Disconnected to whoever asks.
type deadError struct{ cause error }

func (e *deadError) Error() string   { return "the connection is lost: " + e.cause.Error() }
func (e *deadError) Unwrap() []error { return []error{domain.Disconnected, e.cause} }
