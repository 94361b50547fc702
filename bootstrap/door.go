package bootstrap

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// maxStrangers is how many network connections there may be on which nobody
// has shown yet that he may come in, and how many known ones may rest between
// two requests. A quarter of the files the process may open is the most.
const maxStrangers = 512

// door follows the network connections of a server and keeps those of
// strangers few: they cost a file and a goroutine before there is anything to
// judge. When there are too many, the network that has the most of them loses
// its oldest. So whoever holds silent connections loses those, and who says at
// once what he wants comes in however many others are silent.
type door struct {
	most int

	mu        sync.Mutex
	visitors  map[net.Conn]*visitor
	strangers map[netip.Addr]int // by network
	count     int                // of all strangers
	resting   int                // known ones between two requests
	moves     uint64
	closed    bool
}

// visitor is one network connection.
type visitor struct {
	from  netip.Addr
	state http.ConnState
	since uint64 // the move that brought it into its state
	known bool   // a request on it was admitted
}

// newDoor is a door for a process that may open so many files; 0 says that
// nothing bounds them.
func newDoor(files uint64) *door {
	d := &door{most: maxStrangers, visitors: map[net.Conn]*visitor{}, strangers: map[netip.Addr]int{}}
	if files > 0 {
		d.most = int(max(1, min(maxStrangers, files/4)))
	}
	return d
}

// visitorKey is where a request's context holds its network connection.
type visitorKey struct{}

// enter is http.Server.ConnContext.
func (d *door) enter(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, visitorKey{}, c)
}

// know notes that a request was admitted: its connection is no stranger's.
func (d *door) know(r *http.Request) {
	c, _ := r.Context().Value(visitorKey{}).(net.Conn)
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.visitors[c]; v != nil && !v.known {
		v.known = true
		d.leaves(v.from)
		d.resting += rests(true, v.state) // a stream of HTTP/2 may have been given up before it was judged
	}
}

// note is http.Server.ConnState.
func (d *door) note(c net.Conn, state http.ConnState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moves++
	v := d.visitors[c]
	switch {
	case state == http.StateNew && d.closed:
		hangUp(c)
		return
	case state == http.StateNew:
		v = &visitor{from: network(c.RemoteAddr())}
		d.visitors[c] = v
		d.strangers[v.from]++
		d.count++
	case v == nil:
		return
	case state == http.StateHijacked || state == http.StateClosed:
		d.forget(c, v)
		return
	}
	d.resting += rests(v.known, state) - rests(v.known, v.state)
	v.state, v.since = state, d.moves
	if d.count > d.most {
		d.evict(d.crowd(), false)
	}
	if d.resting > d.most {
		d.evict(netip.Addr{}, true)
	}
}

// rests is 1 for a known connection between two requests.
func rests(known bool, state http.ConnState) int {
	if known && state == http.StateIdle {
		return 1
	}
	return 0
}

// crowd is the network with the most strangers. The lock is held.
func (d *door) crowd() (most netip.Addr) {
	n := 0
	for from, count := range d.strangers {
		if count > n {
			most, n = from, count
		}
	}
	return most
}

// evict hangs up on the one that has been in its state for longest: of the
// strangers of a network, or of the known ones that rest. The lock is held.
func (d *door) evict(from netip.Addr, known bool) {
	var oldest net.Conn
	var since uint64
	for c, v := range d.visitors {
		fits := !v.known && v.from == from
		if known {
			fits = rests(v.known, v.state) == 1
		}
		if fits && (oldest == nil || v.since < since) {
			oldest, since = c, v.since
		}
	}
	if oldest != nil {
		d.forget(oldest, d.visitors[oldest])
		hangUp(oldest)
	}
}

// forget takes a connection off the lists. The lock is held.
func (d *door) forget(c net.Conn, v *visitor) {
	delete(d.visitors, c)
	if !v.known {
		d.leaves(v.from)
	}
	d.resting -= rests(v.known, v.state)
}

// leaves counts a stranger less. The lock is held.
func (d *door) leaves(from netip.Addr) {
	d.count--
	if d.strangers[from]--; d.strangers[from] == 0 {
		delete(d.strangers, from)
	}
}

// close hangs up on those on which nothing was ever sent, now and from now on.
// Clients open some in advance, and Shutdown would wait 5 s for each.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for c, v := range d.visitors {
		if v.state == http.StateNew {
			hangUp(c)
		}
	}
}

// hangUp ends a connection without a word; that of TLS would wait for a peer
// that does not read.
func hangUp(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	_ = c.Close()
}

// network is where a connection comes from: its address, and of IPv6 the half
// that its owner was given. All on a Unix socket come from one.
func network(at net.Addr) netip.Addr {
	if at == nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return netip.Addr{}
	}
	ip := a.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return ip
}
