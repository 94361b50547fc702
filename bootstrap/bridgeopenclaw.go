package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/openclaw"
	"github.com/berth-dev/berth/adapters/ws"
)

// openClawURL is where an OpenClaw Gateway listens unless told otherwise.
const openClawURL = "ws://127.0.0.1:18789"

// openClawVariables are the names under which OpenClaw's own programs take
// the token and the password of a Gateway.
func openClawVariables() []string {
	return []string{"OPENCLAW_GATEWAY_TOKEN", "OPENCLAW_GATEWAY_PASSWORD"}
}

// newOpenClawBridge puts a bridge to an OpenClaw Gateway together.
func newOpenClawBridge(cfg *Config, editor jsonrpc.Frames, o BridgeOptions) (*openclaw.Bridge, error) {
	t, err := openClawTarget(cfg, o)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(cfg.DataDir, "openclaw", "device.json")
	device, err := deviceIdentity(file, os.Link)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	home, _ := os.UserHomeDir()
	c := openclaw.Config{
		Dial:    t.dial(cfg),
		Name:    serverOf(t.url),
		Trusted: t.local || t.fingerprint != "",
		Secret:  t.token.Reveal,

		Identity: device,
		Keep:     func(i *openclaw.Identity) error { return keepDevice(file, serverOf(t.url), i) },
		Sessions: openclaw.SessionFlags{
			Agent: o.Agent, Key: o.Session, Label: o.Label, Reset: o.Reset, RequireExisting: o.RequireExisting,
		},
		NoPrefix: o.NoPrefix, Home: home, Provenance: o.Provenance, Host: host,
		StartLimit: o.StartLimit,
		NewID:      uuid.NewString,
		Info:       openclaw.Info{Name: "berth", Title: "Berth", Version: Version().Version},
	}
	if o.Verbose != nil {
		c.Log = func(format string, args ...any) { fmt.Fprintf(o.Verbose, "bridge: "+format+"\n", args...) }
	}
	return openclaw.New(editor, c), nil
}

// openClawTarget finds the Gateway and what is shown to it: flags, the
// settings, and OpenClaw's own variables.
func openClawTarget(cfg *Config, o BridgeOptions) (gatewayTarget, error) {
	find := &gatewayFinder{cfg: cfg, o: o}
	token, err := find.token()
	if err != nil {
		return gatewayTarget{}, err
	}
	t := gatewayTarget{url: o.URL, token: token, fingerprint: cfg.Bridge.TLSFingerprint}
	for _, u := range []string{cfg.Bridge.URL, variable(o.Env, "OPENCLAW_GATEWAY_URL"), openClawURL} {
		if t.url == "" {
			t.url = u
		}
	}
	for _, name := range openClawVariables() {
		if v := variable(o.Env, name); v != "" && !t.token.IsSet() {
			t.token = NewSecret(v)
		}
	}
	if strings.HasPrefix(t.url, "unix:") {
		return t, errors.New("an OpenClaw Gateway listens on no socket file: its address begins with ws:// or wss://")
	}
	u, bad := url.Parse(t.url)
	if err := t.complete(); err != nil {
		return t, err
	}
	if bad == nil && (u.Path == "" || u.Path == "/") {
		u.Path = "/" // and not /acp
		t.url = u.String()
	}
	plain := strings.HasPrefix(t.url, "ws:") || strings.HasPrefix(t.url, "http:")
	switch {
	case plain && t.fingerprint != "":
		return t, errors.New("bridge.tls_fingerprint names a certificate, and the gateway's address is not wss://")
	case plain && !t.local && !o.Insecure:
		return t, errors.New("what is said to a gateway does not go to another machine without TLS: use wss://, or --insecure if the network itself is safe")
	}
	return t, nil
}

// variable is the value of an environment variable, "" when it is not set.
func variable(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// dial opens sockets to the Gateway. The credentials are no business of the
// upgrade's: they go into the first message.
func (t gatewayTarget) dial(cfg *Config) func(context.Context) (jsonrpc.Frames, error) {
	d := ws.DialConfig{
		URL: t.url, Fingerprint: t.fingerprint, Protocols: []string{},
		Conn: ws.Config{MaxBytes: bridgeMessageBytes, PingInterval: cfg.Gateway.PingInterval},
	}
	if !t.local {
		d.Proxy = http.ProxyFromEnvironment
	}
	return func(ctx context.Context) (jsonrpc.Frames, error) {
		c, err := ws.Dial(ctx, d)
		if err == nil {
			return c, nil
		}
		var e *ws.DialError
		switch {
		case !errors.As(err, &e):
		case isUntrusted(err):
			err = &openclaw.Refused{Err: fmt.Errorf("%w; if the gateway's certificate is its own, name it with bridge.tls_fingerprint", err)}
		case e.Status == http.StatusTooManyRequests || e.Status >= 500:
		case e.Status != 0:
			err = &openclaw.Refused{Err: fmt.Errorf("%w; is there an OpenClaw Gateway at this address?", err)}
		}
		return nil, err
	}
}
