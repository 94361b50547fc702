package bootstrap

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/bridge"
	"github.com/berth-dev/berth/adapters/ws"
)

// gatewayFinder knows where the gateway of a bridge is. It is asked at every
// dial: a daemon that was started anew may have another address, and has
// another token for the bridges of its user.
type gatewayFinder struct {
	cfg *Config
	o   BridgeOptions
}

// gatewayTarget is one answer.
type gatewayTarget struct {
	url         string // ws, wss, http or https with the path, or unix:/path
	token       Secret
	found       bool // the token is the one that the daemon left
	local       bool // on this machine
	fingerprint string
}

// finalError is why looking again is of no use.
type finalError struct{ error }

func isFinal(err error) bool {
	var f finalError
	return errors.As(err, &f)
}

// name tells gateways apart, for what is remembered of them.
func (f *gatewayFinder) name() string {
	switch {
	case f.o.URL != "":
		return f.o.URL
	case f.cfg.Bridge.URL != "":
		return f.cfg.Bridge.URL
	}
	return f.cfg.DataDir
}

// target finds the gateway: --url, bridge.url, the daemon of the data
// directory, and, with a token of its own, where a daemon with these settings
// would listen.
func (f *gatewayFinder) target() (gatewayTarget, error) {
	token, err := f.token()
	if err != nil {
		return gatewayTarget{}, finalError{err}
	}
	t := gatewayTarget{token: token, fingerprint: f.cfg.Bridge.TLSFingerprint}
	daemon, running, derr := FindDaemon(f.cfg.DataDir)
	running = running && derr == nil
	switch {
	case f.o.URL != "":
		t.url = f.o.URL
	case f.cfg.Bridge.URL != "":
		t.url = f.cfg.Bridge.URL
	case running:
		t.url = daemon.URL
	case token.IsSet():
		t.url = listenURL(f.cfg)
	case derr != nil && !errors.Is(derr, fs.ErrNotExist):
		return gatewayTarget{}, derr
	default:
		// Whoever listens where a daemon did is not to get its token.
		return gatewayTarget{}, fmt.Errorf("no daemon runs for the data directory %s; start one with: berth daemon, or name a gateway with --url or bridge.url", f.cfg.DataDir)
	}
	if err := t.complete(); err != nil {
		return gatewayTarget{}, finalError{err}
	}
	if running && sameGateway(t.url, daemon.URL) {
		if t.fingerprint == "" {
			t.fingerprint = daemon.Fingerprint
		}
		if !t.token.IsSet() {
			left, err := BridgeToken(f.cfg.DataDir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return gatewayTarget{}, finalError{fmt.Errorf("the token that the daemon left: %w", err)}
			}
			t.token, t.found = NewSecret(left), true
		}
	}
	if t.token.IsSet() && !t.local && !f.o.Insecure && (strings.HasPrefix(t.url, "ws:") || strings.HasPrefix(t.url, "http:")) {
		return gatewayTarget{}, finalError{fmt.Errorf("a token is not sent to another machine without TLS: use wss://, or --insecure if the network itself is safe")}
	}
	return t, nil
}

// token is what is shown to the gateway, if something says so. What the
// settings hold is for the gateway that they name.
func (f *gatewayFinder) token() (Secret, error) {
	if f.o.Token.IsSet() {
		return f.o.Token, nil
	}
	for _, name := range []string{"BERTH_GATEWAY_TOKEN", "BERTH_ACP_BRIDGE_TOKEN", "ZEROCLAW_ACP_BRIDGE_TOKEN"} {
		for _, kv := range f.o.Env {
			if v, ok := strings.CutPrefix(kv, name+"="); ok && v != "" {
				return NewSecret(v), nil
			}
		}
	}
	b := f.cfg.Bridge
	switch {
	case f.o.URL != "" && !sameGateway(f.o.URL, b.URL):
		return Secret{}, nil
	case b.Token.IsSet():
		return b.Token, nil
	case b.TokenFile != "":
		v, err := ReadTokenFile(b.TokenFile)
		return NewSecret(v), err
	}
	return Secret{}, nil
}

// complete gives the address its path and says whether it is on this machine.
func (t *gatewayTarget) complete() error {
	if strings.HasPrefix(t.url, "unix:") {
		t.local = true
		return nil
	}
	u, err := url.Parse(t.url)
	switch {
	case err != nil || u.Host == "":
		return errors.New("the gateway's address is not a URL: it begins with ws://, wss://, http://, https:// or unix:/")
	case u.User != nil:
		return errors.New("the gateway's address holds a user name or password; use --token-file or bridge.token")
	case u.Scheme != "ws" && u.Scheme != "wss" && u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("the gateway's address begins with %s://, and not with ws://, wss://, http://, https:// or unix:/", u.Scheme)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/acp"
	}
	t.url, t.local = u.String(), isLoopback(u.Hostname())
	return nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// sameGateway reports whether two addresses lead to the same server.
func sameGateway(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	return serverOf(a) == serverOf(b)
}

// serverOf is an address without what does not say which server it is.
func serverOf(address string) string {
	if strings.HasPrefix(address, "unix:") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	secure := u.Scheme == "wss" || u.Scheme == "https"
	if port == "" {
		port = "80"
		if secure {
			port = "443"
		}
	}
	if isLoopback(host) {
		host = "loopback"
	}
	return fmt.Sprintf("%s:%s:%v", host, port, secure)
}

// listenURL is where a daemon with these settings listens, as seen from here.
func listenURL(cfg *Config) string {
	if strings.HasPrefix(cfg.Gateway.Listen, "unix:") {
		return cfg.Gateway.Listen
	}
	scheme := "ws://"
	if cfg.Gateway.TLSCert != "" {
		scheme = "wss://"
	}
	host, port, err := net.SplitHostPort(cfg.Gateway.Listen)
	if err != nil {
		return scheme + cfg.Gateway.Listen + "/acp"
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return scheme + net.JoinHostPort(host, port) + "/acp"
}

// judge says whether dialling again is of any use.
func (f *gatewayFinder) judge(t gatewayTarget, token string, err error) error {
	var d *ws.DialError
	if !errors.As(err, &d) {
		return err
	}
	switch {
	case d.Status == http.StatusUnauthorized && t.found && f.renewed(token):
		return &bridge.Later{Err: err, After: 100 * time.Millisecond}
	case d.Status == http.StatusUnauthorized && token == "":
		return &bridge.Refused{Err: fmt.Errorf("the gateway at %s wants a token: make one there with: berth token create, and give it with --token-file, bridge.token or BERTH_GATEWAY_TOKEN", d.Addr)}
	case d.Status == http.StatusUnauthorized:
		return &bridge.Refused{Err: fmt.Errorf("the gateway at %s refuses the token: make one there with: berth token create", d.Addr)}
	case d.Status == http.StatusForbidden:
		return &bridge.Refused{Err: fmt.Errorf("the gateway at %s does not serve this address (403): add its name to gateway.allowed_hosts there", d.Addr)}
	case d.Status == http.StatusTooManyRequests:
		return &bridge.Later{Err: fmt.Errorf("%w: this token has as many connections as the gateway allows it, or wrong ones were tried too often", err), After: d.RetryAfter}
	case d.Status >= 500:
		return &bridge.Later{Err: err, After: d.RetryAfter}
	case d.Status == http.StatusBadRequest && (strings.HasPrefix(t.url, "ws:") || strings.HasPrefix(t.url, "http:")):
		return &bridge.Refused{Err: fmt.Errorf("%w; is there a gateway at this address, and does it want wss://?", err)}
	case d.Status != 0:
		return &bridge.Refused{Err: fmt.Errorf("%w; is there a gateway at this address?", err)}
	case errors.As(err, new(tls.RecordHeaderError)):
		return &bridge.Refused{Err: fmt.Errorf("%w; a gateway without TLS has an address with ws://", err)}
	case isUntrusted(err):
		return &bridge.Refused{Err: fmt.Errorf("%w; if the gateway's certificate is its own, name it with bridge.tls_fingerprint", err)}
	}
	return err
}

// renewed reports whether the daemon has left another token meanwhile.
func (f *gatewayFinder) renewed(token string) bool {
	now, err := BridgeToken(f.cfg.DataDir)
	return err != nil || now != token
}

// isUntrusted reports whether the gateway did not prove who it is.
func isUntrusted(err error) bool {
	var (
		cert    *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
	)
	return errors.As(err, &cert) || errors.As(err, &unknown) || errors.As(err, &host) ||
		strings.Contains(err.Error(), "has the fingerprint") || strings.Contains(err.Error(), "fingerprint is not one")
}
