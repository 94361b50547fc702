// Package tether makes frames that outlive their socket. Both ends number what
// they send by counting, keep it until the peer has confirmed it, and after a
// lost socket tell each other on the next one how far they got; what the other
// end has not is sent again. So a cut is a pause: no frame is lost, none comes
// twice, and neither end of the conversation has to know.
//
//	client: GET /acp, Berth-Link: new                 server: Berth-Link: new
//	        … the socket is cut …
//	client: GET /acp, Berth-Link: <connection> <n>    server: Berth-Link: resumed <m>
//
// n and m are the numbers of frames received so far; <connection> is the
// Acp-Connection-Id of the first answer. A server that does not know the
// connection any more answers "new", one that knows no links answers nothing.
//
// On the socket stand the frames as they are, and between them signals, which
// no JSON-RPC message can be confused with: {"link":{"received":n}} confirms.
// The frame {"link":{"eof":true}}, which counts, ends one direction.
//
// Read tether.go (what both ends do), kept.go (what is sent again), sockets.go
// (how they come and go), signal.go, header.go (the handshake).
package tether

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// DefaultHold is how many bytes an end keeps for its peer unless told
// otherwise.
const DefaultHold = 8 << 20

// The errors of a link that is over for the transport's sake.
var (
	// ErrAway is what Read returns on an end that redials when the socket is
	// lost; Attach brings it back.
	ErrAway = errors.New("the connection is interrupted")
	// ErrOverflow ends an end that waits for its peer when more was sent than
	// it may keep.
	ErrOverflow = errors.New("the connection is lost: its client was away for too many messages")
	// ErrDisplaced ends an end that waits for its peer after Yield.
	ErrDisplaced = errors.New("the connection is lost: its client was away, and its place was needed")
	// errOver is what Write returns after Close.
	errOver = errors.New("the connection is closed")
	// ErrStale refuses a socket for a link that has gone on without it, or
	// that the peer remembers otherwise.
	ErrStale = errors.New("the connection cannot be taken up again")
)

// Options of a Link.
type Options struct {
	// Park is how long the peer may be away before Read returns io.EOF as at
	// an orderly end; nobody comes back for what it kept. 0 makes an end that
	// redials: Read returns ErrAway, and Write waits instead of giving up
	// when too much is kept.
	Park time.Duration
	Hold int // bytes kept for the peer, at least 64 KiB; 0: DefaultHold
	// Away, if set, is told when the peer goes (true) and comes back (false).
	// It must be quick and must not call the link.
	Away func(away bool)
}

// Link is one end. It is jsonrpc.Frames; besides, Fence and Attach may be
// called from any goroutine.
type Link struct {
	opts Options

	// sending is held by whoever writes to the socket: a channel of one, for it
	// is held as long as the peer likes.
	sending chan struct{}
	helpers sync.WaitGroup // goroutines that confirm

	mu      sync.Mutex
	changed chan struct{} // closed and made anew at every change that somebody may wait for
	socket  jsonrpc.Frames
	gen     uint64 // of the socket; what an older one brings does not count
	since   time.Time
	err     error // why the link is over; nil while it lasts
	ended   bool  // the peer said that it sends no more

	in  arrived
	out kept
}

var (
	_ jsonrpc.Frames      = (*Link)(nil)
	_ jsonrpc.CloseWriter = (*Link)(nil)
)

// New starts a link on its first socket.
func New(socket jsonrpc.Frames, opts Options) *Link {
	if opts.Hold <= 0 {
		opts.Hold = DefaultHold
	}
	opts.Hold = max(opts.Hold, unconfirmedBytes)
	return &Link{opts: opts, socket: socket, sending: make(chan struct{}, 1), changed: make(chan struct{})}
}

// wake tells everybody who waits. The lock is held.
func (l *Link) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Read returns the peer's next frame.
func (l *Link) Read() ([]byte, error) {
	for {
		socket, gen, err := l.attached()
		if err != nil {
			return nil, err
		}
		frame, err := socket.Read()
		if frame, err, done := l.took(gen, frame, err); done {
			return frame, err
		}
	}
}

// took decides what a read of the socket of a generation means. done is false
// when Read goes on.
func (l *Link) took(gen uint64, frame []byte, err error) (_ []byte, _ error, done bool) {
	var long *jsonrpc.TooLongError
	if errors.As(err, &long) {
		frame, err = nil, nil
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, err, l.end(gen, io.EOF)
		}
		l.lose(gen)
		return nil, nil, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if gen != l.gen {
		return nil, nil, false // the peer sends it again
	}
	what, n := signal(frame)
	if what == confirms {
		if l.out.trim(n) {
			l.wake()
		}
		return nil, nil, false
	}
	if l.in.add(len(frame)) {
		l.confirmSoon()
	}
	switch {
	case what == ends:
		l.ended = true
		return nil, io.EOF, true
	case long != nil:
		return nil, long, true
	}
	return frame, nil, true
}

// confirmSoon lets somebody else than the reader write the confirmation: a
// reader that waits for its peer to read can wait for ever. The lock is held.
func (l *Link) confirmSoon() {
	if l.err != nil {
		return
	}
	l.helpers.Add(1)
	go func() { // joined by Close
		defer l.helpers.Done()
		l.flush()
	}()
}

// Write sends one frame, now or when the peer is back. It waits while the peer
// has confirmed too little of what it was sent.
func (l *Link) Write(frame []byte) error { return l.send(disguise(frame)) }

// CloseWrite says that no frame follows.
func (l *Link) CloseWrite() error { return l.send([]byte(eof)) }

func (l *Link) send(frame []byte) error {
	if err := l.keep(frame); err != nil {
		return err
	}
	l.flush()
	return nil
}

// keep takes a frame of the link's own into what is held.
func (l *Link) keep(frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.err == nil && l.out.full(len(frame), l.opts.Hold) {
		if l.opts.Park > 0 && l.socket == nil {
			l.finish(ErrOverflow)
			break
		}
		changed := l.changed
		l.mu.Unlock()
		<-changed
		l.mu.Lock()
	}
	if l.err != nil {
		return overOr(l.err)
	}
	l.out.add(frame)
	return nil
}

// overOr is the error of a Write on a link that is over.
func overOr(err error) error {
	if errors.Is(err, io.EOF) {
		return errOver
	}
	return err
}

// flush writes what the socket has not had. When it returns, that has been
// handed over, to this socket or a lost one.
func (l *Link) flush() {
	l.sending <- struct{}{}
	defer func() { <-l.sending }()
	for {
		socket, gen, frame := l.due()
		if socket == nil {
			return
		}
		if err := socket.Write(frame); err != nil {
			l.lose(gen)
		}
	}
}

// due returns the next thing to write, with the socket for it; nil when there
// is none.
func (l *Link) due() (jsonrpc.Frames, uint64, []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.socket == nil || l.err != nil {
		return nil, 0, nil
	}
	if l.in.due {
		l.in.told()
		return l.socket, l.gen, confirmation(l.in.all)
	}
	if frame, ok := l.out.take(); ok {
		return l.socket, l.gen, frame
	}
	return nil, 0, nil
}

// end finishes the link if the generation is still the same, and reports that.
func (l *Link) end(gen uint64, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if gen != l.gen || l.err != nil {
		return false
	}
	l.finish(err)
	return true
}

// finish notes why the link is over. The lock is held.
func (l *Link) finish(err error) {
	if l.err == nil {
		l.err = err
		l.wake()
	}
}

// Unconfirmed returns how many frames the peer has not confirmed.
func (l *Link) Unconfirmed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.out.frames)
}

// Close ends the link and its socket.
func (l *Link) Close() error {
	l.mu.Lock()
	l.finish(errOver)
	socket := l.socket
	l.socket = nil
	l.gen++
	l.out.forget()
	l.mu.Unlock()
	var err error
	if socket != nil {
		err = socket.Close()
	}
	l.helpers.Wait()
	return err
}
