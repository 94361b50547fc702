// Package jsonrpc is a JSON-RPC 2.0 peer: one end of a connection, server and
// client at once, over any Frames. It promises its handlers and its peer:
//
//   - Order. What is sent before a response returns is on the wire before it.
//     All frames of a connection pass one queue (writer.go), and the order of
//     the calls is the order on the wire.
//   - Admission. Requests and notifications are admitted on one goroutine, R,
//     in wire order (handler.go). What an Admit registers, the next message
//     finds: a cancel right behind a prompt is never lost.
//   - One answer. Every request gets exactly one response, also if its task
//     panics, its id was null or the connection is closing; notifications and
//     responses get none.
//   - R never waits for the peer. It does not write; an error answer that
//     finds the queue full waits on a goroutine of its own. So a cancel is
//     read while the peer does not.
//   - Bounds. Frames, nesting, ids, the queue and the number of running
//     requests are bounded; nothing a peer sends ends the process.
//
// Goroutines: R reads, W writes, T runs one task each. Serve starts R and W
// and joins all of them.
//
// Read on in handler.go (what to implement), serve.go (life and end),
// requests.go (inbound), calls.go (outbound), writer.go (the queue),
// message.go and scan.go (the envelope), errors.go (the table of codes),
// stdio.go (lines).
package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/berth-dev/berth/core/domain"
)

// Conn is one end of a connection. Its methods may be used from any goroutine.
type Conn struct {
	frames   Frames
	opts     Options
	w        *writer
	calls    *calls
	work     *work
	requests requests
	bufs     sync.Pool // of *[]byte, for building frames
	dialect  atomic.Int32
	opened   atomic.Bool // initialize succeeded

	handler Handler         // set by Serve
	ctx     context.Context // of the connection while it is served
	cancel  context.CancelCauseFunc

	closing chan struct{} // closed by Close
	close   func(cause error)
	cause   error // given to Close; read after closing
	over    chan struct{}

	// dispatching is held by R while it handles one message, so that
	// InputEnded is not called beside an Admit.
	dispatching sync.Mutex
	inputEnded  bool
	scan        scanner
	dropping    bool         // an error answer with id null was dropped; said once
	flooded     bool         // an error answer could not wait either; the connection ends
	refusals    atomic.Int64 // error answers waiting for room
	anonymous   atomic.Int64 // the same with id null
}

// NewConn makes one end of a connection. Nothing is read or written before
// Serve; what is sent earlier waits in the queue.
func NewConn(frames Frames, opts Options) *Conn {
	opts.setDefaults()
	c := &Conn{
		frames: frames, opts: opts,
		w:     newWriter(frames, opts.QueueBytes, opts.QueueFrames),
		calls: newCalls(), work: newWork(opts.MaxTasks),
		requests: requests{byID: map[string]*request{}},
		closing:  make(chan struct{}), over: make(chan struct{}),
	}
	c.bufs.New = func() any { return new([]byte) }
	c.dialect.Store(int32(opts.Dialect))
	var once sync.Once
	c.close = func(cause error) {
		once.Do(func() {
			c.cause = cause
			close(c.closing)
		})
	}
	return c
}

// Close ends the connection as the end of Serve's context would: running
// requests are cancelled with the cause and still answered. It does not wait;
// Done tells when that has happened.
func (c *Conn) Close(cause error) { c.close(cause) }

// Done is closed when Serve has returned.
func (c *Conn) Done() <-chan struct{} { return c.over }

// SetDialect changes the numbers of the errors to come. The initialize
// request settles them, while R waits for its answer.
func (c *Conn) SetDialect(d Dialect) { c.dialect.Store(int32(d)) }

// Dialect returns the numbers in use.
func (c *Conn) Dialect() Dialect { return Dialect(c.dialect.Load()) }

// Notify queues a notification; params goes out as Reply.Result does. It
// waits for room in the queue until ctx ends, so a peer that does not read
// slows its producer down.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	if err := c.sendCall(ctx, "", method, params); err != nil {
		return fmt.Errorf("notify %s: %w", method, err)
	}
	return nil
}

// Send queues one complete frame as it is, under the same rules as Notify.
func (c *Conn) Send(ctx context.Context, frame []byte) error { return c.w.put(ctx, frame) }

func (c *Conn) sendCall(ctx context.Context, id ID, method string, params any) error {
	buf := c.getBuf()
	frame, err := appendCall(*buf, id, method, params)
	if err == nil {
		err = c.w.put(ctx, frame)
	}
	c.putBuf(buf, frame)
	return err
}

// queueLater queues a frame without making the caller wait.
func (c *Conn) queueLater(frame []byte) {
	if c.w.try(frame) || !c.work.add() {
		return
	}
	go func() {
		defer c.work.leave()
		_ = c.w.put(context.Background(), frame) // fails only with the connection
	}()
}

func (c *Conn) getBuf() *[]byte { return c.bufs.Get().(*[]byte) }

// putBuf gives back what getBuf gave, in its grown form.
func (c *Conn) putBuf(buf *[]byte, grown []byte) {
	if cap(grown) > idleBuffer {
		grown = nil
	}
	*buf = grown[:0]
	c.bufs.Put(buf)
}

func (c *Conn) trouble(where string, err error) {
	if c.opts.Observer != nil {
		c.opts.Observer.Observe(context.Background(), domain.Trouble{Where: where, Err: err})
	}
}

// read is R.
func (c *Conn) read() error {
	for {
		frame, err := c.frames.Read()
		if err == nil {
			err = c.dispatch(frame)
		} else if long := (*TooLongError)(nil); errors.As(err, &long) {
			err = c.dispatchTooLong(long)
		} else {
			c.endInput(err)
		}
		if err != nil {
			return err
		}
	}
}

// dispatch handles one frame on R. It fails once no message is wanted any more.
func (c *Conn) dispatch(frame []byte) error {
	c.dispatching.Lock()
	defer c.dispatching.Unlock()
	if c.inputEnded {
		return errClosed
	}
	m, err := c.scan.message(frame, c.opts.MaxDepth)
	switch {
	case m.Kind == Response:
		c.handleResponse(m, err)
	case err != nil:
		c.garbage(err)
	case m.Kind == Request:
		c.handleRequest(m)
	default:
		c.handleNotification(m)
	}
	return nil
}

// dispatchTooLong stands in for dispatch when a frame was too long.
func (c *Conn) dispatchTooLong(long *TooLongError) error {
	c.dispatching.Lock()
	defer c.dispatching.Unlock()
	if c.inputEnded {
		return errClosed
	}
	c.garbage(&Error{
		CodeInvalidRequest, "MESSAGE_TOO_LARGE", sentence(long.Error()),
		[]domain.Detail{{Key: "limit", Value: long.Limit}},
	})
	return nil
}

// garbage deals with a frame that is no message.
func (c *Conn) garbage(err error) {
	c.trouble("jsonrpc: not a message", err)
	if c.opts.Client {
		return
	}
	var bad *MessageError
	if errors.As(err, &bad) {
		c.refuse(bad.ID, bad.wire())
		return
	}
	c.refuse(NullID, c.Dialect().WireError(err))
}

// wire returns the error answer for a frame that is no message.
func (e *MessageError) wire() *Error {
	if e.Code == CodeParse {
		return &Error{CodeParse, "PARSE_ERROR", "Parse error: " + e.Msg, nil}
	}
	return &Error{CodeInvalidRequest, "INVALID_REQUEST", "Invalid request: " + e.Msg, nil}
}
