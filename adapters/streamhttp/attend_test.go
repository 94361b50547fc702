package streamhttp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/ws"
)

// bare is a connection without a server, that is attended.
func bare() *connection {
	opts := &Options{}
	opts.setDefaults()
	return newConnection("c1", ws.Principal{}, opts, func(*connection) {})
}

func (c *connection) isLost() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// A request that begins and ends at the moment at which the connection would be
// lost either finds none or keeps it: it is not taken first and lost then.
func TestAttend_AsTheTimerFires(t *testing.T) {
	for range 200 { // who of the two is first is for the scheduler
		synctest.Test(t, func(t *testing.T) {
			c := bare()
			defer func() { c.end() }()
			c.leave()
			time.Sleep(c.opts.Unattended)
			if !c.attend() {
				return
			}
			c.leave()
			synctest.Wait()
			if c.isLost() {
				t.Fatal("a connection was lost whose client had just been there")
			}
			time.Sleep(c.opts.Unattended - time.Nanosecond)
			synctest.Wait()
			if c.isLost() {
				t.Fatal("it was lost too soon")
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if !c.isLost() {
				t.Fatal("it was never lost")
			}
		})
	}
}

// The timer that had fired finds the lock taken until the client is away again.
func TestAttend_BehindTheTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bare()
		c.leave()
		time.Sleep(c.opts.Unattended - time.Second)
		if !c.attend() {
			t.Fatal("there is no connection")
		}
		c.leave()
		c.idled()
		if c.isLost() {
			t.Error("a connection was lost whose client had just been there")
		}
		c.end()
		if c.idle.Stop() {
			t.Error("the timer of an ended connection goes on, and holds it")
		}
	})
}
