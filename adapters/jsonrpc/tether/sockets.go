package tether

import (
	"io"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// codeGoingAway is the close code of RFC 6455 of an end that leaves.
const codeGoingAway = 1001

// leaver is a socket that can say why it is closed, by the codes of RFC 6455.
type leaver interface {
	Leave(code int, reason string)
}

// attached returns the socket, waiting for one as long as the peer may be away.
func (l *Link) attached() (jsonrpc.Frames, uint64, error) {
	for {
		l.mu.Lock()
		socket, gen, changed := l.socket, l.gen, l.changed
		left := l.park() - time.Since(l.since)
		err := l.err
		if l.ended {
			err = io.EOF
		}
		l.mu.Unlock()
		switch {
		case err != nil:
			return nil, 0, err
		case socket != nil:
			return socket, gen, nil
		case l.opts.Park == 0:
			return nil, 0, ErrAway
		}
		limit := time.NewTimer(left)
		select {
		case <-changed:
			limit.Stop()
		case <-limit.C:
			l.end(gen, io.EOF)
		}
	}
}

// strangerPark is how long a peer may be away that has not sent a frame yet. It
// may not even know the connection: a socket that is cut in its handshake has
// begun one that nobody will take up.
const strangerPark = 5 * time.Second

// park is how long the peer may be away. The lock is held.
func (l *Link) park() time.Duration {
	if l.in.all == 0 {
		return min(l.opts.Park, strangerPark)
	}
	return l.opts.Park
}

// Yield ends the link as lost if its peer is away, because its place is needed
// for somebody else, and reports whether the peer was.
func (l *Link) Yield() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.socket != nil {
		return false
	}
	l.finish(ErrDisplaced)
	return true
}

// lose gives up the socket of a generation.
func (l *Link) lose(gen uint64) {
	l.mu.Lock()
	var socket jsonrpc.Frames
	if gen == l.gen {
		socket = l.drop()
	}
	l.mu.Unlock()
	abandon(socket)
}

// drop takes the socket away and returns it, for abandon. The lock is held.
func (l *Link) drop() jsonrpc.Frames {
	socket := l.socket
	l.socket = nil
	l.gen++
	if socket == nil {
		return nil
	}
	l.since = time.Now()
	l.wake()
	if l.opts.Away != nil && l.err == nil {
		l.opts.Away(true)
	}
	return socket
}

// abandon closes a socket that is given up, in another way than an orderly end
// of the conversation.
func abandon(socket jsonrpc.Frames) {
	if socket == nil {
		return
	}
	if s, ok := socket.(leaver); ok {
		s.Leave(codeGoingAway, "the connection goes on elsewhere")
	}
	_ = socket.Close() // it is lost already
}

// Fence gives up the socket, so that a new one can be attached, and returns
// how many frames of the peer have been received; what the old socket may
// still bring does not count. The ticket is what Attach wants.
func (l *Link) Fence() (ticket, received uint64, err error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return 0, 0, ErrStale
	}
	socket := l.drop()
	ticket, received = l.gen, l.in.all
	l.mu.Unlock()
	abandon(socket)
	return ticket, received, nil
}

// Attach goes on with a new socket to a peer that has received so many frames.
// It returns when what the peer lacks has been sent. A socket that is refused
// is not closed.
func (l *Link) Attach(ticket uint64, socket jsonrpc.Frames, received uint64) error {
	l.mu.Lock()
	if l.err != nil || ticket != l.gen || !l.out.possible(received) {
		l.mu.Unlock()
		return ErrStale
	}
	l.out.trim(received)
	l.out.next, l.socket = 0, socket
	l.in.told() // by the handshake
	l.wake()
	if l.opts.Away != nil {
		l.opts.Away(false)
	}
	l.mu.Unlock()
	l.flush()
	return nil
}

// Leave sets what Close will say to the peer, if the socket can say something.
func (l *Link) Leave(code int, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.socket.(leaver); ok {
		s.Leave(code, reason)
	}
}
