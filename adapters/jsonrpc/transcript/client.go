package transcript

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// client is one connection of a script, and the goroutine that receives on it.
type client struct {
	name   string
	frames jsonrpc.Frames
	lastID int
	ids    map[string]jsonrpc.ID // of requests, by Line.ref

	mu       sync.Mutex
	queue    []incoming
	over     error         // why nothing more comes; io.EOF at an orderly end
	more     chan struct{} // has a token when queue or over changed
	held     chan struct{} // while the client does not read; closed to go on
	received chan struct{} // closed when the goroutine has ended
}

// incoming is one frame of the agent.
type incoming struct {
	data []byte
	msg  jsonrpc.Message
	bad  error // it is no message, or too long
}

func newClient(name string, frames jsonrpc.Frames) *client {
	return &client{
		name: name, frames: frames, ids: map[string]jsonrpc.ID{},
		more: make(chan struct{}, 1), received: make(chan struct{}),
	}
}

func (c *client) newID() string {
	c.lastID++
	return strconv.Itoa(c.lastID)
}

// receive reads until the connection ends. It takes frames faster than the
// script wants them, so that the agent is never held up by the script itself.
func (c *client) receive(note func(Dir, string, []byte)) {
	defer close(c.received)
	for {
		c.waitWhileHeld()
		data, err := c.frames.Read()
		in := incoming{data: data, bad: err}
		var long *jsonrpc.TooLongError
		switch {
		case err == nil:
			note(ToClient, c.name, data)
			in.msg, in.bad = jsonrpc.Parse(data)
		case !errors.As(err, &long):
			c.push(nil, err)
			return
		}
		c.push(&in, nil)
	}
}

func (c *client) push(in *incoming, over error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in != nil {
		c.queue = append(c.queue, *in)
	}
	if over != nil {
		c.over = over
	}
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// try returns the next frame if there is one, or why none will come.
func (c *client) try() (*incoming, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil, c.over
	}
	in := c.queue[0]
	c.queue = c.queue[1:]
	return &in, nil
}

// next waits for the next frame. The error is io.EOF or another at the end of
// the connection, or that of ctx.
func (c *client) next(ctx context.Context) (*incoming, error) {
	for {
		in, err := c.try()
		switch {
		case in != nil:
			return in, nil
		case ctx.Err() != nil: // its end cuts the transport, which is no news
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		}
		select {
		case <-c.more:
		case <-ctx.Done():
		}
	}
}

// hold makes the client stop reading. A Read in progress still takes a frame.
func (c *client) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = make(chan struct{})
	}
}

func (c *client) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held != nil {
		close(c.held)
		c.held = nil
	}
}

func (c *client) waitWhileHeld() {
	c.mu.Lock()
	held := c.held
	c.mu.Unlock()
	if held != nil {
		<-held
	}
}

// close ends the connection and joins its goroutine.
func (c *client) close() {
	_ = c.frames.Close()
	c.release()
	<-c.received
}

// atEnd reports whether err is the orderly end of the agent's side.
func atEnd(err error) bool { return errors.Is(err, io.EOF) }
