package bridge_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/bridge"
	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// TestLink cuts the sockets of a link in a row, before anything has come over
// them. A bad line is lived with; what is cut every time is given up.
func TestLink(t *testing.T) {
	tests := []struct {
		name  string
		cuts  int
		links int // that were begun in all
	}{
		{"one cut", 1, 1},
		{"a bad line", 12, 1},
		{"cut every time", 13, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &linked{cuts: tt.cuts}
				mine, theirs := newSocket(64)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- bridge.New(theirs, bridge.Config{Dial: g.dial}).Run(ctx) }()
				write(t, mine, hello)
				synctest.Wait()
				began := time.Now()
				if frame, err := g.end().Read(); err != nil || string(frame) != hello {
					t.Fatalf("the gateway read %s, %v", frame, err)
				}
				if err := g.end().Write([]byte(welcome)); err != nil {
					t.Fatal(err)
				}
				want(t, mine, welcome)
				g.mu.Lock()
				last := g.last
				g.mu.Unlock()
				last.Cut()
				if tt.links == 1 {
					if err := g.end().Write([]byte(chunk("m", "here"))); err != nil {
						t.Fatal(err)
					}
					go func() { _, _ = g.end().Read() }() // it sees the cuts, and the end
					want(t, mine, chunk("m", "here"))
				} else {
					go func() { _, _ = g.end().Read() }()
					time.Sleep(time.Minute)
					if frame, err := g.end().Read(); err != nil || string(frame) != fmt.Sprintf(helloAgain, 1) {
						t.Errorf("the gateway read %s, %v on the second link", frame, err)
					}
				}
				g.mu.Lock()
				if g.links != tt.links {
					t.Errorf("%d links were begun, want %d", g.links, tt.links)
				}
				g.mu.Unlock()
				if tt.links == 1 && time.Since(began) > time.Minute {
					t.Errorf("it took %v", time.Since(began))
				}
				cancel()
				<-done
				_ = mine.Close()
				for _, s := range g.all {
					_ = s.Close()
				}
			})
		})
	}
}

// linked is a gateway with links. The first sockets behind the first one of a
// link are cut before anything comes over them.
type linked struct {
	mu     sync.Mutex
	server *tether.Link
	last   *socket
	all    []*tether.Link
	cuts   int
	links  int
}

// end is the gateway's end of the newest link.
func (g *linked) end() *tether.Link {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.server
}

func (g *linked) dial(_ context.Context, _, link string) (bridge.Dialled, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a, b := newSocket(64)
	connection, received, _ := tether.Asked(link)
	g.last = a
	if connection == "" {
		g.links++
		g.server = tether.New(b, tether.Options{Park: time.Hour})
		g.all = append(g.all, g.server)
		return bridge.Dialled{Frames: a, Connection: "c", Link: tether.Answer()}, nil
	}
	ticket, have, err := g.server.Fence()
	if err != nil {
		return bridge.Dialled{}, err
	}
	if g.cuts--; g.cuts > 0 {
		a.Cut()
	}
	if err := g.server.Attach(ticket, b, received); err != nil {
		return bridge.Dialled{}, err
	}
	return bridge.Dialled{Frames: a, Connection: "c", Link: tether.AnswerResumed(have)}, nil
}

// TestLink_Idle cuts the sockets of a link that nothing comes over, once an
// hour. It goes on: none of them was cut by what is sent.
func TestLink_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &linked{}
		mine, theirs := newSocket(64)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- bridge.New(theirs, bridge.Config{Dial: g.dial}).Run(ctx) }()
		write(t, mine, hello)
		synctest.Wait()
		if _, err := g.end().Read(); err != nil {
			t.Fatal(err)
		}
		if err := g.end().Write([]byte(welcome)); err != nil {
			t.Fatal(err)
		}
		want(t, mine, welcome)
		go func() { _, _ = g.end().Read() }() // it sees the cuts, and the end
		for range 30 {
			time.Sleep(time.Hour - time.Minute)
			g.mu.Lock()
			last := g.last
			g.mu.Unlock()
			last.Cut()
			time.Sleep(time.Minute)
		}
		g.mu.Lock()
		if g.links != 1 {
			t.Errorf("%d links were begun", g.links)
		}
		g.mu.Unlock()
		cancel()
		<-done
		_ = mine.Close()
		for _, s := range g.all {
			_ = s.Close()
		}
	})
}
