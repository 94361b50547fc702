package bootstrap

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/ws"
)

// caller is a network connection from an address, which notes that it was
// closed.
type caller struct {
	net.Conn
	from   string
	closed bool
}

func (c *caller) Close() error {
	c.closed = true
	return errors.New("nobody asks")
}

func (c *caller) RemoteAddr() net.Addr {
	if c.from == "" {
		return &net.UnixAddr{Net: "unix"}
	}
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))
}

// calls has so many connections come in from an address.
func calls(d *door, n int, from string) []*caller {
	var list []*caller
	for range n {
		c := &caller{from: from}
		d.note(c, http.StateNew)
		list = append(list, c)
	}
	return list
}

// closedOf says which of some connections were closed.
func closedOf(list []*caller) string {
	var b strings.Builder
	for _, c := range list {
		b.WriteByte("-x"[map[bool]int{true: 1}[c.closed]])
	}
	return b.String()
}

// admit has a request on a connection admitted.
func admit(d *door, c net.Conn) {
	d.note(c, http.StateActive)
	r := httptest.NewRequest(http.MethodGet, "/acp", nil)
	d.know(r.WithContext(d.enter(context.Background(), c)))
}

func TestDoor(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(d *door) []*caller
		want string // x for those that were closed
	}{
		{"as many as may be", func(d *door) []*caller { return calls(d, 4, "192.0.2.1:1") }, "----"},
		{"one more takes the place of the oldest", func(d *door) []*caller { return calls(d, 6, "192.0.2.1:1") }, "xx----"},
		{"the network with the most pays", func(d *door) []*caller {
			return append(calls(d, 1, "192.0.2.1:1"), append(calls(d, 4, "192.0.2.2:1"), calls(d, 1, "192.0.2.3:1")...)...)
		}, "-xx---"},
		{"half an address of IPv6 is one network", func(d *door) []*caller {
			return append(calls(d, 1, "192.0.2.1:1"), append(calls(d, 2, "[2001:db8::1]:1"), calls(d, 2, "[2001:db8::2]:1")...)...)
		}, "-x---"},
		{"a Unix socket is one", func(d *door) []*caller { return calls(d, 5, "") }, "x----"},
		{"who was admitted is no stranger", func(d *door) []*caller {
			known := calls(d, 3, "192.0.2.1:1")
			for _, c := range known {
				admit(d, c)
			}
			return append(known, calls(d, 5, "192.0.2.1:1")...)
		}, "---x----"},
		{"who asked what everybody may ask is one still", func(d *door) []*caller {
			asked := calls(d, 4, "192.0.2.1:1")
			d.note(asked[0], http.StateActive)
			d.note(asked[0], http.StateIdle)
			return append(asked, calls(d, 1, "192.0.2.1:1")...)
		}, "-x---"},
		{"known ones that rest are bounded, those at work are not", func(d *door) []*caller {
			known := calls(d, 1, "192.0.2.1:1")
			admit(d, known[0])
			for i := range 5 {
				c := calls(d, 1, fmt.Sprintf("192.0.2.%d:1", i+2))[0]
				admit(d, c)
				d.note(c, http.StateIdle)
				known = append(known, c)
			}
			return known
		}, "-x----"},
		{"who was admitted by what it has given up rests", func(d *door) []*caller {
			known := calls(d, 5, "192.0.2.1:1")[1:] // the first has made room
			for _, c := range known {
				d.note(c, http.StateActive)
				d.note(c, http.StateIdle)
				r := httptest.NewRequest(http.MethodGet, "/acp", nil)
				d.know(r.WithContext(d.enter(context.Background(), c)))
			}
			late := calls(d, 1, "192.0.2.1:1")[0]
			admit(d, late)
			d.note(late, http.StateIdle)
			return append(known, late)
		}, "x----"},
		{"who left or became a WebSocket does not count", func(d *door) []*caller {
			gone := calls(d, 4, "192.0.2.1:1")
			d.note(gone[0], http.StateClosed)
			admit(d, gone[1])
			d.note(gone[1], http.StateHijacked)
			d.note(gone[2], http.StateClosed)
			d.note(gone[2], http.StateClosed) // again
			return append(gone, calls(d, 3, "192.0.2.1:1")...)
		}, "-------"},
		{"the end", func(d *door) []*caller {
			list := calls(d, 2, "192.0.2.1:1")
			d.note(list[1], http.StateActive)
			d.close()
			return append(list, calls(d, 1, "192.0.2.1:1")...)
		}, "x-x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDoor(16)
			if got := closedOf(tt.play(d)); got != tt.want {
				t.Errorf("closed: %s, want %s", got, tt.want)
			}
			for c := range d.visitors { // the counts come back to nothing
				d.note(c, http.StateClosed)
			}
			if d.count != 0 || d.resting != 0 || len(d.strangers) != 0 {
				t.Errorf("left are %d strangers of %v and %d that rest", d.count, d.strangers, d.resting)
			}
		})
	}
}

func TestDoor_Size(t *testing.T) {
	for files, want := range map[uint64]int{0: maxStrangers, 1 << 20: maxStrangers, 256: 64, 1: 1} {
		if got := newDoor(files).most; got != want {
			t.Errorf("of %d files: %d, want %d", files, got, want)
		}
	}
}

// oneKey knows one token.
type oneKey string

func (k oneKey) Lookup(token string, _ bool) (ws.Principal, bool) {
	return ws.Principal{Name: "one"}, token == string(k)
}

// TestDoor_Server: silent sockets, also in the middle of a handshake of TLS,
// keep nobody out, and who was let in keeps his connection.
func TestDoor_Server(t *testing.T) {
	for name, start := range map[string]func(*httptest.Server){
		"HTTP": (*httptest.Server).Start,
		"TLS":  (*httptest.Server).StartTLS,
		"HTTP 2": func(s *httptest.Server) {
			s.EnableHTTP2 = true
			s.StartTLS()
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDoor(16)
			guard := ws.NewGuard(ws.GuardConfig{Keys: oneKey("right"), NewID: func() string { return "r" }, Admitted: d.know})
			s := httptest.NewUnstartedServer(bounded(guard.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, "in from "+r.RemoteAddr)
			}), http.MethodGet)))
			s.Config.ConnContext, s.Config.ConnState = d.enter, d.note
			start(s)
			defer s.Close()
			ask := func() string {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer right")
				res, err := s.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				body, _ := io.ReadAll(res.Body)
				if res.StatusCode != http.StatusOK {
					t.Fatalf("answered %s", res.Status)
				}
				return string(body)
			}
			silent := func(n int) (list []net.Conn) {
				t.Helper()
				for range n {
					c, err := net.Dial("tcp", s.Listener.Addr().String())
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = c.Close() })
					list = append(list, c)
				}
				return list
			}
			before := silent(10)
			first := ask()
			for _, c := range before[:6] {
				if _, err := c.Read(make([]byte, 1)); err == nil {
					t.Error("a silent one was told something")
				}
			}
			after := silent(10)
			for _, c := range after[:6] {
				_, _ = c.Read(make([]byte, 1)) // until it is hung up on
			}
			if again := ask(); again != first {
				t.Errorf("the connection did not last: %q, then %q", first, again)
			}
		})
	}
}

// TestGateway_SlowBody: who was not let in is answered although the rest of
// his body does not come, and hung up on.
func TestGateway_SlowBody(t *testing.T) {
	t.Parallel()
	w := written{t, t.TempDir()}
	d, _ := w.daemonOf("auth = \"token\"\n")
	for name, tt := range map[string]struct{ head, want string }{
		"no token":            {"POST /acp", "401"},
		"a question for all":  {"GET /healthz", "200"},
		"the console":         {"GET /", "200"},
		"a path that is none": {"GET /nothing", "404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", d.Info().Address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nand then nothing", tt.head)
			in := bufio.NewReader(c)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			if !strings.HasPrefix(res.Status, tt.want) {
				t.Errorf("answered %s, want %s", res.Status, tt.want)
			}
			if _, err := in.ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

// onePipe is a listener for one connection without a network.
type onePipe struct {
	conn chan net.Conn
	over chan struct{}
}

func (p onePipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conn:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p onePipe) Close() error {
	close(p.over)
	return nil
}

func (p onePipe) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// TestBounded_Unread: who takes nothing of what he asked for is hung up on.
func TestBounded_Unread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := onePipe{make(chan net.Conn), make(chan struct{})}
		s := &http.Server{Handler: bounded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
		}))}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }() // ends with Close
		ours, theirs := net.Pipe()
		l.conn <- theirs
		if _, err := io.WriteString(ours, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		time.Sleep(answerTime + time.Second)
		if n, err := io.Copy(io.Discard, ours); err != nil || n > 64<<10 {
			t.Errorf("after %v it still had %d bytes: %v", time.Since(start), n, err)
		}
		if took := time.Since(start); took > answerTime+2*time.Second {
			t.Errorf("it ended after %v", took)
		}
		_ = s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
