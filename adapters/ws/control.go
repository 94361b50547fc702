package ws

import (
	"errors"
	"time"

	"github.com/gorilla/websocket"
)

// How many control frames a peer may send: a burst, and then so many a second.
const (
	controlBurst  = 60
	controlPerSec = 10
)

// budget is a bucket that fills with time.
type budget struct {
	left float64
	at   time.Time
}

// spend takes one, and reports whether there was one.
func (b *budget) spend(now time.Time) bool {
	b.left = min(controlBurst, b.left+controlPerSec*now.Sub(b.at).Seconds())
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// errFlood is why a connection is given up that is nothing but control frames.
var errFlood = errors.New("too many control frames")

// control counts a control frame, on the reader.
func (c *Conn) control() error {
	c.link.message()
	if !c.budget.spend(time.Now()) {
		return c.end(ClosePolicy, errFlood.Error(), errFlood)
	}
	return nil
}

// pinged answers a ping, on the reader. It writes itself when nobody else
// does, so that the answer comes before whatever follows; while a message is
// under way, which may take as long as the peer likes, the reader does not
// wait for it: the writer answers, and of several pings the last one.
func (c *Conn) pinged(data string) error {
	if err := c.control(); err != nil {
		return err
	}
	c.owed.Store(&data)
	if c.writing.TryLock() {
		c.release()
	}
	return nil
}

// release lets others write, behind the answer to a ping that came meanwhile.
// The time that the answer may take begins now: a peer that takes a message
// slowly has done nothing wrong.
func (c *Conn) release() {
	for {
		if data := c.owed.Swap(nil); data != nil && c.isOver() == nil {
			c.pong(*data)
		}
		c.writing.Unlock()
		if c.owed.Load() == nil || !c.writing.TryLock() {
			return
		}
	}
}

func (c *Conn) pong(data string) {
	_ = c.ws.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(c.cfg.WriteTimeout)) // a dead peer shows elsewhere
}

// enter begins work beside the reader and the writer; c.side.Done ends it.
func (c *Conn) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	c.side.Add(1)
	return true
}

// beats sends a ping and sees whether the last two were of use. Whatever the
// peer sends is a sign of life. While a message is under way there is no ping:
// it would only wait behind it, and the message has a limit of its own.
func (c *Conn) beats() {
	if !c.enter() {
		return
	}
	defer c.side.Done()
	if c.link.heard.Swap(false) {
		c.silent = 0
	}
	if c.writing.TryLock() {
		over := c.ping()
		c.release()
		if over {
			return
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.beat.Reset(c.cfg.PingInterval)
	}
}

// ping sends one, or gives up on a peer that left two without an answer.
func (c *Conn) ping() (over bool) {
	if c.silent >= 2 {
		_ = c.end(ClosePolicy, "no answer to two pings", errors.New("the connection was lost: no answer to two pings"))
		return true
	}
	c.silent++
	_ = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(c.cfg.WriteTimeout)) // a dead peer shows elsewhere
	return false
}
