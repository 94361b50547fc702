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
// wait for it.
func (c *Conn) pinged(data string) error {
	if err := c.control(); err != nil {
		return err
	}
	if c.writing.TryLock() {
		defer c.writing.Unlock()
		c.pong(data)
		return nil
	}
	if c.enter() {
		go func() { // ends with the message under way or the write timeout; leave joins it
			defer c.side.Done()
			c.pong(data)
		}()
	}
	return nil
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
		c.writing.Unlock()
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
