package ws

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// errSlow is why a connection is given up whose peer does not read.
var errSlow = errors.New("the peer does not read")

// errTiny is why a connection is given up that carries frames and nothing in
// them.
var errTiny = errors.New("too many frames for what they carry")

// writeChunk is how many bytes the peer must take within the write timeout.
// A long message on a slow line is no reason to give up.
const writeChunk = 16 << 10

// lastChance is how long a peer that was given up as slow may take to read the
// rest of the frame, behind which it is told.
const lastChance = 2 * time.Second

// overhead is how many bytes of frames without content one message may have;
// beyond it, eight for each byte of content.
const overhead = 64 << 10

// link is the network connection below the WebSocket. It gives every write a
// deadline by progress, and sees what the WebSocket hides: whether anything
// comes in at all, and how much of it is frames alone.
type link struct {
	net.Conn
	patience time.Duration // for one chunk
	slow     func()        // called when the peer took none of it

	heard    atomic.Bool // something came in since it was last cleared
	deadline time.Time   // of a control frame; the zero value for messages
	broken   atomic.Bool // a read failed below the WebSocket

	// The rest belongs to the reader.
	wire, content int // bytes since the message began
}

// newLink is a link for a handshake; newConn sets what it needs later.
func newLink() *link { return &link{patience: leaveLimit, slow: func() {}} }

// Read counts.
func (l *link) Read(p []byte) (int, error) {
	if l.wire > overhead+8*l.content {
		return 0, errTiny
	}
	n, err := l.Conn.Read(p)
	if n > 0 {
		l.wire += n
		l.heard.Store(true)
	}
	if err != nil {
		l.broken.Store(true)
	}
	return n, err
}

// SetWriteDeadline bounds the next write as a whole; the zero time leaves it
// to its progress. The WebSocket calls it before each.
func (l *link) SetWriteDeadline(t time.Time) error {
	l.deadline = t
	return nil
}

// Write writes p. A chunk that the peer does not take in time makes slow be
// called, and then gets a last chance, so that the frame may be whole and a
// close frame behind it be understood.
func (l *link) Write(p []byte) (n int, err error) {
	var last time.Time
	for len(p) > 0 {
		until := l.deadline
		switch {
		case !last.IsZero():
			until = last
		case until.IsZero():
			until = time.Now().Add(l.patience)
		}
		if err := l.Conn.SetWriteDeadline(until); err != nil {
			return n, err
		}
		k, err := l.Conn.Write(p[:min(len(p), writeChunk)])
		n, p = n+k, p[k:]
		switch {
		case err == nil:
		case !errors.Is(err, os.ErrDeadlineExceeded) || !l.deadline.IsZero() || !last.IsZero():
			return n, err
		default:
			l.slow()
			last = time.Now().Add(lastChance)
		}
	}
	return n, nil
}

// message starts the count of a message.
func (l *link) message() { l.wire, l.content = 0, 0 }

// closeWrite ends the outgoing direction, so that the peer reads all that was
// written and then the end.
func (l *link) closeWrite() {
	below := l.Conn
	if t, ok := below.(*tls.Conn); ok {
		_ = t.CloseWrite() // the alert; the end of the stream follows below
		below = t.NetConn()
	}
	if c, ok := below.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
	}
}
