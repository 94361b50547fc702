package ws

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// DialConfig says where to connect.
type DialConfig struct {
	// URL is ws://, wss://, http:// or https:// with the path, or
	// unix:/path/to/socket for /acp on a Unix socket.
	URL   string
	Agent string // becomes ?agent=
	Token string // goes into the Authorization header
	// Protocols are the sub-protocols to offer; nil for ProtocolACP.
	Protocols []string
	Header    http.Header // more headers
	Conn      Config
	TLS       *tls.Config
	// Fingerprint is the SHA-256 of the certificate the gateway must have, in
	// hexadecimal. It then needs no other proof.
	Fingerprint string
	Proxy       func(*http.Request) (*url.URL, error) // nil: none
	Timeout     time.Duration                         // of the whole handshake (10 s)
}

// DialError is why there is no connection. It holds neither the token nor the
// address's query.
type DialError struct {
	Addr       string        // host and path
	Status     int           // of the answer, 0 when there was none
	RetryAfter time.Duration // when the gateway said so
	Err        error
}

// Error says what happened.
func (e *DialError) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answered %d %s", e.Addr, e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("connect to %s: %v", e.Addr, e.Err)
}

// Unwrap returns the cause.
func (e *DialError) Unwrap() error { return e.Err }

// Dial opens a connection to a gateway. The error is a *DialError.
func Dial(ctx context.Context, cfg DialConfig) (*Conn, error) {
	target, socket, err := cfg.target()
	if err != nil {
		return nil, err
	}
	addr := target.Host + target.Path
	if socket != "" {
		addr = "unix:" + socket
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	l := newLink()
	d := websocket.Dialer{
		HandshakeTimeout: cfg.Timeout, Proxy: cfg.Proxy, TLSClientConfig: cfg.tls(),
		ReadBufferSize: 16 << 10, WriteBufferSize: 64 << 10, WriteBufferPool: &sync.Pool{},
		Subprotocols: cfg.Protocols,
		NetDialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if socket != "" {
				network, address = "unix", socket
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			l.Conn = conn
			return l, nil
		},
	}
	if cfg.Protocols == nil {
		d.Subprotocols = []string{ProtocolACP}
	}
	head := cfg.Header.Clone()
	if head == nil {
		head = http.Header{}
	}
	if cfg.Token != "" {
		head.Set("Authorization", "Bearer "+cfg.Token)
	}
	sock, answer, err := d.DialContext(ctx, target.String(), head)
	if err != nil {
		return nil, dialError(addr, answer, err)
	}
	c := newConn(sock, l, cfg.Conn)
	c.id, c.head = answer.Header.Get(HeaderConnection), answer.Header
	return c, nil
}

// target reads the URL. Its errors do not repeat it: it may hold a token.
func (cfg *DialConfig) target() (u *url.URL, socket string, err error) {
	if path, ok := strings.CutPrefix(cfg.URL, "unix:"); ok {
		socket = "/" + strings.TrimLeft(path, "/")
		u = &url.URL{Scheme: "ws", Host: "localhost", Path: "/acp"}
	} else if u, err = url.Parse(cfg.URL); err != nil || u.Host == "" {
		return nil, "", &DialError{Addr: "the gateway", Err: errors.New("the address is not a URL")}
	}
	switch u.Scheme {
	case "http", "https":
		u.Scheme = "ws" + strings.TrimPrefix(u.Scheme, "http")
	case "ws", "wss":
	default:
		return nil, "", &DialError{Addr: u.Host, Err: errors.New("the address does not begin with unix:, ws://, wss://, http:// or https://")}
	}
	u.Fragment = ""
	if cfg.Agent != "" {
		q := u.Query()
		q.Set("agent", cfg.Agent)
		u.RawQuery = q.Encode()
	}
	return u, socket, nil
}

// tls is how the gateway proves who it is.
func (cfg *DialConfig) tls() *tls.Config {
	t := cfg.TLS.Clone()
	if t == nil {
		t = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t.NextProtos = []string{"http/1.1"}
	if cfg.Fingerprint == "" {
		return t
	}
	want, err := hex.DecodeString(strings.ReplaceAll(cfg.Fingerprint, ":", ""))
	t.InsecureSkipVerify = true // the fingerprint is the proof
	t.VerifyConnection = func(s tls.ConnectionState) error {
		if err != nil || len(s.PeerCertificates) == 0 {
			return errors.New("the fingerprint is not one")
		}
		have := sha256.Sum256(s.PeerCertificates[0].Raw)
		if subtle.ConstantTimeCompare(have[:], want) != 1 {
			return fmt.Errorf("the gateway's certificate has the fingerprint %x, another one is expected", have)
		}
		return nil
	}
	return t
}

// dialError keeps what may be told.
func dialError(addr string, answer *http.Response, err error) error {
	e := &DialError{Addr: addr, Err: err}
	var u *url.Error
	if errors.As(err, &u) {
		e.Err = u.Err // without the address, which may hold a token
	}
	if answer == nil {
		return e
	}
	_ = answer.Body.Close() // gorilla has read the beginning into memory
	if !errors.Is(err, websocket.ErrBadHandshake) {
		return e
	}
	e.Status = answer.StatusCode
	if s, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && s > 0 {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}
