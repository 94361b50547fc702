package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/bridge"
)

// outages notes what it is told, and when.
type outages struct {
	mu   sync.Mutex
	told []string
}

func (o *outages) note(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, fmt.Sprintf(format, args...))
}

func (o *outages) Lost(why error, limit time.Duration) { o.note("lost (%v, %v)", why, limit) }
func (o *outages) Back()                               { o.note("back") }
func (o *outages) Over(why error)                      { o.note("over (%v)", why) }

// was checks what was told until now.
func (o *outages) was(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if got := strings.Join(o.told, ", "); got != strings.Join(want, ", ") {
		t.Errorf("told: %s; want: %s", got, strings.Join(want, ", "))
	}
}

// TestOutages is what is told of a gateway without links.
func TestOutages(t *testing.T) {
	// recovers has the bridge come back to its session.
	recovers := func(t *testing.T, r *rig, first int) {
		t.Helper()
		g := <-r.dialed
		want(t, g, fmt.Sprintf(helloAgain, first))
		write(t, g, fmt.Sprintf(`{"jsonrpc":"2.0","id":"bridge-%d",`, first)+offer)
		want(t, g, fmt.Sprintf(reload, first+1))
		write(t, g, fmt.Sprintf(`{"jsonrpc":"2.0","id":"bridge-%d","result":{}}`, first+1))
	}
	without := func(name string, refuse error, fn func(t *testing.T, r *rig, o *outages)) {
		t.Run(name, func(t *testing.T) {
			o := &outages{}
			bubbleWithout(t, bridge.Config{Outages: o}, refuse, func(t *testing.T, r *rig) { fn(t, r, o) })
		})
	}
	run := func(name string, fn func(t *testing.T, r *rig, o *outages)) { without(name, nil, fn) }
	run("lost, and back, and again", func(t *testing.T, r *rig, o *outages) {
		g := r.open()
		o.was(t)
		g.Cut()
		time.Sleep(100 * time.Millisecond)
		o.was(t, "lost (<nil>, 2m0s)")
		recovers(t, r, 1)
		o.was(t, "lost (<nil>, 2m0s)", "back")
	})
	run("nobody there for a while", func(t *testing.T, r *rig, o *outages) {
		g := r.open()
		r.refusing(errors.New("nobody there"))
		g.Cut()
		time.Sleep(time.Minute)
		o.was(t, "lost (<nil>, 2m0s)")
		r.refusing(nil)
		recovers(t, r, 1)
		o.was(t, "lost (<nil>, 2m0s)", "back")
	})
	run("nobody there for too long", func(t *testing.T, r *rig, o *outages) {
		g := r.open()
		r.refusing(errors.New("nobody there"))
		g.Cut()
		time.Sleep(3 * time.Minute)
		o.was(t, "lost (<nil>, 2m0s)", "over (no gateway for 2m0s: nobody there)")
	})
	run("the gateway refuses", func(t *testing.T, r *rig, o *outages) {
		g := r.open()
		r.refusing(&bridge.Refused{Err: errors.New("who are you")})
		g.Cut()
		time.Sleep(time.Second)
		o.was(t, "lost (<nil>, 2m0s)", "over (who are you)")
	})
	run("the gateway ends the connection", func(t *testing.T, r *rig, o *outages) {
		_ = r.open().Close()
		o.was(t, "over (the gateway ended the connection)")
	})
	without("no gateway from the start", errors.New("nobody there"), func(t *testing.T, r *rig, o *outages) {
		r.say(hello)
		time.Sleep(time.Minute)
		o.was(t)
	})
	run("the editor has gone", func(t *testing.T, r *rig, o *outages) {
		g := r.open()
		r.say(prompt)
		want(t, g, prompt)
		r.refusing(errors.New("nobody there"))
		r.hangUp()
		synctest.Wait()
		g.Cut()
		time.Sleep(time.Minute)
		o.was(t)
	})
}

// TestOutages_OfLinks: a cut that is over at once is nobody's concern.
func TestOutages_OfLinks(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration // to dial after the cut
		fails error         // what the first one after the cut gives
		told  []string
	}{
		{name: "at once"},
		{name: "soon", takes: 900 * time.Millisecond},
		{name: "later", takes: 2 * time.Second, told: []string{"lost (<nil>, 2m0s)", "back"}},
		{name: "after a failure", fails: errors.New("nobody there"), told: []string{"lost (nobody there, 2m0s)", "back"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, o, dials := &linked{}, &outages{}, 0
				dial := func(ctx context.Context, connection, link string) (bridge.Dialled, error) {
					if dials++; dials > 1 {
						time.Sleep(c.takes)
					}
					if dials == 2 && c.fails != nil {
						return bridge.Dialled{}, c.fails
					}
					return g.dial(ctx, connection, link)
				}
				mine, theirs := newSocket(64)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- bridge.New(theirs, bridge.Config{Dial: dial, Outages: o}).Run(ctx) }()
				write(t, mine, hello)
				synctest.Wait()
				if _, err := g.end().Read(); err != nil {
					t.Fatal(err)
				}
				if err := g.end().Write([]byte(welcome)); err != nil {
					t.Fatal(err)
				}
				want(t, mine, welcome)
				g.mu.Lock()
				last := g.last
				g.mu.Unlock()
				last.Cut()
				go func() { _, _ = g.end().Read() }() // it sees the cut, and the end
				if err := g.end().Write([]byte(chunk("m", "here"))); err != nil {
					t.Fatal(err)
				}
				want(t, mine, chunk("m", "here"))
				o.was(t, c.told...)
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
