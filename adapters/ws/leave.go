package ws

import (
	"errors"
	"io"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// leaveLimit is how long a close frame and the peer's own end may take.
const leaveLimit = time.Second

// errClosed is what Read and Write return after Close.
var errClosed = errors.New("the connection was closed")

// Leave sets what Close will say to the peer: one of the codes of RFC 6455 and
// a reason of at most 123 bytes. It changes nothing once the connection is
// over.
func (c *Conn) Leave(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code, c.why = code, reason
}

// Close tells the peer that the connection ends, with code 1000 unless Leave
// set another, and ends it. It does not wait; a Read returns at once, a Write
// that the peer does not take within a second. Gone tells when nothing is left.
func (c *Conn) Close() error {
	c.mu.Lock()
	code, why := c.code, c.why
	c.mu.Unlock()
	_ = c.end(code, why, errClosed)
	return nil
}

// Done is closed as soon as the connection is over.
func (c *Conn) Done() <-chan struct{} { return c.ended }

// Gone is closed when the connection is over and nothing of it is left.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// end ends the connection unless it is over already, and returns why it is.
func (c *Conn) end(code int, reason string, cause error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return c.cause
	}
	c.over, c.cause = true, cause
	close(c.ended)
	c.beat.Stop()
	go c.leave(code, reason) // ends within twice leaveLimit; Gone joins it
	return cause
}

// leave says goodbye. Closing a socket while the peer's bytes lie unread
// resets the connection, and the peer would lose what we wrote last: so it
// ends our direction first and waits a moment for the peer's own end.
func (c *Conn) leave(code int, reason string) {
	defer close(c.gone)
	_ = c.link.Conn.SetReadDeadline(time.Unix(1, 0)) // wakes the reader, which sees that it is over
	until := time.Now().Add(leaveLimit)
	if errors.Is(c.cause, errSlow) {
		until = until.Add(lastChance)
	}
	err := c.ws.WriteControl(websocket.CloseMessage, closeMessage(code, reason), until) // waits for a message under way
	if err != nil && !errors.Is(err, websocket.ErrCloseSent) {
		_ = c.link.Conn.Close() // ends a write that is stuck
	}
	c.link.closeWrite()
	c.reading.Lock()
	defer c.reading.Unlock()
	if !c.bade.Load() {
		_ = c.link.Conn.SetReadDeadline(time.Now().Add(leaveLimit))
		_, _ = io.Copy(io.Discard, c.link.Conn)
	}
	_ = c.link.Conn.Close()
	c.side.Wait()
}

// closeMessage is the body of a close frame, cut to what one may hold.
func closeMessage(code int, reason string) []byte {
	const most = 123
	if len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "")
	}
	return websocket.FormatCloseMessage(code, reason)
}
