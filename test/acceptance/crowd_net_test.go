package acceptance

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// network is a network in memory: what listens on it is dialled with dial, and
// time in it is the bubble's.
type network struct {
	calls chan net.Conn
	over  chan struct{}
	once  sync.Once
}

var _ net.Listener = (*network)(nil)

func newNetwork() *network {
	return &network{calls: make(chan net.Conn), over: make(chan struct{})}
}

// Accept waits for a dial.
func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.calls:
		return c, nil
	case <-n.over:
		return nil, net.ErrClosed
	}
}

// Close ends Accept; what was accepted stays.
func (n *network) Close() error {
	n.once.Do(func() { close(n.over) })
	return nil
}

// Addr is one of this machine.
func (n *network) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dial makes a connection over a cable of its own.
func (n *network) dial(ctx context.Context) (*cable, error) {
	near, a := net.Pipe()
	b, far := net.Pipe()
	c := &cable{Conn: near, ends: []net.Conn{near, a, b, far}, frozen: make(chan struct{}), whole: make(chan struct{})}
	select {
	case n.calls <- far:
	case <-n.over:
		return nil, errors.New("nothing listens")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	go c.carry(b, a) // both end with the ends of the cable
	go c.carry(a, b)
	return c, nil
}

// cable is the near end of a connection through wires that keep some of what is
// under way, and can be cut: then that is lost.
type cable struct {
	net.Conn
	ends   []net.Conn
	frozen chan struct{} // closed when it carries nothing any more
	freeze sync.Once
	whole  chan struct{} // closed when it is cut
	cutter sync.Once
}

// underway is how many pieces a wire keeps. It is never full: whoever writes
// would wait with a mutex held, and then time in the bubble does not pass.
const underway = 1 << 14

// carry takes what one end says to the other.
func (c *cable) carry(to, from net.Conn) {
	wire := make(chan []byte, underway)
	go func() {
		defer to.Close()
		for piece := range wire {
			select {
			case <-c.frozen:
				<-c.whole
				continue
			default:
			}
			if _, err := to.Write(piece); err != nil {
				from.Close()
			}
		}
	}()
	defer close(wire)
	for {
		buf := make([]byte, 8<<10)
		n, err := from.Read(buf)
		if n > 0 {
			wire <- buf[:n]
		}
		if err != nil {
			return
		}
	}
}

// cut cuts the cable: both ends notice.
func (c *cable) cut() {
	c.cutter.Do(func() {
		c.stop()
		close(c.whole)
		for _, end := range c.ends {
			_ = end.Close()
		}
	})
}

// stop lets nothing through any more, and nobody notices until somebody asks;
// the near end does after a while.
func (c *cable) stop() {
	c.freeze.Do(func() {
		close(c.frozen)
		time.AfterFunc(90*time.Second, c.cut)
	})
}

// wsocket is a client's WebSocket over a cable, as frames.
type wsocket struct {
	*websocket.Conn
	cable *cable
	once  sync.Once
}

var _ jsonrpc.Frames = (*wsocket)(nil)

// dialSocket connects as a client with a token; link is the header of a link.
func (n *network) dialSocket(ctx context.Context, token, link string) (*wsocket, http.Header, error) {
	var wire *cable
	d := websocket.Dialer{NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var err error
		wire, err = n.dial(ctx)
		return wire, err
	}}
	head := http.Header{"Authorization": {"Bearer " + token}}
	if link != "" {
		head.Set(tether.Header, link)
	}
	c, answer, err := d.DialContext(ctx, "ws://127.0.0.1/acp", head)
	if err != nil {
		if wire != nil {
			wire.cut()
		}
		return nil, nil, err
	}
	return &wsocket{Conn: c, cable: wire}, answer.Header, nil
}

// Read returns the next message; io.EOF when the gateway closed with 1000.
func (s *wsocket) Read() ([]byte, error) {
	_, data, err := s.ReadMessage()
	if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		err = io.EOF
	}
	return data, err
}

func (s *wsocket) Write(data []byte) error { return s.WriteMessage(websocket.TextMessage, data) }

// Close cuts the cable.
func (s *wsocket) Close() error {
	s.cable.cut()
	return nil
}

// bye closes with a code, as a client does that leaves by itself.
func (s *wsocket) bye(code int) {
	_ = s.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second)) // fails when it is gone
}
