package streamhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/ws"
)

// inboxFrames is how many posted messages wait to be read; further ones wait
// in their requests.
const inboxFrames = 16

var (
	errClosed = errors.New("the connection is closed")
	errFull   = errors.New("the client has ended the connection and reads nothing any more")
)

// connection is what one Acp-Connection-Id stands for. Its life:
//
//   - attended while a request of the client is under way; after a while
//     without one it is lost. Once it has had a stream that is soon, and until
//     then it is away: a client that begins anew finds its sessions free;
//   - ended by DELETE (Read gives io.EOF behind the last message) or lost
//     (Read gives the reason). No request finds it any more. Streams of an
//     ended connection go on until it is closed, those of a lost one end;
//   - closed by who serves it. Streams send what they hold and end.
type connection struct {
	id      string
	owner   ws.Principal
	opts    *Options
	forget  func(*connection)
	served  chan struct{} // closed when the serve function has returned
	first   chan []byte   // the answer to initialize
	long    chan struct{} // one token for each long body that is read
	slots   chan struct{} // one token for each message in the inbox
	arrived chan struct{} // the inbox has something
	room    chan struct{} // something was sent, or the end has come
	over    chan struct{} // closed together with setting why

	awayMu sync.Mutex // orders what onAway is told; taken before mu
	onAway func(away bool)
	told   bool // what it was told last

	mu       sync.Mutex
	inbox    [][]byte
	why      error // why nothing more is read: io.EOF, or what lost or closed it
	lost     bool
	closed   bool
	closedAt time.Time
	opening  bool // the next message written is the answer to initialize
	attended int
	listened bool // it had a stream
	idle     *time.Timer
	absentAt time.Time // when it has been away for long enough; of what idle was set to last

	events   uint64 // the last event's number
	waiting  int    // messages not sent yet
	bytes    int    // and their size
	kept     int    // bytes of the events that were sent, of all streams
	main     *stream
	sessions map[string]*stream
	asked    map[string][]route // requests of the client, by id: where the answer goes
	asking   map[string]*stream // requests of ours, by id: where they went
}

func newConnection(id string, owner ws.Principal, opts *Options, forget func(*connection)) *connection {
	c := &connection{
		id: id, owner: owner, opts: opts, forget: forget,
		served: make(chan struct{}), first: make(chan []byte, 1), long: make(chan struct{}, longBodies), over: make(chan struct{}),
		slots: make(chan struct{}, inboxFrames), arrived: make(chan struct{}, 1), room: make(chan struct{}, 1),
		opening: true, attended: 1, main: &stream{}, sessions: map[string]*stream{},
		asked: map[string][]route{}, asking: map[string]*stream{},
	}
	c.idle = time.AfterFunc(opts.Unattended, c.idled)
	c.idle.Stop()
	return c
}

// end ends the client's side in an orderly way: what was posted is still
// read, what is written is still sent to those who listen.
func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop(io.EOF)
}

// lose ends a connection in disorder: its streams end at once. The lock is
// held.
func (c *connection) lose(why error) {
	if c.why == nil && !c.closed {
		c.lost = true
		c.stop(fmt.Errorf("the connection is lost: %w", why))
		c.cutReaders()
	}
}

// stop says why nothing more is read, once. The lock is held.
func (c *connection) stop(why error) {
	if c.why != nil {
		return
	}
	c.why = why
	c.idle.Stop()
	close(c.over)
	signal(c.room)
	c.forget(c)
}

// push hands a posted message to Read. It waits for room.
func (c *connection) push(ctx context.Context, frame []byte) error {
	select {
	case c.slots <- struct{}{}:
	case <-c.over:
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why != nil || c.closed {
		<-c.slots
		return errClosed
	}
	c.inbox = append(c.inbox, frame)
	signal(c.arrived)
	return nil
}

// Read returns the next message that was posted.
func (c *connection) Read() ([]byte, error) {
	for {
		c.mu.Lock()
		if len(c.inbox) > 0 {
			frame := c.inbox[0]
			c.inbox[0] = nil
			if c.inbox = c.inbox[1:]; len(c.inbox) == 0 {
				c.inbox = nil
			}
			<-c.slots
			c.mu.Unlock()
			return frame, nil
		}
		why := c.why
		c.mu.Unlock()
		if why != nil {
			return nil, why
		}
		select {
		case <-c.arrived:
		case <-c.over:
		}
	}
}

// Write puts a copy of a message on the stream it belongs to. While the streams
// are full it waits, and a client that takes nothing for a while is lost.
func (c *connection) Write(frame []byte) error {
	frame, err := oneLine(frame)
	if err != nil {
		return err
	}
	if len(frame) > shortEvent {
		frame = bytes.Clone(frame) // while nothing waits for it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.waitForRoom(); err != nil {
		return err
	}
	if c.opening && look(frame).method == "" {
		c.opening = false
		c.first <- bytes.Clone(frame)
		return nil
	}
	c.route(frame)
	return nil
}

// Close ends the connection: what was written is still sent to those who
// listen.
func (c *connection) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.stop(errClosed)
		c.closed, c.closedAt = true, time.Now()
		c.finishReaders()
		signal(c.room)
	}
	return nil
}

// signal wakes the one who waits on a channel of one place.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// oneLine returns the frame without line ends, which would end a line of an
// event.
func oneLine(frame []byte) ([]byte, error) {
	if bytes.IndexByte(frame, '\n') < 0 && bytes.IndexByte(frame, '\r') < 0 {
		return frame, nil
	}
	var flat bytes.Buffer
	if err := json.Compact(&flat, frame); err != nil {
		return nil, errors.New("the frame holds a line end and is not JSON")
	}
	return flat.Bytes(), nil
}

var _ jsonrpc.Frames = (*connection)(nil)
