package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
)

// proxy passes network connections on to a daemon, and can break them.
type proxy struct {
	listener net.Listener
	to       string
	serving  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool
}

func newProxy(ctx context.Context, to string) (*proxy, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, to: to, open: map[net.Conn]bool{}}
	p.serving.Go(p.serve)
	return p, nil
}

func (p *proxy) url() string { return "ws://" + p.listener.Addr().String() + "/acp" }

func (p *proxy) serve() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = in.Close() // its other end finds out
			continue
		}
		p.add(in, out)
		pass := func(to, from net.Conn) {
			_, _ = io.Copy(to, from) // ends with either
			p.drop(in, out)
		}
		p.serving.Go(func() { pass(out, in) })
		p.serving.Go(func() { pass(in, out) })
	}
}

func (p *proxy) add(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.open[c] = true
		if p.closed {
			_ = c.Close()
		}
	}
}

func (p *proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // once more does no harm
		delete(p.open, c)
	}
}

// cut breaks what is connected. New connections are passed on.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close() // that is the cut
	}
}

// close ends the proxy and waits for it.
func (p *proxy) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.cut()
	p.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
