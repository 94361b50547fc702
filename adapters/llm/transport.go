package llm

import (
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// HTTPConfig is how providers are reached.
type HTTPConfig struct {
	// Proxy chooses the proxy of a request; nil uses none. Bootstrap passes
	// http.ProxyFromEnvironment, because adapters read no environment.
	Proxy     func(*http.Request) (*url.URL, error)
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

// Client sends the requests of all providers. The connection pool behind it
// is made at the first request; nothing happens before. It is safe for
// concurrent use.
type Client struct {
	cfg  HTTPConfig
	once sync.Once
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

// Close closes idle connections and with them their goroutines.
func (c *Client) Close() { c.client().CloseIdleConnections() }

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		rt := c.cfg.Transport
		if rt == nil {
			rt = newTransport(c.cfg.Proxy)
		}
		c.http = &http.Client{
			Transport: rt,
			// A redirect would carry keys and the whole conversation to a host
			// nobody configured. It is answered as a refusal instead.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})
	return c.http
}

// newTransport returns a pool tuned for streams from few hosts, among them
// servers on the same machine: connections are kept for the next step of a
// turn, bodies are not compressed (that would hold events back), and a silent
// HTTP/2 connection is probed, so that one that died while the machine slept
// is noticed.
func newTransport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                 proxy,
		DialContext:           dialer.DialContext,
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
