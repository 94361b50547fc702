package ws

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// Close codes of RFC 6455 that this package sends, or that its users ask it
// to send.
const (
	CloseNormal   = websocket.CloseNormalClosure
	CloseProtocol = websocket.CloseProtocolError
	CloseBadText  = websocket.CloseInvalidFramePayloadData
	ClosePolicy   = websocket.ClosePolicyViolation
	CloseTooBig   = websocket.CloseMessageTooBig
	CloseInternal = websocket.CloseInternalServerErr
	CloseRestart  = websocket.CloseServiceRestart
	CloseTryLater = websocket.CloseTryAgainLater
)

// DefaultMaxBytes is the longest inbound message unless told otherwise.
const DefaultMaxBytes = 32 << 20

// Config of a Conn. The zero value means the defaults in parentheses.
type Config struct {
	MaxBytes     int           // longest inbound message (DefaultMaxBytes); a longer one closes with 1009
	PingInterval time.Duration // between pings (30 s); two without any sign of life end the connection
	WriteTimeout time.Duration // how long the peer may take nothing of what is written (10 s)
	// First judges the first message, for a protocol that has to begin in one
	// way. Its error closes with 1002 and its text; skip has the next message
	// judged as the first again. nil takes anything.
	First func(message []byte) (skip bool, err error)
}

func (c *Config) setDefaults() {
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.PingInterval <= 0 {
		c.PingInterval = 30 * time.Second
	}
	if c.WriteTimeout <= 0 {
		c.WriteTimeout = 10 * time.Second
	}
}

// Conn is one end of a WebSocket that carries text messages. It is a transport
// of jsonrpc (Frames): Read belongs to one goroutine, Write to one other, the
// rest to anyone.
type Conn struct {
	ws       *websocket.Conn
	link     *link
	cfg      Config
	id       string
	protocol string
	head     http.Header // of the answer, on the end that dialled
	beat     *time.Timer
	silent   int // pings without a sign of life; of the beat

	reading sync.Mutex             // held while a Read is under way
	started bool                   // the first message was judged; of the reader
	writing sync.Mutex             // held while a message is written
	budget  budget                 // of control frames; of the reader
	owed    atomic.Pointer[string] // the last ping, until it is answered

	mu    sync.Mutex
	over  bool           // nothing more is started
	code  int            // what Close says
	why   string         // and its reason
	bade  atomic.Bool    // the peer has closed: it sends nothing more
	cause error          // what Read and Write return once it is over
	side  sync.WaitGroup // short work beside the reader and the writer
	ended chan struct{}  // closed together with setting over
	gone  chan struct{}  // closed when nothing of the connection is left
}

// newConn takes over an open WebSocket.
func newConn(ws *websocket.Conn, l *link, cfg Config) *Conn {
	cfg.setDefaults()
	c := &Conn{
		ws: ws, link: l, cfg: cfg, code: CloseNormal,
		protocol: ws.Subprotocol(), started: cfg.First == nil,
		budget: budget{left: controlBurst, at: time.Now()},
		ended:  make(chan struct{}), gone: make(chan struct{}),
	}
	l.patience = cfg.WriteTimeout
	l.slow = func() { c.end(ClosePolicy, "too slow", errSlow) }
	ws.SetReadLimit(int64(cfg.MaxBytes))
	ws.SetCloseHandler(func(int, string) error { return nil }) // Read answers
	ws.SetPingHandler(c.pinged)
	ws.SetPongHandler(func(string) error { return c.control() })
	c.mu.Lock()
	c.beat = time.AfterFunc(cfg.PingInterval, c.beats)
	c.mu.Unlock()
	return c
}

// ID is the connection's id: Acp-Connection-Id of the answer to the upgrade.
func (c *Conn) ID() string { return c.id }

// Protocol is the sub-protocol that was agreed, or "".
func (c *Conn) Protocol() string { return c.protocol }

// Header is the header of the gateway's answer, on the end that dialled; nil on
// the other.
func (c *Conn) Header() http.Header { return c.head }

// Read returns the next text message. Binary messages are passed over. It
// returns io.EOF after the peer closed with code 1000; every other error means
// that the connection was lost, or closed here. All are final.
func (c *Conn) Read() ([]byte, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for {
		if err := c.isOver(); err != nil {
			return nil, err
		}
		c.link.message()
		kind, r, err := c.ws.NextReader()
		if err != nil {
			return nil, c.lost(err)
		}
		if kind != websocket.TextMessage {
			if _, err := c.drop(r); err != nil {
				return nil, c.lost(err)
			}
			continue
		}
		message, err := c.readAll(r)
		switch {
		case errors.Is(err, errNotText):
			return nil, c.end(CloseBadText, "not UTF-8", err)
		case err != nil:
			return nil, c.lost(err)
		}
		if err := c.first(message); err != nil {
			return nil, err
		}
		return message, nil
	}
}

// first judges the message that comes first.
func (c *Conn) first(message []byte) error {
	if c.started {
		return nil
	}
	skip, err := c.cfg.First(message)
	if err != nil {
		return c.end(CloseProtocol, err.Error(), err)
	}
	c.started = !skip
	return nil
}

// errNotText is why a connection is given up whose messages are no text.
var errNotText = errors.New("the peer sent text that is not UTF-8")

// readAll reads a message into memory of its own. It ends as soon as what has
// come so far is the beginning of no text.
func (c *Conn) readAll(r io.Reader) ([]byte, error) {
	buf := make([]byte, 0, 512)
	checked := 0
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		c.link.content += n
		letters, text := whole(buf[checked:])
		checked += letters
		switch {
		case !text, errors.Is(err, io.EOF) && checked < len(buf):
			return nil, errNotText
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case len(buf) == cap(buf):
			grown := make([]byte, len(buf), min(2*cap(buf), max(c.cfg.MaxBytes+1, len(buf)+512)))
			copy(grown, buf)
			buf = grown
		}
	}
}

// whole returns how many bytes of b are whole letters, all but the beginning of
// one at its end; text is false when b goes on in no text.
func whole(b []byte) (n int, text bool) {
	n = len(b)
	for i := n - 1; i >= max(0, n-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				n = i
			}
			break
		}
	}
	return n, utf8.Valid(b[:n])
}

// drop reads a message that nobody wants.
func (c *Conn) drop(r io.Reader) (int64, error) {
	var scratch [4 << 10]byte
	var all int64
	for {
		n, err := r.Read(scratch[:])
		all += int64(n)
		c.link.content += n
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
	}
}

// Write sends one text message. It fails once the peer has not taken any of
// it for the write timeout, or the connection is over.
func (c *Conn) Write(message []byte) error {
	c.writing.Lock()
	defer c.release()
	if err := c.isOver(); err != nil {
		return closedError(err)
	}
	if err := c.ws.WriteMessage(websocket.TextMessage, message); err != nil {
		return closedError(c.lost(err))
	}
	return nil
}

// closedError keeps the end of the peer's direction from looking like an
// orderly end of ours.
func closedError(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the peer closed the connection")
	}
	return err
}

// isOver returns why nothing can be read or written any more, or nil.
func (c *Conn) isOver() error {
	select {
	case <-c.ended:
		return c.cause
	default:
		return nil
	}
}

// lost ends the connection after a read or a write failed, and returns why it
// is over: the first reason counts.
func (c *Conn) lost(err error) error {
	var closed *websocket.CloseError
	if errors.As(err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
		c.bade.Store(true)
	}
	switch {
	case errors.As(err, &closed) && closed.Code == websocket.CloseAbnormalClosure: // no close frame came
		return c.end(CloseProtocol, "", fmt.Errorf("the connection was lost: %w", io.ErrUnexpectedEOF))
	case errors.As(err, &closed) && closed.Code == CloseNormal:
		return c.end(CloseNormal, "", io.EOF)
	case errors.As(err, &closed) && closed.Text != "":
		return c.end(closed.Code, "", &ClosedError{closed.Code, closed.Text})
	case errors.As(err, &closed):
		return c.end(closed.Code, "", &ClosedError{Code: closed.Code})
	case errors.Is(err, websocket.ErrReadLimit):
		return c.end(CloseTooBig, "", fmt.Errorf("the peer sent a message longer than %d bytes", c.cfg.MaxBytes))
	case errors.Is(err, errTiny):
		return c.end(ClosePolicy, err.Error(), err)
	case c.link.broken.Load():
		return c.end(CloseProtocol, "", fmt.Errorf("the connection was lost: %w", err))
	default:
		return c.end(CloseProtocol, "", err)
	}
}

// ClosedError says how the peer closed the connection, when that was not the
// orderly way.
type ClosedError struct {
	Code   int    // 1005 when the peer gave none
	Reason string // the peer's words
}

// Error names the code.
func (e *ClosedError) Error() string {
	if e.Reason == "" {
		return fmt.Sprintf("the peer closed the connection with code %d", e.Code)
	}
	return fmt.Sprintf("the peer closed the connection with code %d: %q", e.Code, e.Reason)
}
