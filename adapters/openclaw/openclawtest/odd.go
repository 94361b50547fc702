package openclawtest

import (
	"fmt"
	"strings"
	"time"
)

// Odd is a request of a client's to a Gateway that misbehaves.
type Odd struct {
	ID, Method string
	g          *Gateway
	c          *conn
	serve      func()
}

// Send sends the client a frame, whatever it is.
func (o *Odd) Send(frame string) { o.c.raw(frame) }

// Cut ends the client's connection.
func (o *Odd) Cut() { _ = o.c.frames.Close() }

// Later serves the request after a while. What comes behind it does not wait.
func (o *Odd) Later(d time.Duration) {
	o.g.all.Go(func() {
		time.Sleep(d)
		o.serve()
	})
}

// Number is how many connections the Gateway has had, this one included.
func (o *Odd) Number() int { return o.c.number }

// Send sends every client a frame, whatever it is.
func (g *Gateway) Send(frame string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		c.raw(frame)
	}
}

// Event sends every client an event with a payload that is any text.
func (g *Gateway) Event(name, payload string) {
	g.Send(`{"type":"event","event":"` + name + `","payload":` + payload + `}`)
}

// Dials is how many clients got past the handshake.
func (g *Gateway) Dials() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.dials
}

func (c *conn) raw(frame string) {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.frames.Write([]byte(frame)) // a client that has gone reads nothing
}

// Raw tells an event of the run whose payload is any object; what says which
// run it is comes with it.
func (r *Run) Raw(name, payload string) {
	r.lock()
	defer r.g.mu.Unlock()
	r.seq++
	head := fmt.Sprintf(`{"runId":%q,"sessionKey":%q,"seq":%d,`, r.ID, r.session.key, r.seq)
	for c := range r.g.conns {
		c.seq++
		c.raw(fmt.Sprintf(`{"type":"event","event":%q,"seq":%d,"payload":%s}`, name, c.seq, head+strings.TrimPrefix(payload, "{")))
	}
}
