package ws_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
	"github.com/berth-dev/berth/adapters/ws"
)

// names knows three tokens; one has the name of another one.
type names struct{}

func (names) Lookup(token string, _ bool) (ws.Principal, bool) {
	if token == "second ann" {
		return ws.Principal{Name: "ann", Serial: "2"}, true
	}
	return ws.Principal{Name: token, Serial: "1"}, token == "ann" || token == "bob"
}

// echoing is a gateway whose connections answer every frame with itself.
type echoing struct {
	url   string
	stop  func() // takes no more connections
	guard *ws.Guard
	away  atomic.Int32 // times that a client went
	ended chan error   // how a connection ended
}

func newEchoing(t *testing.T, park time.Duration) *echoing {
	e := &echoing{ended: make(chan error, 64)}
	var ids atomic.Int32
	h := ws.NewHandler(ws.HandlerConfig{
		Park: park, NewID: func() string { return "c-" + strconv.Itoa(int(ids.Add(1))) },
		Serve: func(ctx context.Context, _ *ws.Conn, p ws.Peer) {
			if p.OnAway != nil {
				p.OnAway(func(away bool) {
					if away {
						e.away.Add(1)
					}
				})
			}
			stop := context.AfterFunc(ctx, func() { _ = p.Frames.Close() })
			defer stop()
			for {
				frame, err := p.Frames.Read()
				if err == nil {
					err = p.Frames.Write(frame)
				}
				if err != nil {
					e.ended <- err
					return
				}
			}
		},
	})
	e.guard = ws.NewGuard(ws.GuardConfig{Keys: names{}, NewID: func() string { return "r" }})
	s := httptest.NewServer(e.guard.Protect(h, "GET"))
	t.Cleanup(func() {
		if err := h.Close(context.Background(), nil); err != nil {
			t.Errorf("Close: %v", err)
		}
		s.Close()
	})
	e.url, e.stop = s.URL+"/acp", h.Stop
	return e
}

// dial opens a socket with a link's header.
func (e *echoing) dial(t *testing.T, who, ask string) *ws.Conn {
	t.Helper()
	head := http.Header{}
	if ask != "" {
		head.Set(tether.Header, ask)
	}
	c, err := ws.Dial(t.Context(), ws.DialConfig{URL: e.url, Token: who, Header: head})
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		<-c.Gone()
	})
	return c
}

func echo(t *testing.T, f jsonrpc.Frames, frame string) {
	t.Helper()
	if err := f.Write([]byte(frame)); err != nil {
		t.Fatalf("Write: %v", err)
	}
	got, err := f.Read()
	if err != nil || string(got) != frame {
		t.Fatalf("read %s, %v; want %s", got, err, frame)
	}
}

func TestLasting(t *testing.T) {
	t.Run("a connection outlives its sockets", func(t *testing.T) {
		e := newEchoing(t, time.Hour)
		c := e.dial(t, "ann", tether.Ask("", 0))
		links, again, _ := tether.Answered(c.Header().Get(tether.Header))
		if !links || again {
			t.Fatalf("the gateway answers %q", c.Header().Get(tether.Header))
		}
		l := tether.New(c, tether.Options{})
		defer l.Close()
		for i := range 20 {
			echo(t, l, `"`+strconv.Itoa(i)+`"`)
			ticket, received, err := l.Fence()
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Write([]byte(`"while away"`)); err != nil {
				t.Fatal(err)
			}
			next := e.dial(t, "ann", tether.Ask("c-1", received))
			_, again, have := tether.Answered(next.Header().Get(tether.Header))
			if !again || next.ID() != "c-1" {
				t.Fatalf("the gateway answers %q for %s", next.Header().Get(tether.Header), next.ID())
			}
			if err := l.Attach(ticket, next, have); err != nil {
				t.Fatal(err)
			}
			if frame, err := l.Read(); err != nil || string(frame) != `"while away"` {
				t.Fatalf("read %s, %v", frame, err)
			}
		}
		if n := e.guard.Count(); n != 1 {
			t.Errorf("%d connections count", n)
		}
		if e.away.Load() != 20 {
			t.Errorf("the client went %d times", e.away.Load())
		}
		_ = l.Close()
		if err := <-e.ended; err.Error() != "EOF" {
			t.Errorf("the connection ended with %v", err)
		}
		c = e.dial(t, "ann", tether.Ask("c-1", 3))
		if links, again, _ := tether.Answered(c.Header().Get(tether.Header)); !links || again || c.ID() != "c-2" {
			t.Errorf("a connection that is over is answered with %q", c.Header().Get(tether.Header))
		}
	})
	t.Run("only its own principal takes it up", func(t *testing.T) {
		e := newEchoing(t, time.Hour)
		l := tether.New(e.dial(t, "ann", tether.Ask("", 0)), tether.Options{})
		defer l.Close()
		echo(t, l, `"mine"`)
		for _, who := range []string{"bob", "second ann"} {
			thief := e.dial(t, who, tether.Ask("c-1", 0))
			if _, again, _ := tether.Answered(thief.Header().Get(tether.Header)); again || thief.ID() == "c-1" {
				t.Fatalf("%s took the connection up", who)
			}
		}
		echo(t, l, `"still mine"`)
	})
	t.Run("nobody comes back", func(t *testing.T) {
		e := newEchoing(t, 20*time.Millisecond)
		l := tether.New(e.dial(t, "ann", tether.Ask("", 0)), tether.Options{})
		if _, _, err := l.Fence(); err != nil {
			t.Fatal(err)
		}
		if err := <-e.ended; err.Error() != "EOF" {
			t.Errorf("the connection ended with %v", err)
		}
		_ = l.Close()
	})
	t.Run("a revoked token ends what waits", func(t *testing.T) {
		e := newEchoing(t, time.Hour)
		l := tether.New(e.dial(t, "ann", tether.Ask("", 0)), tether.Options{})
		defer l.Close()
		echo(t, l, `1`)
		if _, _, err := l.Fence(); err != nil {
			t.Fatal(err)
		}
		e.guard.Revoke(func(ws.Principal) bool { return false })
		<-e.ended
	})
	for name, park := range map[string]time.Duration{"a client that asks for none": time.Hour, "a gateway without links": 0} {
		t.Run(name, func(t *testing.T) {
			e := newEchoing(t, park)
			ask := ""
			if park == 0 {
				ask = tether.Ask("", 0)
			}
			c := e.dial(t, "ann", ask)
			if h := c.Header().Get(tether.Header); h != "" {
				t.Errorf("the gateway answers %q", h)
			}
			echo(t, c, `{"link":{"received":1}}`)
			_ = c.Close()
			if err := <-e.ended; !strings.Contains(err.Error(), "EOF") {
				t.Errorf("the connection ended with %v", err)
			}
		})
	}
}

// TestLasting_Leaving: while a gateway waits for what it has to end, nobody
// else can connect, and who is there comes back after a cut.
func TestLasting_Leaving(t *testing.T) {
	e := newEchoing(t, time.Hour)
	c := e.dial(t, "ann", tether.Ask("", 0))
	l := tether.New(c, tether.Options{})
	t.Cleanup(func() { _ = l.Close() })
	echo(t, l, `"before"`)
	e.stop()
	ticket, received, err := l.Fence() // which cuts
	if err != nil {
		t.Fatal(err)
	}
	again := e.dial(t, "ann", tether.Ask(c.ID(), received))
	_, resumed, theirs := tether.Answered(again.Header().Get(tether.Header))
	if !resumed {
		t.Fatalf("the answer is %q", again.Header().Get(tether.Header))
	}
	if err := l.Attach(ticket, again, theirs); err != nil {
		t.Fatal(err)
	}
	echo(t, l, `"after"`)
	for name, ask := range map[string]string{"no link": "", "a new link": tether.Ask("", 0), "an unknown link": tether.Ask("c-99", 3)} {
		var d *ws.DialError
		_, err := ws.Dial(t.Context(), ws.DialConfig{URL: e.url, Token: "ann", Header: http.Header{tether.Header: {ask}}})
		if !errors.As(err, &d) || d.Status != http.StatusServiceUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLasting_Places: a token that has all its places gets another one when the
// client of one is away, and none when all are there.
func TestLasting_Places(t *testing.T) {
	const most = 20
	e := newEchoing(t, time.Hour)
	var links []*tether.Link
	begin := func() {
		l := tether.New(e.dial(t, "ann", tether.Ask("", 0)), tether.Options{})
		t.Cleanup(func() { _ = l.Close() })
		echo(t, l, `"here"`)
		links = append(links, l)
	}
	for range most {
		begin()
	}
	refused := func() {
		t.Helper()
		var d *ws.DialError
		if _, err := ws.Dial(t.Context(), ws.DialConfig{URL: e.url, Token: "ann"}); !errors.As(err, &d) || d.Status != http.StatusTooManyRequests {
			t.Errorf("one more: %v", err)
		}
	}
	refused()
	for n := range 2 {
		if _, _, err := links[n].Fence(); err != nil {
			t.Fatal(err)
		}
		for e.away.Load() != int32(n+1) {
			runtime.Gosched() // until the gateway has seen it
		}
	}
	for n := range 2 {
		begin()
		if err := <-e.ended; !errors.Is(err, tether.ErrDisplaced) {
			t.Errorf("%d: a connection ended with %v", n, err)
		}
		if n := e.guard.Count(); n != most {
			t.Errorf("%d connections count", n)
		}
	}
	refused()
	for n := 2; n < most; n++ {
		echo(t, links[n], `"still here"`)
	}
	refused()
	_ = links[most-1].Close()
	if err := <-e.ended; !errors.Is(err, io.EOF) {
		t.Errorf("a connection ended with %v", err)
	}
}
