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
// Read tether.go (what both ends do), signal.go, header.go (the handshake).
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

// What is received is confirmed at the latest after so many frames or bytes.
const (
	confirmFrames = 32
	confirmBytes  = 32 << 10
)

// unconfirmedBytes is what may stay unconfirmed for ever, when nothing follows:
// waiting for less to be held would be waiting for ever.
const unconfirmedBytes = 2 * confirmBytes

// The errors of a link that is over for the transport's sake.
var (
	// ErrAway is what Read returns on an end that redials when the socket is
	// lost; Attach brings it back.
	ErrAway = errors.New("the connection is interrupted")
	// ErrOverflow ends an end that waits for its peer when more was sent than
	// it may keep.
	ErrOverflow = errors.New("the connection is lost: its client was away for too many messages")
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

	received  uint64 // frames of the peer that Read took
	toConfirm bool
	frames    int // received since the last confirmation
	bytes     int

	confirmed uint64   // frames of ours that the peer has
	held      [][]byte // those behind, as they go out
	size      int      // bytes of held
	next      int      // the first of held that this socket has not had
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

// attached returns the socket, waiting for one as long as the peer may be away.
func (l *Link) attached() (jsonrpc.Frames, uint64, error) {
	for {
		l.mu.Lock()
		socket, gen, changed, since := l.socket, l.gen, l.changed, l.since
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
		limit := time.NewTimer(l.opts.Park - time.Since(since))
		select {
		case <-changed:
			limit.Stop()
		case <-limit.C:
			l.end(gen, io.EOF)
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
		l.trim(n)
		return nil, nil, false
	}
	l.received++
	l.frames++
	l.bytes += len(frame)
	if l.frames >= confirmFrames || l.bytes >= confirmBytes {
		l.frames, l.bytes, l.toConfirm = 0, 0, true
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

// trim drops what the peer has. The lock is held.
func (l *Link) trim(received uint64) {
	if received <= l.confirmed || received > l.confirmed+uint64(len(l.held)) {
		return
	}
	n := int(received - l.confirmed)
	for i, frame := range l.held[:n] {
		l.size -= len(frame)
		l.held[i] = nil
	}
	l.held = l.held[n:]
	l.next = max(l.next-n, 0)
	l.confirmed = received
	l.wake()
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
	for l.err == nil && l.size > unconfirmedBytes && l.size+len(frame) > l.opts.Hold {
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
	l.held = append(l.held, frame)
	l.size += len(frame)
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
	switch {
	case l.socket == nil || l.err != nil:
		return nil, 0, nil
	case l.toConfirm:
		l.toConfirm = false
		return l.socket, l.gen, confirmation(l.received)
	case l.next < len(l.held):
		l.next++
		return l.socket, l.gen, l.held[l.next-1]
	}
	return nil, 0, nil
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

// codeGoingAway is the close code of RFC 6455 of an end that leaves.
const codeGoingAway = 1001

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
	ticket, received = l.gen, l.received
	l.mu.Unlock()
	abandon(socket)
	return ticket, received, nil
}

// Attach goes on with a new socket to a peer that has received so many frames.
// It returns when what the peer lacks has been sent. A socket that is refused
// is not closed.
func (l *Link) Attach(ticket uint64, socket jsonrpc.Frames, received uint64) error {
	l.mu.Lock()
	if l.err != nil || ticket != l.gen || received < l.confirmed || received > l.confirmed+uint64(len(l.held)) {
		l.mu.Unlock()
		return ErrStale
	}
	l.trim(received)
	l.next, l.socket = 0, socket
	l.frames, l.bytes, l.toConfirm = 0, 0, false // the handshake has told
	l.wake()
	if l.opts.Away != nil {
		l.opts.Away(false)
	}
	l.mu.Unlock()
	l.flush()
	return nil
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
	return len(l.held)
}

// Leave sets what Close will say to the peer, if the socket can say something.
func (l *Link) Leave(code int, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok := l.socket.(leaver); ok {
		s.Leave(code, reason)
	}
}

// leaver is a socket that can say why it is closed, by the codes of RFC 6455.
type leaver interface {
	Leave(code int, reason string)
}

// Close ends the link and its socket.
func (l *Link) Close() error {
	l.mu.Lock()
	l.finish(errOver)
	socket := l.socket
	l.socket = nil
	l.gen++
	l.held, l.size = nil, 0
	l.mu.Unlock()
	var err error
	if socket != nil {
		err = socket.Close()
	}
	l.helpers.Wait()
	return err
}
