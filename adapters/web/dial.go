package web

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// maxHeader bounds the head of a response, in bytes.
const maxHeader = 256 << 10

// pins are the addresses that host names stand for during one fetch. A name
// is looked up once.
type pins struct {
	cfg *Config

	mu    sync.Mutex
	known map[string][]netip.Addr
}

// addrs returns the addresses of a host, all of them checked: one that must
// not be used spoils the rest, because a name that has both is a trap.
func (p *pins) addrs(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, p.cfg.checkAddr(addr)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.known[host]; ok {
		return known, nil
	}
	found, err := p.cfg.Resolve(ctx, host)
	if err != nil {
		return nil, domain.WrapError(domain.Unavailable, err, "web_fetch: the host name cannot be looked up; check it for mistakes")
	}
	addrs := make([]netip.Addr, 0, len(found))
	for _, a := range found {
		a = a.Unmap()
		if err := p.cfg.checkAddr(a); err != nil {
			return nil, err
		}
		addrs = append(addrs, a)
	}
	if len(addrs) == 0 {
		return nil, domain.Errorf(domain.Unavailable, "web_fetch: the host name has no address")
	}
	p.known[host] = addrs
	return addrs, nil
}

// dial connects to a host by one of its checked addresses.
func (p *pins) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := p.addrs(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		conn, derr := p.cfg.Dial(ctx, network, net.JoinHostPort(a.String(), port))
		if derr == nil {
			return conn, nil
		}
		if err = derr; ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// dialTLS is dial with TLS on top.
func (p *pins) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err == nil {
		secure := tls.Client(conn, p.tls(host))
		if err = secure.HandshakeContext(ctx); err == nil {
			return secure, nil
		}
	}
	_ = conn.Close()
	return nil, err
}

func (p *pins) tls(host string) *tls.Config {
	return &tls.Config{RootCAs: p.cfg.RootCAs, MinVersion: tls.VersionTLS12, ServerName: host, NextProtos: []string{"http/1.1"}}
}

// transport makes the one connection of a hop: HTTP/1.1, closed after its
// response. Through a proxy the target's addresses are checked as far as they
// are known here.
func (p *pins) transport(ctx context.Context, req *http.Request) (*http.Transport, error) {
	// A transport goes on dialling for the next request when one is given up.
	// There is none here, so connections end with the fetch.
	within := func(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
		return func(_ context.Context, network, address string) (net.Conn, error) { return dial(ctx, network, address) }
	}
	t := &http.Transport{
		DialContext:            within(p.dial),
		DialTLSContext:         within(p.dialTLS),
		DisableKeepAlives:      true,
		DisableCompression:     true, // unpacked within limits by ourselves
		MaxResponseHeaderBytes: maxHeader,
		TLSClientConfig:        p.tls(""),
		TLSHandshakeTimeout:    10 * time.Second,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true)
	proxy, err := p.proxy(req)
	if err != nil || proxy == nil {
		return t, err
	}
	if _, err := p.addrs(ctx, req.URL.Hostname()); domain.HasCode(err, domain.Denied) {
		return nil, err
	}
	t.Proxy = http.ProxyURL(proxy)
	// The connection goes to the operator's proxy, wherever that is.
	t.DialContext, t.DialTLSContext = within(p.cfg.Dial), nil
	return t, nil
}

func (p *pins) proxy(req *http.Request) (*url.URL, error) {
	if p.cfg.Proxy == nil {
		return nil, nil
	}
	proxy, err := p.cfg.Proxy(req)
	if err != nil {
		return nil, domain.WrapError(domain.Unavailable, err, "web_fetch: the proxy settings of the machine cannot be used")
	}
	return proxy, nil
}
