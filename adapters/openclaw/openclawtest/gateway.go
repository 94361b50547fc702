// Package openclawtest is an OpenClaw Gateway for tests: the part of its
// protocol that a bridge uses, with runs that follow a script. It refuses what
// the real one refuses: requests before the handshake, proofs that do not
// hold, members it does not know, methods beyond the scopes. What it tells of
// a run it tells as the real one does: text twice, each piece with the whole,
// and tool calls only to the connection that began the run.
package openclawtest

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// Config says how a Gateway is. The zero value takes anybody on loopback.
type Config struct {
	Token       string   // what a client has to show; "" for nothing
	Agents      []string // the first is the default; none: main
	NoDefault   bool     // an agent has to be named
	Workspace   string   // where tools may work without operator.admin (/ws)
	Unpaired    bool     // devices have to be approved first
	NoAdmin     bool     // nobody gets operator.admin
	DeviceToken string   // given to devices
	MaxPayload  int      // bytes of a frame (25 MiB)
	NoBoot      bool     // it does not tell when it was started anew
	// Gate, if set, is awaited before a prompt is taken.
	Gate <-chan struct{}
	// Script plays the run of a prompt; nil repeats it.
	Script func(r *Run)
	// Odd, if set, sees each request; true means that it has dealt with it.
	Odd func(o *Odd) bool
}

// Gateway is one.
type Gateway struct {
	cfg Config
	all sync.WaitGroup

	mu       sync.Mutex
	boot     int
	conns    map[*conn]bool
	sessions map[string]*session
	runs     map[string]*Run
	asks     map[string]*approval
	requests []Request
	shut     bool
	last     int
	dials    int
}

// Request is one that was answered.
type Request struct {
	Method string
	Params json.RawMessage
	Scopes []string // of the connection
}

type session struct {
	key, id, cwd, label, model string
	settings                   map[string]any
	entries                    []map[string]any
	updated                    int64
	tokens                     int64
}

type approval struct {
	id       string
	request  map[string]any
	decision string
	answered chan struct{}
}

// New makes a Gateway.
func New(cfg Config) *Gateway {
	if len(cfg.Agents) == 0 {
		cfg.Agents = []string{"main"}
	}
	if cfg.Workspace == "" {
		cfg.Workspace = "/ws"
	}
	if cfg.MaxPayload == 0 {
		cfg.MaxPayload = 25 << 20
	}
	return &Gateway{
		cfg: cfg, boot: 1, conns: map[*conn]bool{}, sessions: map[string]*session{}, runs: map[string]*Run{}, asks: map[string]*approval{},
	}
}

// Dial connects a client in memory.
func (g *Gateway) Dial(context.Context) (jsonrpc.Frames, error) {
	g.mu.Lock()
	shut := g.shut
	g.mu.Unlock()
	if shut {
		return nil, fmt.Errorf("nothing listens there")
	}
	a, b := Pipe()
	g.all.Go(func() { g.Serve(b) })
	return a, nil
}

// Cut ends all connections; runs go on.
func (g *Gateway) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.conns {
		_ = c.frames.Close()
	}
}

// Shut lets nobody in, or does again. It cuts.
func (g *Gateway) Shut(shut bool) {
	g.mu.Lock()
	g.shut = shut
	g.mu.Unlock()
	if shut {
		g.Cut()
	}
}

// Restart is a Gateway that was started anew: transcripts stay, runs are gone
// and idempotency keys are forgotten.
func (g *Gateway) Restart() {
	g.mu.Lock()
	g.boot++
	for _, r := range g.runs {
		r.kill()
	}
	g.runs = map[string]*Run{}
	g.mu.Unlock()
	g.Cut()
}

// Approve lets devices in.
func (g *Gateway) Approve() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cfg.Unpaired = false
}

// Close ends everything and waits for it.
func (g *Gateway) Close() {
	g.Shut(true)
	g.mu.Lock()
	for _, r := range g.runs {
		r.kill()
	}
	g.mu.Unlock()
	g.all.Wait()
}

// Requests are those of a method that were answered well.
func (g *Gateway) Requests(method string) []Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []Request
	for _, r := range g.requests {
		if r.Method == method {
			out = append(out, r)
		}
	}
	return out
}

// Resolve answers a permission request in another client's place.
func (g *Gateway) Resolve(id, decision string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.resolve(id, decision)
}

// Running is how many runs are under way.
func (g *Gateway) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := 0
	for _, r := range g.runs {
		if !r.ended && !r.killed {
			n++
		}
	}
	return n
}

// Asks are the ids of the open permission requests.
func (g *Gateway) Asks() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var ids []string
	for id, a := range g.asks {
		if a.decision == "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// conn is a client.
type conn struct {
	frames  jsonrpc.Frames
	writing sync.Mutex
	scopes  []string
	caps    []string
	keys    map[string]bool // sessions it asked the events of
	all     bool            // it asked for the events of all sessions
	seq     int
	number  int
}

// Serve serves one client to its end.
func (g *Gateway) Serve(frames jsonrpc.Frames) {
	defer frames.Close()
	c := &conn{frames: frames, keys: map[string]bool{}}
	nonce, at := "nonce-"+strconv.Itoa(g.next()), int64(1_800_000_000_000)
	c.send(map[string]any{"type": "event", "event": "connect.challenge", "payload": map[string]any{"nonce": nonce, "ts": at}})
	if !g.greet(c, nonce, at) {
		return
	}
	g.mu.Lock()
	g.conns[c] = true
	g.dials++
	c.number = g.dials
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		delete(g.conns, c)
		g.mu.Unlock()
	}()
	for {
		frame, err := frames.Read()
		if err != nil || len(frame) > g.cfg.MaxPayload {
			return
		}
		var req struct {
			Type, ID, Method string
			Params           json.RawMessage
		}
		if json.Unmarshal(frame, &req) != nil || req.Type != "req" || req.ID == "" {
			return
		}
		serve := func() { g.answer(c, req.ID, req.Method, req.Params) }
		if g.cfg.Odd != nil && g.cfg.Odd(&Odd{req.ID, req.Method, g, c, serve}) {
			continue
		}
		g.all.Go(serve)
	}
}

func (g *Gateway) next() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last++
	return g.last
}

func (c *conn) send(v any) {
	frame, _ := json.Marshal(v)
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.frames.Write(frame) // a client that has gone reads nothing
}

// fail is a refusal.
type fail struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"`
}

func invalid(format string, args ...any) *fail {
	return &fail{Code: "INVALID_REQUEST", Message: fmt.Sprintf(format, args...)}
}

func (c *conn) respond(id string, result any, f *fail) {
	if f != nil {
		c.send(map[string]any{"type": "res", "id": id, "ok": false, "error": f})
		return
	}
	c.send(map[string]any{"type": "res", "id": id, "ok": true, "payload": result})
}

type connectRequest struct {
	MinProtocol, MaxProtocol int
	Client                   struct{ ID, DisplayName, Version, Platform, Mode string }
	Role                     string
	Scopes, Caps             []string
	Auth                     struct{ Token, Password, DeviceToken string }
	Device                   *struct {
		ID, PublicKey, Signature, Nonce string
		SignedAt                        int64
	}
}

// greet reads connect and says whether the client is let in.
func (g *Gateway) greet(c *conn, nonce string, at int64) bool {
	frame, err := c.frames.Read()
	var req struct {
		Type, ID, Method string
		Params           json.RawMessage
	}
	if err != nil || len(frame) > 64<<10 || json.Unmarshal(frame, &req) != nil || req.Method != "connect" {
		return false
	}
	f := unknown(req.Params, "minProtocol maxProtocol client role scopes caps auth device userAgent locale")
	var p connectRequest
	if f == nil {
		_ = json.Unmarshal(req.Params, &p)
		f = g.judge(p, nonce, at)
	}
	if f != nil {
		c.respond(req.ID, nil, f)
		return false
	}
	c.scopes, c.caps = p.Scopes, p.Caps
	auth := map[string]any{"role": "operator", "scopes": p.Scopes}
	if g.cfg.DeviceToken != "" {
		auth["deviceToken"] = g.cfg.DeviceToken
	}
	g.mu.Lock()
	boot := "boot-" + strconv.Itoa(g.boot)
	g.mu.Unlock()
	if g.cfg.NoBoot {
		boot = ""
	}
	c.respond(req.ID, map[string]any{
		"type": "hello-ok", "protocol": 4,
		"server":   map[string]any{"version": "2026.9.6", "connId": nonce, "bootId": boot},
		"features": map[string]any{"methods": []string{}, "events": []string{}}, "snapshot": map[string]any{}, "auth": auth,
		"policy": map[string]any{
			"maxPayload": g.cfg.MaxPayload, "maxBufferedBytes": 50 << 20, "tickIntervalMs": 30000,
			"attachments": map[string]any{"maxBytes": 19 << 20, "maxImageBytes": 6 << 20},
		},
	}, nil)
	return true
}

func (g *Gateway) judge(p connectRequest, nonce string, at int64) *fail {
	refuse := func(code, words string) *fail {
		return &fail{Code: "INVALID_REQUEST", Message: words, Details: map[string]any{"code": code}}
	}
	switch {
	case p.MinProtocol > 4 || p.MaxProtocol < 4:
		return refuse("PROTOCOL_UNSUPPORTED", "unsupported protocol")
	case p.Role != "operator" || p.Client.Mode != "cli" || p.Client.ID != "cli" || p.Client.Version == "" || p.Client.Platform == "":
		return invalid("connect: client")
	case p.Device == nil:
		return refuse("DEVICE_IDENTITY_REQUIRED", "device identity required")
	}
	key, err := base64.RawURLEncoding.DecodeString(p.Device.PublicKey)
	sum := sha256.Sum256(key)
	sig, err2 := base64.RawURLEncoding.DecodeString(p.Device.Signature)
	said := strings.Join([]string{
		"v3", p.Device.ID, p.Client.ID, p.Client.Mode, p.Role, strings.Join(p.Scopes, ","), strconv.FormatInt(at, 10),
		p.Auth.Token, nonce, strings.ToLower(p.Client.Platform), "",
	}, "|")
	switch {
	case err != nil || err2 != nil || len(key) != ed25519.PublicKeySize || p.Device.ID != hex.EncodeToString(sum[:]):
		return refuse("DEVICE_AUTH_DEVICE_ID_MISMATCH", "device id mismatch")
	case p.Device.Nonce != nonce || p.Device.SignedAt != at:
		return refuse("DEVICE_AUTH_NONCE_MISMATCH", "device nonce mismatch")
	case !ed25519.Verify(key, []byte(said), sig):
		return refuse("DEVICE_AUTH_SIGNATURE_INVALID", "device signature invalid")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	device := g.cfg.DeviceToken != "" && p.Auth.Token == g.cfg.DeviceToken
	switch {
	case g.cfg.Token != "" && p.Auth.Token == "":
		return refuse("AUTH_TOKEN_MISSING", "unauthorized: gateway token missing")
	case g.cfg.Token != "" && p.Auth.Token != g.cfg.Token && !device:
		return refuse("AUTH_TOKEN_MISMATCH", "unauthorized: gateway token mismatch: "+p.Auth.Token) // as no Gateway should
	case g.cfg.Unpaired, g.cfg.NoAdmin && slices.Contains(p.Scopes, "operator.admin"):
		return &fail{Code: "NOT_PAIRED", Message: "pairing required", Details: map[string]any{"code": "PAIRING_REQUIRED", "requestId": "req-1"}}
	}
	return nil
}

// unknown refuses an object with members besides the allowed ones.
func unknown(raw json.RawMessage, allowed string) *fail {
	var p map[string]json.RawMessage
	if json.Unmarshal(raw, &p) != nil || p == nil {
		return invalid("params must be an object")
	}
	for name := range p {
		if !slices.Contains(strings.Fields(allowed), name) {
			return invalid("invalid params: at root: unexpected property '%s'", name)
		}
	}
	return nil
}
