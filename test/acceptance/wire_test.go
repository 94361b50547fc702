package acceptance

import (
	"errors"
	"io"
	"net"
	"sync"
)

// wire lies between clients and a daemon and can be cut: the sockets on both
// sides end without a word, as when a machine loses its network.
type wire struct {
	l    net.Listener
	to   string
	mu   sync.Mutex
	ends map[net.Conn]bool
	over bool
	work sync.WaitGroup
}

func newWire(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wire{l: l, to: to, ends: map[net.Conn]bool{}}
	w.work.Go(w.accept)
	return w, nil
}

func (w *wire) url() string { return "ws://" + w.l.Addr().String() + "/acp" }

func (w *wire) accept() {
	for {
		near, err := w.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		if !w.keep(near, far) {
			return
		}
		w.work.Go(func() { w.carry(near, far) })
		w.work.Go(func() { w.carry(far, near) })
	}
}

func (w *wire) keep(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.ends[c] = true
		if w.over {
			_ = c.Close()
		}
	}
	return !w.over
}

// carry copies until one side ends, and passes that end on.
func (w *wire) carry(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
}

// cut ends all that is connected. Others may connect.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.ends {
		_ = c.(*net.TCPConn).SetLinger(0) // a reset, not an end
		_ = c.Close()
	}
	clear(w.ends)
}

// close ends the wire and joins what carries. A nil wire is none.
func (w *wire) close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	err := w.l.Close()
	w.cut()
	w.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
