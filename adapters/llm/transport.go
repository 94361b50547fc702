package llm

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// HTTPConfig is how providers are reached.
type HTTPConfig struct {
	// Proxy chooses the proxy of a request; nil uses none. Bootstrap passes
	// http.ProxyFromEnvironment, because adapters read no environment.
	Proxy func(*http.Request) (*url.URL, error)
	// CAFile is a PEM file with authorities that are trusted besides those of
	// the system; "" for none. It is read when something is asked for the first
	// time.
	CAFile    string
	UserAgent string // "" sends "berth"
	// Idle is how long a running stream may be silent; 0 means DefaultIdle.
	// Comment lines and events end a silence, single bytes do not.
	Idle time.Duration
	// Now is the clock that requests are signed by; nil is the system's.
	Now func() time.Time
	// Transport replaces the network, for tests and embedders; nil dials.
	Transport http.RoundTripper
}

// The limits that are not configured.
const (
	DefaultIdle    = 90 * time.Second
	connectTimeout = 10 * time.Second
	// errorBodyTimeout and errorBodyBytes bound the reading of a refusal: its
	// status says enough, and some servers never end such a body.
	errorBodyTimeout = 2 * time.Second
	errorBodyBytes   = 64 << 10
)

// Client sends the requests of providers. The connection pool behind it is
// made at the first request; nothing happens before. It is safe for concurrent
// use.
type Client struct {
	cfg HTTPConfig

	mu   sync.Mutex
	http *http.Client
}

// NewClient returns a client that has not opened anything.
func NewClient(cfg HTTPConfig) *Client {
	if cfg.UserAgent == "" {
		cfg.UserAgent = "berth"
	}
	if cfg.Idle <= 0 {
		cfg.Idle = DefaultIdle
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Client{cfg: cfg}
}

// HTTP returns the pool, for what else is to be reached by the same rules. The
// error completes "<setting> …".
func (c *Client) HTTP() (*http.Client, error) { return c.client() }

// Close closes idle connections and with them their goroutines.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// client returns the pool. The error completes "<setting> …"; it is looked at
// anew by the next request, so that a file that was mended counts at once.
func (c *Client) client() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http != nil {
		return c.http, nil
	}
	rt := c.cfg.Transport
	if rt == nil {
		roots, err := authorities(c.cfg.CAFile)
		if err != nil {
			return nil, err
		}
		rt = newTransport(c.cfg.Proxy, roots)
	}
	c.http = &http.Client{
		Transport: rt,
		// A redirect would carry keys and the whole conversation to a host
		// nobody configured. It is answered as a refusal instead.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c.http, nil
}

// authorities returns those of the system and of a PEM file; nil, which means
// the system's alone, when there is no file.
func authorities(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a system without any, such as a bare container
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("names %s, which holds no certificate", file)
	}
	return roots, nil
}

// newTransport returns a pool tuned for streams from few hosts, among them
// servers on the same machine: connections are kept for the next step of a
// turn, bodies are not compressed (that would hold events back), and a silent
// HTTP/2 connection is probed, so that one that died while the machine slept
// is noticed.
func newTransport(proxy func(*http.Request) (*url.URL, error), roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy: quietly(proxy),
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return &proxyRefusal{resp.StatusCode}
			}
			return nil
		},
		DialContext:           dialer.DialContext,
		TLSClientConfig:       &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:     true,
		DisableCompression:    true,
		MaxIdleConns:          64,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   connectTimeout,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        16 << 10,
		WriteBufferSize:       16 << 10,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// quietly hides the errors of a proxy setting, which quote all of it.
func quietly(proxy func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	if proxy == nil {
		return nil
	}
	return func(req *http.Request) (*url.URL, error) {
		u, err := proxy(req)
		if err != nil {
			return nil, errProxySetting
		}
		return u, nil
	}
}
