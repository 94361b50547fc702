package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// The scopes that a connection asks for. Everything but what work asks for
// them: what needs more gets a connection of its own for as long as it takes.
const (
	scopeRead      = "operator.read"
	scopeWrite     = "operator.write"
	scopeApprovals = "operator.approvals"
	scopeAdmin     = "operator.admin"
)

// workScopes are what prompts, sessions and permission requests need.
func workScopes() []string { return []string{scopeRead, scopeWrite, scopeApprovals} }

// The version of the Gateway's protocol that is spoken here.
const gatewayProtocol = 4

// maxHandshake is how many frames a Gateway may send until it has answered.
const maxHandshake = 8

// handshakeLimit is how long a handshake may take.
const handshakeLimit = 15 * time.Second

type connectParams struct {
	MinProtocol int        `json:"minProtocol"`
	MaxProtocol int        `json:"maxProtocol"`
	Client      clientID   `json:"client"`
	Role        string     `json:"role"`
	Scopes      []string   `json:"scopes"`
	Caps        []string   `json:"caps"`
	Auth        *connectAs `json:"auth,omitempty"`
	Device      *proof     `json:"device,omitempty"`
	UserAgent   string     `json:"userAgent,omitempty"`
}

type clientID struct {
	ID          string `json:"id"`
	DisplayName string `json:"displayName"`
	Version     string `json:"version"`
	Platform    string `json:"platform"`
	Mode        string `json:"mode"`
}

type connectAs struct {
	Token       string `json:"token,omitempty"`
	Password    string `json:"password,omitempty"`
	DeviceToken string `json:"deviceToken,omitempty"`
}

// challenge is what a Gateway has signed.
type challenge struct {
	nonce string
	at    int64
}

// hello is what is kept of a Gateway's welcome.
type hello struct {
	version    string
	boot       string // of this run of the Gateway; "" when it does not say
	scopes     []string
	token      string // for this device, "" when it gave none
	maxPayload int
	maxFile    int64 // bytes, decoded; 0 when it does not say
	maxImage   int64
}

// Credentials are what a Gateway is shown besides the device's key. They are
// secrets.
type Credentials struct {
	// Secret is the shared token or password; Gateways take it as either.
	Secret string
	// Device is a token that the Gateway gave this device.
	Device string
}

// open dials and shakes hands, asking for scopes.
func open(ctx context.Context, cfg *Config, as Credentials, scopes []string) (*link, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, handshakeLimit, errors.New("the gateway did not finish the handshake in time"))
	defer cancel()
	frames, err := cfg.Dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = frames.Close() })
	l := newLink(frames)
	l.hello, err = shake(frames, cfg, as, scopes)
	if !stop() && err == nil {
		err = errLost
	}
	if err != nil {
		_ = frames.Close()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return l, nil
}

// shake sends connect once the Gateway has sent its challenge.
func shake(frames jsonrpc.Frames, cfg *Config, as Credentials, scopes []string) (hello, error) {
	asked := false
	for range maxHandshake {
		frame, err := frames.Read()
		if err != nil {
			return hello{}, fmt.Errorf("the gateway ended the handshake: %w", err)
		}
		in, err := parse(frame)
		switch {
		case err != nil:
			return hello{}, fmt.Errorf("%w; is this an OpenClaw Gateway?", err)
		case in.kind == "event" && in.event == "connect.challenge" && !asked:
			p := fieldsOf(in.payload)
			ch := challenge{p.text("nonce"), p.number("ts")}
			if ch.nonce == "" || ch.at < 0 || !p.has("ts") {
				return hello{}, errors.New("the gateway's challenge has no nonce or no time; is this an OpenClaw Gateway?")
			}
			frame, err := appendRequest(nil, "connect", "connect", introduce(cfg, as, scopes, ch))
			if err == nil {
				err = frames.Write(frame)
			}
			if err != nil {
				return hello{}, err
			}
			asked = true
		case in.kind == "res" && asked && in.id == "connect":
			if !in.ok {
				return hello{}, in.refusal()
			}
			return welcome(in.payload)
		}
	}
	return hello{}, errors.New("the gateway talks and does not finish the handshake; is this an OpenClaw Gateway?")
}

// introduce is the params of connect.
func introduce(cfg *Config, as Credentials, scopes []string, ch challenge) connectParams {
	c := connectParams{
		MinProtocol: gatewayProtocol, MaxProtocol: gatewayProtocol,
		Client: clientID{
			ID: "cli", DisplayName: cfg.Info.Title + " bridge", Version: cfg.Info.Version, Platform: runtime.GOOS, Mode: "cli",
		},
		Role: "operator", Scopes: scopes,
		Caps: []string{"exec-approvals", "tool-events", "session-scoped-events"},
	}
	shown := as.Secret
	switch {
	case as.Device != "":
		shown = as.Device
		c.Auth = &connectAs{Token: as.Device, DeviceToken: as.Device}
	case as.Secret != "":
		c.Auth = &connectAs{Token: as.Secret, Password: as.Secret}
	}
	if cfg.Identity != nil {
		c.Device = cfg.Identity.prove(c, ch, shown)
	}
	return c
}

// welcome reads hello-ok.
func welcome(raw json.RawMessage) (hello, error) {
	p := fieldsOf(raw)
	if v := p.number("protocol"); v != gatewayProtocol {
		return hello{}, &Refused{fmt.Errorf("the gateway speaks version %d of its protocol, and not %d", v, gatewayProtocol)}
	}
	server, auth, policy := p.in("server"), p.in("auth"), p.in("policy")
	files := policy.in("attachments")
	return hello{
		version: server.text("version"), boot: server.text("bootId"),
		scopes: auth.strings("scopes"), token: auth.text("deviceToken"),
		maxPayload: int(policy.number("maxPayload")),
		maxFile:    files.number("maxBytes"), maxImage: files.number("maxImageBytes"),
	}, nil
}
