package tether_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
)

// plain is a socket whose every frame the test hands over itself, also those
// that come when it was given up.
type plain struct {
	frames chan string
	wrote  chan string
	closed bool
	after  time.Duration // a Write ends so long after Close
	over   chan struct{}
}

func newPlain() *plain {
	return &plain{frames: make(chan string, 100), wrote: make(chan string, 100), over: make(chan struct{})}
}

func (p *plain) Read() ([]byte, error) {
	frame, ok := <-p.frames
	if !ok {
		return nil, errors.New("lost")
	}
	return []byte(frame), nil
}

func (p *plain) Write(frame []byte) error {
	if p.after > 0 {
		<-p.over
		time.Sleep(p.after) // of the bubble
		return errors.New("closed")
	}
	p.wrote <- string(frame)
	return nil
}

func (p *plain) Close() error {
	if !p.closed {
		p.closed = true
		close(p.over)
	}
	return nil
}

// TestLateFrame: what a socket brings that was given up counts for nothing,
// for the peer sends it again.
func TestLateFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := newPlain(), newPlain()
		l := tether.New(old, tether.Options{Park: time.Hour})
		read := make(chan string, 10)
		go func() { // ends with the link
			for {
				frame, err := l.Read()
				if err != nil {
					close(read)
					return
				}
				read <- string(frame)
			}
		}()
		old.frames <- `1`
		synctest.Wait()
		ticket, received, err := l.Fence()
		if err != nil || received != 1 {
			t.Fatalf("Fence: %d, %v", received, err)
		}
		old.frames <- `2`
		synctest.Wait()
		if err := l.Attach(ticket, next, 0); err != nil {
			t.Fatal(err)
		}
		next.frames <- `2`
		next.frames <- `{"link":{"eof":true}}`
		var got []string
		for frame := range read {
			got = append(got, frame)
		}
		if fmt.Sprint(got) != "[1 2]" {
			t.Errorf("read %v", got)
		}
		if _, received, err := l.Fence(); err != nil || received != 3 {
			t.Errorf("%d frames count as received, %v", received, err)
		}
		_ = l.Close()
	})
}

// TestHandshakeConfirms: what the handshake told is not told again, and counts
// for no confirmation to come.
func TestHandshakeConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, next := newPlain(), newPlain()
		var away []bool
		l := tether.New(old, tether.Options{Park: time.Hour, Away: func(a bool) { away = append(away, a) }})
		receive := func(p *plain, n int) {
			for range n {
				p.frames <- `{}`
				if _, err := l.Read(); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		receive(old, 31)
		ticket, received, err := l.Fence()
		if err != nil || received != 31 {
			t.Fatalf("Fence: %d, %v", received, err)
		}
		if err := l.Attach(ticket, next, 0); err != nil {
			t.Fatal(err)
		}
		receive(next, 31)
		if n := len(next.wrote); n != 0 {
			t.Errorf("31 frames were confirmed with %s", <-next.wrote)
		}
		receive(next, 1)
		if got := <-next.wrote; got != `{"link":{"received":63}}` {
			t.Errorf("32 frames were confirmed with %s", got)
		}
		if fmt.Sprint(away) != "[true false]" {
			t.Errorf("away: %v", away)
		}
		_ = l.Close()
	})
}

// TestCloseJoins: when Close returns, nobody is left who confirms.
func TestCloseJoins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlain()
		p.after = time.Second
		l := tether.New(p, tether.Options{Park: time.Hour})
		for range 32 {
			p.frames <- `{}`
			if _, err := l.Read(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // a confirmation is under way
		began := time.Now()
		_ = l.Close()
		if d := time.Since(began); d != time.Second {
			t.Errorf("Close took %v, the confirmation that was under way 1s", d)
		}
		if _, err := l.Read(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("Read after Close: %v", err)
		}
	})
}
