package ws_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/ws"
)

// The tokens of the tests, none of which is one.
const (
	goodToken  = "berth_0123456789abcdefghijklmnopqrstuvwxyzABCDEF"
	otherToken = "berth_another-token-another-token-another-token-"
	localToken = "berth_local-token-local-token-local-token-local-"
)

// keys are the tokens by their text.
type keys map[string]ws.Principal

func (k keys) Lookup(token string, local bool) (ws.Principal, bool) {
	p, ok := k[token]
	return p, ok && (local || p.Name != "bridge")
}

// gate is a server with a guard before an upgrade handler.
type gate struct {
	*httptest.Server
	guard    *ws.Guard
	handler  *ws.Handler
	mu       sync.Mutex
	refusals []ws.Refusal
	peers    chan ws.Peer
}

// newGate makes one that sends back what it gets.
func newGate(t *testing.T, change func(*ws.GuardConfig), conn ws.Config) *gate {
	t.Helper()
	return newGateOf(t, change, conn, func(_ context.Context, c *ws.Conn, _ ws.Peer) {
		for {
			frame, err := c.Read()
			if err != nil {
				return
			}
			if err := c.Write(frame); err != nil {
				return
			}
		}
	})
}

// newGateServing makes one that serves its connections by a function.
func newGateServing(t *testing.T, conn ws.Config, serve func(context.Context, *ws.Conn, ws.Peer)) *gate {
	t.Helper()
	return newGateOf(t, nil, conn, serve)
}

func newGateOf(t *testing.T, change func(*ws.GuardConfig), conn ws.Config, serve func(context.Context, *ws.Conn, ws.Peer)) *gate {
	t.Helper()
	g := &gate{peers: make(chan ws.Peer, 2048)}
	var ids atomic.Int64
	cfg := ws.GuardConfig{
		Keys:    keys{goodToken: {Name: "good", Serial: "1"}, otherToken: {Name: "other", Serial: "2"}, localToken: {Name: "bridge", Serial: "3"}},
		Hosts:   []string{"agents.example", "named.example:8080", "2001:db8::7"},
		Origins: []string{"https://app.example", "http://localhost:5173"},
		NewID:   func() string { return fmt.Sprintf("r-%d", ids.Add(1)) },
		Refused: func(r ws.Refusal) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.refusals = append(g.refusals, r)
		},
	}
	if change != nil {
		change(&cfg)
	}
	g.guard = ws.NewGuard(cfg)
	g.handler = ws.NewHandler(ws.HandlerConfig{
		Conn: conn, NewID: func() string { return fmt.Sprintf("c-%d", ids.Add(1)) },
		Serve: func(ctx context.Context, c *ws.Conn, p ws.Peer) {
			g.peers <- p
			serve(ctx, c, p)
		},
	})
	mux := http.NewServeMux()
	mux.Handle("/acp", g.guard.Protect(g.handler, http.MethodGet))
	mux.Handle("/", g.guard.Visible(http.NotFoundHandler(), http.MethodGet, http.MethodHead))
	g.Server = httptest.NewUnstartedServer(mux)
	g.Config.ReadHeaderTimeout, g.Config.MaxHeaderBytes = 5*time.Second, 16<<10
	g.Start()
	t.Cleanup(func() {
		if err := g.handler.Close(context.Background(), nil); err != nil {
			t.Errorf("Close: %v", err)
		}
		g.Close()
	})
	return g
}

func (g *gate) refused() []ws.Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.refusals)
}

func (g *gate) addr() string { return g.Listener.Addr().String() }

// handshake is a request as it goes over the wire.
type handshake struct {
	line  string            // "" for that of an upgrade at /acp
	query string            // behind the path
	set   map[string]string // headers to replace; "" removes
	add   []string          // lines to add as they are
	body  string
}

func (h handshake) text(addr string) string {
	line := h.line
	if line == "" {
		line = "GET /acp" + h.query + " HTTP/1.1"
	}
	head := []struct{ name, value string }{
		{"Host", addr}, {"Upgrade", "websocket"}, {"Connection", "Upgrade"},
		{"Sec-WebSocket-Version", "13"}, {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}, {"Authorization", "Bearer " + goodToken},
	}
	var b strings.Builder
	b.WriteString(line + "\r\n")
	for _, f := range head {
		value, replaced := h.set[f.name]
		if !replaced {
			value = f.value
		}
		if value != "" {
			b.WriteString(f.name + ": " + strings.ReplaceAll(value, "{{ADDR}}", addr) + "\r\n")
		}
	}
	for _, line := range h.add {
		b.WriteString(strings.ReplaceAll(line, "{{ADDR}}", addr) + "\r\n")
	}
	return b.String() + "\r\n" + h.body
}

// ask sends a request over a socket of its own and reads the answer's head.
func (g *gate) ask(t *testing.T, h handshake) *http.Response {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", g.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, h.text(g.addr())); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	return answer
}

// only is headers without the token.
func only(set map[string]string) map[string]string {
	out := map[string]string{"Authorization": ""}
	for k, v := range set {
		out[k] = v
	}
	return out
}

func TestHandshake(t *testing.T) {
	const bearer = "Bearer " + goodToken
	for _, tt := range []struct {
		name string
		handshake
		want     int
		protocol string // selected
	}{
		// Credentials.
		{"the token in the header", handshake{}, 101, ""},
		{"no token", handshake{set: only(nil)}, 401, ""},
		{"a wrong token", handshake{set: map[string]string{"Authorization": "Bearer wrong"}}, 401, ""},
		{"a token cut short", handshake{set: map[string]string{"Authorization": bearer[:len(bearer)-1]}}, 401, ""},
		{"a token with more behind it", handshake{set: map[string]string{"Authorization": bearer + "x"}}, 401, ""},
		{"a token in other letters", handshake{set: map[string]string{"Authorization": "Bearer " + strings.ToUpper(goodToken)}}, 401, ""},
		{"an empty bearer", handshake{set: map[string]string{"Authorization": "Bearer"}}, 401, ""},
		{"a bearer of blanks", handshake{set: map[string]string{"Authorization": "Bearer    "}}, 401, ""},
		{"the scheme in other letters", handshake{set: map[string]string{"Authorization": "bEARER " + goodToken}}, 101, ""},
		{"another scheme", handshake{set: map[string]string{"Authorization": "Basic " + goodToken}}, 401, ""},
		{"the token without a scheme", handshake{set: map[string]string{"Authorization": goodToken}}, 401, ""},
		{"two headers, both right", handshake{add: []string{"Authorization: " + bearer}}, 400, ""},
		{"two headers, one wrong", handshake{add: []string{"Authorization: Bearer wrong"}}, 400, ""},
		{"the token in the query", handshake{query: "?token=" + goodToken, set: only(nil)}, 101, ""},
		{"a wrong token in the query", handshake{query: "?token=wrong", set: only(nil)}, 401, ""},
		{"an empty token in the query", handshake{query: "?token=", set: only(nil)}, 401, ""},
		{"an empty token in the query beside a right one", handshake{query: "?token="}, 401, ""},
		{"the query in other letters", handshake{query: "?TOKEN=" + goodToken, set: only(nil)}, 401, ""},
		{"two tokens in the query, both right", handshake{query: "?token=" + goodToken + "&token=" + goodToken, set: only(nil)}, 101, ""},
		{"two tokens in the query, one wrong", handshake{query: "?token=" + goodToken + "&token=wrong", set: only(nil)}, 401, ""},
		{"a query that cannot be read", handshake{query: "?token=%zz"}, 400, ""},
		{"a query with semicolons", handshake{query: "?a=1;token=" + goodToken, set: only(nil)}, 400, ""},
		{"the token among the sub-protocols", handshake{set: only(nil), add: []string{"Sec-WebSocket-Protocol: acp.v1, bearer." + goodToken}}, 101, "acp.v1"},
		{"the token first among the sub-protocols", handshake{set: only(nil), add: []string{"Sec-WebSocket-Protocol: bearer." + goodToken + ",acp.v1"}}, 101, "acp.v1"},
		{"the token in a second line of sub-protocols", handshake{set: only(nil), add: []string{"Sec-WebSocket-Protocol: acp.v1", "Sec-WebSocket-Protocol: bearer." + goodToken}}, 101, "acp.v1"},
		{"the token alone among the sub-protocols", handshake{set: only(nil), add: []string{"Sec-WebSocket-Protocol: bearer." + goodToken}}, 101, ""},
		{"a wrong token among the sub-protocols", handshake{set: only(nil), add: []string{"Sec-WebSocket-Protocol: acp.v1, bearer.wrong"}}, 401, ""},
		{"an empty token among the sub-protocols", handshake{add: []string{"Sec-WebSocket-Protocol: acp.v1, bearer."}}, 401, ""},
		{"header and query, both right", handshake{query: "?token=" + goodToken}, 101, ""},
		{"header wrong, query right", handshake{query: "?token=" + goodToken, set: map[string]string{"Authorization": "Bearer wrong"}}, 401, ""},
		{"header right, query wrong", handshake{query: "?token=wrong"}, 401, ""},
		{"header right, sub-protocol wrong", handshake{add: []string{"Sec-WebSocket-Protocol: bearer.wrong"}}, 401, ""},
		{"all three right", handshake{query: "?token=" + goodToken, add: []string{"Sec-WebSocket-Protocol: acp.v1, bearer." + goodToken}}, 101, "acp.v1"},
		{"two right tokens of two principals", handshake{query: "?token=" + otherToken}, 401, ""},
		{"the token in a cookie", handshake{set: only(nil), add: []string{"Cookie: token=" + goodToken}}, 401, ""},
		{"the token in a header of our own", handshake{set: only(nil), add: []string{"X-Berth-Token: " + goodToken}}, 401, ""},
		{"a token for this machine", handshake{set: map[string]string{"Authorization": "Bearer " + localToken}}, 101, ""},
		{"headers of a proxy give nothing", handshake{set: only(nil), add: []string{"X-Forwarded-For: 127.0.0.1", "Forwarded: for=127.0.0.1", "X-Real-IP: 127.0.0.1"}}, 401, ""},
		// Host.
		{"localhost", handshake{set: map[string]string{"Host": "localhost"}}, 101, ""},
		{"localhost with a port and in other letters", handshake{set: map[string]string{"Host": "LocalHost:1"}}, 101, ""},
		{"loopback of IPv6", handshake{set: map[string]string{"Host": "[::1]:8080"}}, 101, ""},
		{"another address of loopback", handshake{set: map[string]string{"Host": "127.9.9.9"}}, 101, ""},
		{"a name that is allowed", handshake{set: map[string]string{"Host": "agents.example"}}, 101, ""},
		{"a name that is allowed, with a port", handshake{set: map[string]string{"Host": "Agents.Example:443"}}, 101, ""},
		{"the name it listens on", handshake{set: map[string]string{"Host": "named.example:9"}}, 101, ""},
		{"a name that was rebound", handshake{set: map[string]string{"Host": "evil.example:8080"}}, 403, ""},
		{"a name that was rebound, with its own origin", handshake{set: map[string]string{"Host": "evil.example"}, add: []string{"Origin: http://evil.example"}}, 403, ""},
		{"a name below one that is allowed", handshake{set: map[string]string{"Host": "x.agents.example"}}, 403, ""},
		{"a name behind one that is allowed", handshake{set: map[string]string{"Host": "agents.example.evil.example"}}, 403, ""},
		{"a name before localhost", handshake{set: map[string]string{"Host": "localhost.evil.example"}}, 403, ""},
		{"an address that is not ours", handshake{set: map[string]string{"Host": "192.0.2.7"}}, 403, ""},
		{"the unspecified address", handshake{set: map[string]string{"Host": "0.0.0.0"}}, 403, ""},
		{"an address in one number", handshake{set: map[string]string{"Host": "2130706433"}}, 403, ""},
		{"an address of loopback with a zone", handshake{set: map[string]string{"Host": "[::1%25lo]"}}, 403, ""},
		{"a port that is none", handshake{set: map[string]string{"Host": "127.0.0.1:http"}}, 403, ""},
		{"two ports", handshake{set: map[string]string{"Host": "localhost:80:80"}}, 403, ""},
		{"a bracket that is not closed", handshake{set: map[string]string{"Host": "[::1"}}, 403, ""},
		{"a bracket that is not opened", handshake{set: map[string]string{"Host": "localhost]"}}, 403, ""},
		{"a name in brackets", handshake{set: map[string]string{"Host": "[localhost]"}}, 403, ""},
		{"more behind the brackets", handshake{set: map[string]string{"Host": "[::1]evil.example"}}, 403, ""},
		{"a dot behind localhost", handshake{set: map[string]string{"Host": "localhost."}}, 403, ""},
		{"localhost with a user", handshake{set: map[string]string{"Host": "evil.example@localhost"}}, 400, ""},
		{"an address of IPv6 that is allowed, written in another way", handshake{set: map[string]string{"Host": "[2001:DB8:0::7]:443"}}, 101, ""},
		{"no Host", handshake{set: map[string]string{"Host": ""}}, 400, ""},
		{"two Hosts", handshake{add: []string{"Host: localhost"}}, 400, ""},
		{"a foreign target over a good Host", handshake{line: "GET http://evil.example/acp HTTP/1.1"}, 403, ""},
		{"the Host of a proxy gives nothing", handshake{set: map[string]string{"Host": "evil.example"}, add: []string{"X-Forwarded-Host: localhost"}}, 403, ""},
		// Origin.
		{"our own origin", handshake{add: []string{"Origin: http://{{ADDR}}"}}, 101, ""},
		{"our own origin by name", handshake{set: map[string]string{"Host": "localhost:80"}, add: []string{"Origin: http://localhost"}}, 101, ""},
		{"our own origin with another scheme", handshake{add: []string{"Origin: https://{{ADDR}}"}}, 403, ""},
		{"our own name with another port", handshake{add: []string{"Origin: http://127.0.0.1:1"}}, 403, ""},
		{"an origin that is allowed", handshake{add: []string{"Origin: https://app.example"}}, 101, ""},
		{"an origin that is allowed, in other letters and with its port", handshake{add: []string{"Origin: HTTPS://App.Example:443"}}, 101, ""},
		{"an origin that is allowed, with another scheme", handshake{add: []string{"Origin: http://app.example"}}, 403, ""},
		{"an origin that is allowed, with more behind it", handshake{add: []string{"Origin: https://app.example.evil.example"}}, 403, ""},
		{"an origin that is allowed, with a path", handshake{add: []string{"Origin: https://app.example/"}}, 403, ""},
		{"a page of a development server", handshake{add: []string{"Origin: http://localhost:5173"}}, 101, ""},
		{"a page of another local server", handshake{add: []string{"Origin: http://localhost:3000"}}, 403, ""},
		{"a foreign origin with the right token", handshake{add: []string{"Origin: https://evil.example"}}, 403, ""},
		{"a foreign origin with the right token in the query", handshake{query: "?token=" + goodToken, set: only(nil), add: []string{"Origin: https://evil.example"}}, 403, ""},
		{"a foreign origin without a token", handshake{set: only(nil), add: []string{"Origin: https://evil.example"}}, 403, ""},
		{"an opaque origin", handshake{add: []string{"Origin: null"}}, 403, ""},
		{"an empty origin", handshake{add: []string{"Origin: "}}, 403, ""},
		{"two origins, one allowed", handshake{add: []string{"Origin: https://app.example", "Origin: https://evil.example"}}, 403, ""},
		{"the origin of a file", handshake{add: []string{"Origin: file://"}}, 403, ""},
		// The upgrade.
		{"another method", handshake{line: "POST /acp HTTP/1.1", add: []string{"Content-Length: 0"}}, 405, ""},
		{"another path", handshake{line: "GET /acp/ HTTP/1.1"}, 404, ""},
		{"a path that climbs", handshake{line: "GET /x/../acp HTTP/1.1"}, 307, ""},
		{"no upgrade", handshake{set: map[string]string{"Upgrade": "", "Connection": ""}}, 426, ""},
		{"an upgrade to something else", handshake{set: map[string]string{"Upgrade": "h2c"}}, 426, ""},
		{"an upgrade that is not named in Connection", handshake{set: map[string]string{"Connection": "keep-alive"}}, 426, ""},
		{"Connection with more in it", handshake{set: map[string]string{"Connection": "keep-alive, Upgrade"}}, 101, ""},
		{"another version", handshake{set: map[string]string{"Sec-WebSocket-Version": "8"}}, 426, ""},
		{"no version", handshake{set: map[string]string{"Sec-WebSocket-Version": ""}}, 426, ""},
		{"no key", handshake{set: map[string]string{"Sec-WebSocket-Key": ""}}, 400, ""},
		{"a key that is too short", handshake{set: map[string]string{"Sec-WebSocket-Key": "c2hvcnQ="}}, 400, ""},
		{"a key that is not base64", handshake{set: map[string]string{"Sec-WebSocket-Key": "!!!!!!!!!!!!!!!!!!!!!!=="}}, 400, ""},
		{"a body", handshake{add: []string{"Content-Length: 3"}, body: "abc"}, 400, ""},
		{"a body in chunks", handshake{add: []string{"Transfer-Encoding: chunked"}, body: "0\r\n\r\n"}, 400, ""},
		{"HTTP/1.0", handshake{line: "GET /acp HTTP/1.0", set: map[string]string{"Host": "localhost"}}, 426, ""},
		{"headers that are too long", handshake{add: []string{"X-Long: " + strings.Repeat("x", 64<<10)}}, 431, ""},
		{"compression is not agreed", handshake{add: []string{"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"}}, 101, ""},
		// Sub-protocols.
		{"acp.v1", handshake{add: []string{"Sec-WebSocket-Protocol: acp.v1"}}, 101, "acp.v1"},
		{"berth.acp.v1", handshake{add: []string{"Sec-WebSocket-Protocol: berth.acp.v1"}}, 101, "berth.acp.v1"},
		{"zeroclaw.acp.v1", handshake{add: []string{"Sec-WebSocket-Protocol: zeroclaw.acp.v1"}}, 101, "zeroclaw.acp.v1"},
		{"zeroclaw.acp.v1 before acp.v1", handshake{add: []string{"Sec-WebSocket-Protocol: zeroclaw.acp.v1, acp.v1"}}, 101, "acp.v1"},
		{"two of ours", handshake{add: []string{"Sec-WebSocket-Protocol: berth.acp.v1, acp.v1"}}, 101, "berth.acp.v1"},
		{"one that nobody knows", handshake{add: []string{"Sec-WebSocket-Protocol: graphql-ws"}}, 101, ""},
		{"one in other letters", handshake{add: []string{"Sec-WebSocket-Protocol: ACP.V1"}}, 101, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGate(t, nil, ws.Config{})
			answer := g.ask(t, tt.handshake)
			body := ""
			if answer.StatusCode != 101 {
				b, _ := io.ReadAll(answer.Body)
				body = string(b)
			}
			if answer.StatusCode != tt.want {
				t.Fatalf("answered %d %q, want %d", answer.StatusCode, body, tt.want)
			}
			if got := answer.Header.Get("Sec-WebSocket-Protocol"); got != tt.protocol {
				t.Errorf("selected the sub-protocol %q, want %q", got, tt.protocol)
			}
			if got := answer.Header.Get("Sec-WebSocket-Extensions"); got != "" {
				t.Errorf("agreed to the extensions %q", got)
			}
			told := fmt.Sprint(answer.Header, body, g.refused())
			for _, secret := range []string{goodToken, otherToken, localToken, "wrong", "token="} {
				if strings.Contains(strings.ReplaceAll(told, "wrong token", ""), secret) {
					t.Errorf("%q is told: %s", secret, told)
				}
			}
			switch tt.want {
			case 101:
				if id := answer.Header.Get("Acp-Connection-Id"); id == "" || id != (<-g.peers).Connection {
					t.Errorf("the connection's id is %q", id)
				}
			case 401, 403:
				if r := g.refused(); len(r) != 1 || r[0].Status != tt.want || r[0].Request != answer.Header.Get("X-Request-Id") || r[0].Path != "/acp" {
					t.Errorf("the log was told %+v", r)
				}
				if !strings.Contains(answer.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
					t.Errorf("the answer may be framed: %v", answer.Header)
				}
				if answer.Header.Get("Cache-Control") != "no-store" || answer.Header.Get("Referrer-Policy") != "no-referrer" {
					t.Errorf("the answer's headers are %v", answer.Header)
				}
			case 405:
				if answer.Header.Get("Allow") != "GET" {
					t.Errorf("it allows %q", answer.Header.Get("Allow"))
				}
			case 426:
				if answer.Header.Get("Sec-WebSocket-Version") != "13" {
					t.Errorf("the answer's headers are %v", answer.Header)
				}
			}
		})
	}
}

// TestHandshake_SaysNothing: whatever is wrong with a token, the answer is the
// same.
func TestHandshake_SaysNothing(t *testing.T) {
	g := newGate(t, nil, ws.Config{})
	answers := map[string]bool{}
	for _, h := range []handshake{
		{set: only(nil)},
		{set: map[string]string{"Authorization": "Bearer wrong"}},
		{set: map[string]string{"Authorization": "Bearer " + goodToken[:20]}},
		{query: "?token=wrong"},
		{query: "?token=" + otherToken},
	} {
		answer := g.ask(t, h)
		body, _ := io.ReadAll(answer.Body)
		answer.Header.Del("Date")
		answer.Header.Del("X-Request-Id")
		answers[fmt.Sprint(answer.StatusCode, answer.Header, string(body))] = true
	}
	if len(answers) != 1 {
		t.Errorf("there are %d answers: %v", len(answers), answers)
	}
}

// TestHandshake_Peer: what Serve is told about the other end.
func TestHandshake_Peer(t *testing.T) {
	for _, tt := range []struct {
		name, query string
		want        ws.Peer
	}{
		{"nothing", "", ws.Peer{}},
		{"an agent", "?agent=reviewer", ws.Peer{Agent: "reviewer"}},
		{"a blank agent", "?agent=%20", ws.Peer{}},
		{"an agent behind a token", "?token=" + goodToken + "&agent=reviewer", ws.Peer{Agent: "reviewer"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGate(t, nil, ws.Config{})
			g.ask(t, handshake{query: tt.query, add: []string{"Sec-WebSocket-Protocol: zeroclaw.acp.v1"}})
			p := <-g.peers
			if p.Agent != tt.want.Agent || p.Principal.Name != "good" || p.Protocol != "zeroclaw.acp.v1" || p.Request == "" || p.Remote == "" {
				t.Errorf("the peer is %+v", p)
			}
		})
	}
}
