//go:build unix

package acceptance

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// stroke is what happens to one connection of a breakingWay.
type stroke struct {
	how   string // "reset", "end", "silence" or "refuse"
	down  bool   // bytes to the client are counted, else those to the server
	after int    // so many; the one that is next does not arrive
}

// String says it as a log does.
func (s stroke) String() string {
	way := "up"
	if s.down {
		way = "down"
	}
	return fmt.Sprintf("%s after %d bytes %s", s.how, s.after, way)
}

// strokes draws what happens to the connections of one story: most are cut
// somewhere in its frames, some in the handshake or right behind it.
func strokes(rnd *rand.Rand) []stroke {
	list := make([]stroke, 1+rnd.IntN(6))
	for i := range list {
		s := stroke{how: "reset", down: rnd.IntN(3) > 0, after: rnd.IntN(1 << (7 + rnd.IntN(11)))}
		switch n := rnd.IntN(20); {
		case n == 0:
			s.how = "silence"
		case n < 3:
			s.how = "refuse"
		case n < 9:
			s.how = "end"
		}
		list[i] = s
	}
	return list
}

// breakingWay is a TCP way to a gateway that breaks as it is told to. A frame
// is cut wherever the count of bytes ends.
type breakingWay struct {
	l     net.Listener
	to    string
	plain bool // the gateway is not told that the client knows links
	cuts  atomic.Int64
	all   sync.WaitGroup

	mu    sync.Mutex
	plan  []stroke
	conns map[net.Conn]bool
}

func newBreakingWay(t *testing.T, to string, plain bool) *breakingWay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &breakingWay{l: l, to: to, plain: plain, conns: map[net.Conn]bool{}}
	w.all.Go(w.serve)
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		for c := range w.conns {
			_ = c.Close()
		}
		w.mu.Unlock()
		w.all.Wait()
	})
	return w
}

func (w *breakingWay) url() string { return "ws://" + w.l.Addr().String() + "/acp" }

// next has these things happen to the next connections, one to each.
func (w *breakingWay) next(plan []stroke) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = plan
}

func (w *breakingWay) take() stroke {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.plan) == 0 {
		return stroke{}
	}
	s := w.plan[0]
	w.plan = w.plan[1:]
	return s
}

func (w *breakingWay) keep(c net.Conn, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if open {
		w.conns[c] = true
	} else {
		delete(w.conns, c)
	}
}

func (w *breakingWay) serve() {
	for {
		c, err := w.l.Accept()
		if err != nil {
			return
		}
		s := w.take()
		if s.how == "refuse" {
			w.cuts.Add(1)
			reset(c)
			continue
		}
		w.all.Go(func() { w.carry(c, s) })
	}
}

// carry passes bytes on until the stroke, or until an end closes.
func (w *breakingWay) carry(client net.Conn, s stroke) {
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		reset(client)
		return
	}
	for _, c := range []net.Conn{client, server} {
		w.keep(c, true)
		defer w.keep(c, false)
		defer c.Close()
	}
	up := io.Reader(client)
	if w.plain {
		if up, err = withoutLink(client); err != nil {
			return
		}
	}
	var silent atomic.Bool
	done := make(chan bool, 2) // of each direction: the stroke fell
	pass := func(to net.Conn, from io.Reader, struck bool) {
		buf := make([]byte, 8<<10)
		for left := s.after; ; {
			n, err := from.Read(buf)
			if struck && n > left {
				_, _ = to.Write(buf[:left])
				done <- true
				return
			}
			left -= n
			if !silent.Load() {
				_, werr := to.Write(buf[:n])
				err = firstOf(err, werr)
			}
			if err != nil {
				done <- false
				return
			}
		}
	}
	broken := s.how != ""
	w.all.Go(func() { pass(server, up, broken && !s.down) })
	w.all.Go(func() { pass(client, server, broken && s.down) })
	if !<-done {
		return
	}
	w.cuts.Add(1)
	switch s.how {
	case "reset":
		reset(client)
		reset(server)
	case "silence":
		silent.Store(true)
		// The end whose bytes are still read notices by itself that nothing
		// comes; the other is let go of when the test is over, as on a network
		// where nobody says goodbye.
		<-done
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutLink reads the client's upgrade and gives it back without the header
// that asks for a link.
func withoutLink(client net.Conn) (io.Reader, error) {
	r := bufio.NewReader(client)
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	req.Header.Del("Berth-Link")
	var head bytes.Buffer
	if err := req.Write(&head); err != nil {
		return nil, err
	}
	return io.MultiReader(&head, r), nil
}

// reset closes a connection so that what is under way is lost.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}
