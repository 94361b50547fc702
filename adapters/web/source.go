package web

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// Config says how the web is reached. The zero value reaches the public web
// directly.
type Config struct {
	UserAgent string // "" sends "berth"
	// Proxy chooses the proxy of a request; nil uses none.
	Proxy func(*http.Request) (*url.URL, error)
	// RootCAs are the certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// Ports may be used besides 80 and 443.
	Ports []uint16
	// International lets host names in punycode be used. They can look like
	// others, and whoever is asked sees only the name.
	International bool
	// AllowPrivate lets every address be used, those of this machine included.
	AllowPrivate bool

	// Resolve looks up the addresses of a host name; nil asks the system.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial opens a connection to an IP address and port; nil asks the system.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// timeLimit bounds one fetch from the first look-up to the last byte.
const timeLimit = 30 * time.Second

// Source opens web_fetch for sessions. It keeps nothing between calls and is
// safe for concurrent use.
type Source struct {
	cfg   Config
	spec  domain.ToolSpec
	limit time.Duration
}

var _ ports.ToolSource = (*Source)(nil)

// NewSource makes the source. It opens nothing.
func NewSource(cfg Config) *Source {
	if cfg.UserAgent == "" {
		cfg.UserAgent = "berth"
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	return &Source{cfg: cfg, spec: newSpec(), limit: timeLimit}
}

// Open returns web_fetch.
func (s *Source) Open(context.Context, domain.Session, ports.Client) (ports.Toolset, error) {
	return toolset{s}, nil
}

type toolset struct{ source *Source }

// Tools returns web_fetch.
func (t toolset) Tools() []ports.Tool { return []ports.Tool{fetchTool{t.source}} }

// Close has nothing to release: a fetch holds nothing after its call.
func (toolset) Close() error { return nil }
