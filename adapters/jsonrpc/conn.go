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
// Read on in handler.go (what to implement), requests.go (inbound), calls.go
// (outbound), writer.go (the queue), message.go and scan.go (the envelope),
// errors.go (the table of codes), stdio.go (lines).
package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// DefaultMaxDepth is how deep a message may nest unless Options say otherwise.
const DefaultMaxDepth = 128

// Options of a Conn. The zero value is a server end with the defaults.
type Options struct {
	// Client marks the end that sends initialize: its peer's requests need no
	// initialize first, and a frame that is no message is reported, not
	// answered, for agents print things they should not.
	Client   bool
	IDs      *IDs           // ids of our requests; default: numbers of this connection
	Observer ports.Observer // gets domain.Trouble; nil: nobody
	Dialect  Dialect        // until SetDialect
	MaxDepth int            // nesting of inbound messages; default DefaultMaxDepth
	MaxTasks int            // requests and notification tasks at a time; default 4096
	// QueueBytes and QueueFrames bound what waits to be written; defaults
	// 1 MiB and 8192.
	QueueBytes  int
	QueueFrames int
	// Linger is how long requests may go on after the peer's EOF before they
	// are cancelled; default 2 s.
	Linger time.Duration
	// Drain is how long cancelled requests may take to end and the last
	// answers to reach a peer that does not read; default 2 s.
	Drain time.Duration
}

func (o *Options) setDefaults() {
	if o.IDs == nil {
		o.IDs = NewIDs("")
	}
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	set(&o.MaxDepth, DefaultMaxDepth)
	set(&o.MaxTasks, 4096)
	set(&o.QueueBytes, 1<<20)
	set(&o.QueueFrames, 8192)
	if o.Linger <= 0 {
		o.Linger = 2 * time.Second
	}
	if o.Drain <= 0 {
		o.Drain = 2 * time.Second
	}
}

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
	if c.w.try(frame) {
		return
	}
	c.work.add()
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

// Serve reads and serves until the connection is over, then joins every
// goroutine it started and closes the frames. It is called once.
//
// The connection ends with the peer's EOF: running requests get Linger to
// finish, then they are cancelled with domain.Disconnected. It ends with ctx
// or Close: running requests are cancelled with that cause (domain.ProcessEnding
// if ctx has none of its own). In both cases every admitted request is
// answered and the answers are written, within Drain. It ends at once, with
// domain.Disconnected, when a write fails or a read fails otherwise.
//
// Serve returns nil unless a read failed. A Read that Close cannot unblock, on
// a blocking standard input, is left behind: nothing it brings is handled.
func (c *Conn) Serve(ctx context.Context, h Handler) error {
	defer close(c.over)
	c.handler = h
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	go c.w.run()
	reading := make(chan error, 1)
	go func() { reading <- c.read() }()

	var readErr, why error
	var done <-chan error = reading
	select {
	case readErr = <-reading:
		done, why = nil, domain.Disconnected
		if errors.Is(readErr, io.EOF) {
			c.calls.end(domain.Disconnected)
			why = c.linger(ctx)
		} else {
			c.w.fail(readErr)
		}
	case <-ctx.Done():
		why = shutdownCause(ctx)
	case <-c.closing:
		why = c.closeCause()
	case <-c.w.dead:
		why = domain.Disconnected
	}
	c.cancel(why)
	c.calls.end(why)
	c.endInput(c.lostOr(why))
	c.finish(done)
	if readErr != nil && !errors.Is(readErr, io.EOF) {
		return fmt.Errorf("read: %w", readErr)
	}
	return nil
}

// linger lets requests finish after the peer's EOF and returns what to cancel
// the rest with.
func (c *Conn) linger(ctx context.Context) error {
	limit := time.NewTimer(c.opts.Linger)
	defer limit.Stop()
	select {
	case <-c.work.drain():
	case <-limit.C:
	case <-c.w.dead:
	case <-c.closing:
		return c.closeCause()
	case <-ctx.Done():
		return shutdownCause(ctx)
	}
	return domain.Disconnected
}

// joinPatience is how long a goroutine inside the transport may take to notice
// that the transport was closed, before it is left behind.
const joinPatience = 250 * time.Millisecond

// finish waits until every task has ended and every answer was written, or
// Drain has passed, and closes the transport. reading yields when R has ended;
// nil if it has.
func (c *Conn) finish(reading <-chan error) {
	limit := time.NewTimer(c.opts.Drain)
	defer limit.Stop()
	giveUp := func() {
		c.w.fail(errors.New("the peer does not read"))
		_ = c.frames.Close() // nobody is left to be told
	}
	idle := c.work.drain()
	select {
	case <-idle:
	case <-limit.C:
		giveUp()
		<-idle
	}
	c.w.close()
	select {
	case <-c.w.written:
	case <-c.w.dead:
	case <-limit.C:
		giveUp()
	}
	_ = c.frames.Close()
	patience := time.NewTimer(joinPatience)
	defer patience.Stop()
	select {
	case <-c.w.written:
	case <-patience.C:
		return // so is R, then
	}
	if reading != nil {
		select {
		case <-reading:
		case <-patience.C:
		}
	}
}

// shutdownCause is the cause for requests when Serve's context ends.
func shutdownCause(ctx context.Context) error {
	cause := context.Cause(ctx)
	var named *domain.Cause
	if errors.As(cause, &named) {
		return cause
	}
	return domain.ProcessEnding
}

func (c *Conn) closeCause() error {
	if c.cause == nil {
		return domain.Disconnected
	}
	return c.cause
}

// lostOr returns the transport's error if it is dead, else why.
func (c *Conn) lostOr(why error) error {
	select {
	case <-c.w.dead:
		return c.w.err
	default:
		return why
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

// endInput tells the handler, once, that no message follows.
func (c *Conn) endInput(why error) {
	c.dispatching.Lock()
	defer c.dispatching.Unlock()
	if c.inputEnded {
		return
	}
	c.inputEnded = true
	defer func() {
		if v := recover(); v != nil {
			c.trouble("jsonrpc: end of input", &PanicError{Value: v})
		}
	}()
	c.handler.InputEnded(why)
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
	c.garbage(&Error{CodeInvalidRequest, "MESSAGE_TOO_LARGE", sentence(long.Error()),
		[]domain.Detail{{Key: "limit", Value: long.Limit}}})
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
