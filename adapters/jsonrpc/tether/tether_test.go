package tether_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/framestest"
	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// wire is a pair of sockets in memory that can be cut. What is under way then
// is lost, as on a network.
type wire struct {
	mu   sync.Mutex
	cond *sync.Cond
	cut  bool
	end  [2]bool // closed by that side, in an orderly way
	way  [2][][]byte
	room int // frames that fit in one direction
}

var errCut = errors.New("cut")

func newWire(room int) (w *wire, a, b *socket) {
	w = &wire{room: room}
	w.cond = sync.NewCond(&w.mu)
	return w, &socket{w: w, side: 0}, &socket{w: w, side: 1}
}

// Cut loses the wire.
func (w *wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	w.way = [2][][]byte{}
	w.cond.Broadcast()
}

type socket struct {
	w    *wire
	side int
	left bool // it is closed in another way than the orderly one
	max  int
}

func (s *socket) Leave(int, string) { s.left = true }

func (s *socket) Read() ([]byte, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for {
		in := &s.w.way[1-s.side]
		switch {
		case s.w.end[s.side]:
			return nil, errors.New("closed")
		case len(*in) > 0:
			frame := (*in)[0]
			*in = (*in)[1:]
			s.w.cond.Broadcast()
			if s.max > 0 && len(frame) > s.max {
				return nil, &jsonrpc.TooLongError{Limit: s.max}
			}
			return frame, nil
		case s.w.cut:
			return nil, errCut
		case s.w.end[1-s.side]:
			return nil, io.EOF
		}
		s.w.cond.Wait()
	}
}

func (s *socket) Write(frame []byte) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for !s.w.cut && !s.w.end[0] && !s.w.end[1] && len(s.w.way[s.side]) >= s.w.room {
		s.w.cond.Wait()
	}
	if s.w.cut || s.w.end[0] || s.w.end[1] {
		return errCut
	}
	s.w.way[s.side] = append(s.w.way[s.side], append([]byte(nil), frame...))
	s.w.cond.Broadcast()
	return nil
}

func (s *socket) Close() error {
	if s.left {
		s.w.Cut()
		return nil
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.end[s.side] = true
	s.w.cond.Broadcast()
	return nil
}

func TestFrames(t *testing.T) {
	framestest.Run(t, func(_ framestest.TB, maxBytes int) (jsonrpc.Frames, jsonrpc.Frames) {
		_, a, b := newWire(64)
		a.max, b.max = maxBytes, maxBytes
		return attended(tether.New(a, tether.Options{Park: time.Hour})), attended(tether.New(b, tether.Options{}))
	})
}

// end is a link that is read all the time, as in a conversation: what confirms
// and what ends comes to the reader.
type end struct {
	*tether.Link
	mu     sync.Mutex
	cond   *sync.Cond
	frames [][]byte
	errs   []error // beside the frames, in order
	err    error   // the last word
}

func attended(l *tether.Link) *end {
	e := &end{Link: l}
	e.cond = sync.NewCond(&e.mu)
	go func() { // ends with the link
		for {
			frame, err := l.Read()
			long := (*jsonrpc.TooLongError)(nil)
			e.mu.Lock()
			if err == nil || errors.As(err, &long) {
				e.frames, e.errs = append(e.frames, frame), append(e.errs, err)
			} else {
				e.err = err
			}
			over := e.err != nil
			e.cond.Broadcast()
			e.mu.Unlock()
			if over {
				if errors.Is(err, tether.ErrAway) {
					_ = l.Close() // nobody redials
				}
				return
			}
		}
	}()
	return e
}

func (e *end) Read() ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.frames) == 0 && e.err == nil {
		e.cond.Wait()
	}
	if len(e.frames) == 0 {
		return nil, e.err
	}
	frame, err := e.frames[0], e.errs[0]
	e.frames, e.errs = e.frames[1:], e.errs[1:]
	return frame, err
}

// again puts two ends on a new wire, as the handshake does.
func again(client, server *tether.Link, room int) (*wire, error) {
	ticket, got, err := client.Fence()
	if err != nil {
		return nil, err
	}
	theirs, have, err := server.Fence()
	if err != nil {
		return nil, err
	}
	w, a, b := newWire(room)
	var both sync.WaitGroup
	var errs [2]error
	both.Go(func() { errs[0] = client.Attach(ticket, a, have) })
	both.Go(func() { errs[1] = server.Attach(theirs, b, got) })
	both.Wait()
	return w, errors.Join(errs[:]...)
}

// reader reads an end until it is over, through every cut.
func reader(end *tether.Link) (got []string, err error) {
	for {
		frame, err := end.Read()
		switch {
		case errors.Is(err, tether.ErrAway):
			time.Sleep(50 * time.Microsecond) // of the bubble
		case err != nil:
			return got, err
		default:
			got = append(got, string(frame))
		}
	}
}

// TestCuts sends in both directions at once while the wire is cut at random
// moments.
func TestCuts(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { cuts(t, seed) })
		})
	}
}

func cuts(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 5))
	room := 1 + rnd.IntN(8)
	w, a, b := newWire(room)
	hold := 1 << (14 + rnd.IntN(6))
	client := tether.New(a, tether.Options{Hold: hold})
	server := tether.New(b, tether.Options{Hold: 4 << 20, Park: time.Hour})
	const frames = 1500
	var all sync.WaitGroup
	got := map[string][]string{}
	var mu sync.Mutex
	for name, end := range map[string]*tether.Link{"client": client, "server": server} {
		pauses := rand.New(rand.NewPCG(seed, uint64(len(name)+int(name[0]))))
		all.Go(func() {
			for i := range frames {
				if err := end.Write([]byte(fmt.Sprintf(`{"%s":%d,"pad":"%s"}`, name, i, strings.Repeat("x", pauses.IntN(600))))); err != nil {
					t.Errorf("%s: write %d: %v", name, i, err)
					return
				}
				if pauses.IntN(20) == 0 {
					time.Sleep(time.Duration(pauses.IntN(1000)) * time.Microsecond)
				}
			}
			if name == "client" {
				_ = end.CloseWrite()
			}
		})
		all.Go(func() {
			frames, err := reader(end)
			mu.Lock()
			defer mu.Unlock()
			got[name] = frames
			if name == "server" && !errors.Is(err, io.EOF) {
				t.Errorf("the server's direction ended with %v", err)
			}
			if name == "server" {
				return
			}
		})
	}
	for range 30 {
		time.Sleep(time.Duration(rnd.IntN(3000)) * time.Microsecond)
		w.Cut()
		time.Sleep(time.Duration(rnd.IntN(300)) * time.Microsecond)
		next, err := again(client, server, room)
		if err != nil {
			t.Fatalf("again: %v", err)
		}
		w = next
	}
	synctest.Wait()
	time.Sleep(time.Minute)
	_ = client.Close()
	_ = server.Close()
	all.Wait()
	for reader, writer := range map[string]string{"client": "server", "server": "client"} {
		if n := len(got[reader]); n != frames {
			t.Errorf("%s read %d frames of %d", reader, n, frames)
		}
		for i, frame := range got[reader] {
			if !strings.HasPrefix(frame, fmt.Sprintf(`{"%s":%d,`, writer, i)) {
				t.Fatalf("%s: frame %d is %s", reader, i, frame)
			}
		}
	}
}

// hello has a peer say something, so that it is not a stranger.
func hello(t *testing.T, peer, server jsonrpc.Frames) {
	t.Helper()
	if err := peer.Write([]byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(); err != nil {
		t.Fatal(err)
	}
}

// TestAway covers what ends a link whose peer is away.
func TestAway(t *testing.T) {
	t.Run("nobody comes back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, a, b := newWire(8)
			var seen []bool
			server := tether.New(b, tether.Options{Park: time.Minute, Away: func(away bool) { seen = append(seen, away) }})
			hello(t, a, server)
			start := time.Now()
			w.Cut()
			if _, err := server.Read(); !errors.Is(err, io.EOF) {
				t.Errorf("Read: %v, want io.EOF", err)
			}
			if d := time.Since(start); d != time.Minute {
				t.Errorf("it waited for %v", d)
			}
			if fmt.Sprint(seen) != "[true]" {
				t.Errorf("away: %v", seen)
			}
			if err := server.Write([]byte("{}")); err == nil {
				t.Errorf("a link that is over took a frame")
			}
			if _, _, err := server.Fence(); !errors.Is(err, tether.ErrStale) {
				t.Errorf("Fence: %v", err)
			}
		})
	})
	t.Run("nobody comes back who has said nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, _, b := newWire(8)
			server := tether.New(b, tether.Options{Park: time.Minute})
			start := time.Now()
			w.Cut()
			if _, err := server.Read(); !errors.Is(err, io.EOF) {
				t.Errorf("Read: %v, want io.EOF", err)
			}
			if d := time.Since(start); d != 5*time.Second {
				t.Errorf("it waited for %v", d)
			}
		})
	})
	t.Run("too much for one who is away", func(t *testing.T) {
		w, a, b := newWire(8)
		server := tether.New(b, tether.Options{Park: time.Hour, Hold: 100 << 10})
		hello(t, a, server)
		w.Cut()
		over := make(chan error, 1)
		go func() {
			_, err := server.Read()
			over <- err
		}()
		var err error
		for range 20 {
			if err = server.Write([]byte(strings.Repeat("x", 30<<10))); err != nil {
				break
			}
		}
		if !errors.Is(err, tether.ErrOverflow) {
			t.Errorf("Write: %v", err)
		}
		if err := <-over; !errors.Is(err, tether.ErrOverflow) {
			t.Errorf("Read: %v", err)
		}
	})
	t.Run("one that redials waits for room", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, a, b := newWire(8)
			client, server := tether.New(a, tether.Options{Hold: 100 << 10}), tether.New(b, tether.Options{Park: time.Hour})
			w.Cut()
			if _, err := client.Read(); !errors.Is(err, tether.ErrAway) {
				t.Fatalf("Read: %v", err)
			}
			wrote := make(chan int, 10)
			go func() {
				for i := range 10 {
					if client.Write([]byte(strings.Repeat("x", 30<<10))) == nil {
						wrote <- i
					}
				}
				close(wrote)
			}()
			synctest.Wait()
			if n := len(wrote); n != 3 {
				t.Errorf("%d frames were taken, want 3", n)
			}
			if _, err := again(client, server, 64); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = reader(client) }()
			for range 10 {
				if _, err := server.Read(); err != nil {
					t.Fatal(err)
				}
			}
			_ = client.Close()
			_ = server.Close()
			for range wrote {
			}
		})
	})
	t.Run("an orderly end is one", func(t *testing.T) {
		_, a, b := newWire(8)
		client, server := tether.New(a, tether.Options{}), tether.New(b, tether.Options{Park: time.Hour})
		_ = client.Close()
		if _, err := server.Read(); !errors.Is(err, io.EOF) {
			t.Errorf("Read: %v", err)
		}
	})
	t.Run("a socket for an older time", func(t *testing.T) {
		_, a, b := newWire(8)
		client, server := tether.New(a, tether.Options{}), tether.New(b, tether.Options{Park: time.Hour})
		old, _, _ := server.Fence()
		if _, err := again(client, server, 8); err != nil {
			t.Fatal(err)
		}
		_, _, late := newWire(8)
		if err := server.Attach(old, late, 0); !errors.Is(err, tether.ErrStale) {
			t.Errorf("Attach: %v", err)
		}
		ticket, _, _ := server.Fence()
		if err := server.Attach(ticket, late, 99); !errors.Is(err, tether.ErrStale) {
			t.Errorf("Attach for a peer that knows more than was sent: %v", err)
		}
	})
}

// TestHeld says that what is confirmed is not kept.
func TestHeld(t *testing.T) { synctest.Test(t, held) }

func held(t *testing.T) {
	_, a, b := newWire(8)
	client, server := tether.New(a, tether.Options{}), tether.New(b, tether.Options{Park: time.Hour})
	var all sync.WaitGroup
	all.Go(func() { _, _ = reader(client) })
	all.Go(func() { _, _ = reader(server) })
	for range 10_000 {
		if err := client.Write([]byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	if n := client.Unconfirmed(); n > 64 {
		t.Errorf("%d frames are kept", n)
	}
	_ = client.Close()
	_ = server.Close()
	all.Wait()
}

// TestStuckPeer says that a peer that sends and does not read costs no more
// than what it has not read.
func TestStuckPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := newWire(1)
		server := tether.New(b, tether.Options{Park: time.Hour})
		var all sync.WaitGroup
		all.Go(func() { _, _ = reader(server) })
		all.Go(func() {
			for range 2 { // the second finds the wire full
				_ = server.Write([]byte(`{"a":1}`))
			}
		})
		synctest.Wait()
		before := runtime.NumGoroutine()
		for range 10_000 {
			if err := a.Write([]byte(`{"b":1}`)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 1 {
			t.Errorf("%d goroutines wait to confirm what came", n)
		}
		_ = server.Close()
		all.Wait()
	})
}

// TestLongFrame says that a frame as long as all that may be kept passes behind
// others that are not confirmed.
func TestLongFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := newWire(8)
		client, server := tether.New(a, tether.Options{Hold: 100 << 10}), tether.New(b, tether.Options{Park: time.Hour})
		var all sync.WaitGroup
		all.Go(func() { _, _ = reader(client) })
		all.Go(func() { _, _ = reader(server) })
		for _, n := range []int{1, 100, 200 << 10, 90 << 10, 1} {
			if err := client.Write([]byte(strings.Repeat("x", n))); err != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
		_ = client.Close()
		_ = server.Close()
		all.Wait()
	})
}

func TestSignalsOfOthers(t *testing.T) {
	_, a, b := newWire(8)
	client, server := tether.New(a, tether.Options{}), tether.New(b, tether.Options{Park: time.Hour})
	for _, frame := range []string{`{"link":{"received":7}}`, `{"link":{"eof":true}}`, `{"link":1}`} {
		if err := client.Write([]byte(frame)); err != nil {
			t.Fatal(err)
		}
		got, err := server.Read()
		if err != nil || strings.TrimSpace(string(got)) != frame {
			t.Errorf("%s arrived as %s, %v", frame, got, err)
		}
	}
}

func TestHeader(t *testing.T) {
	if c, _, ok := tether.Asked(tether.Ask("", 0)); c != "" || !ok {
		t.Errorf("a new link is not understood")
	}
	if c, n, ok := tether.Asked(tether.Ask("id", 12)); c != "id" || n != 12 || !ok {
		t.Errorf("taking up is not understood: %q %d %v", c, n, ok)
	}
	for _, bad := range []string{"", "x", "a b", " 3", "a -1", "a 99999999999999999999999"} {
		if _, _, ok := tether.Asked(bad); ok {
			t.Errorf("%q is understood", bad)
		}
	}
	for header, want := range map[string]string{
		tether.Answer(): "true false 0", tether.AnswerResumed(9): "true true 9", "": "false false 0", "resumed": "false false 0", "resumed x": "false false 0",
	} {
		links, again, n := tether.Answered(header)
		if got := fmt.Sprint(links, again, n); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}
