package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

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
			c.trouble("jsonrpc: end of input", &PanicError{v, debug.Stack()})
		}
	}()
	c.handler.InputEnded(why)
}
