package ws_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc/tether"
	"github.com/berth-dev/berth/adapters/ws"
)

// dial opens a connection of one of the tokens, and closes it with the test.
func (g *gate) dial(t *testing.T, token string) (*ws.Conn, error) {
	t.Helper()
	c, err := ws.Dial(t.Context(), ws.DialConfig{URL: g.URL + "/acp", Token: token})
	if err == nil {
		t.Cleanup(func() {
			_ = c.Close()
			<-c.Gone()
		})
	}
	return c, err
}

// refusedWith checks that a dial was refused with a status.
func refusedWith(t *testing.T, err error, status int) {
	t.Helper()
	var e *ws.DialError
	if !errors.As(err, &e) || e.Status != status {
		t.Errorf("Dial: %v, want status %d", err, status)
	}
	if (status == 429 || status == 503) && e != nil && e.RetryAfter <= 0 {
		t.Error("nothing says when to come back")
	}
	if err != nil && strings.Contains(err.Error(), goodToken) {
		t.Errorf("the error holds the token: %v", err)
	}
}

// TestGuard_Room: the whole gateway has room for so many, each token for
// fewer, and a place is free again when its connection has gone.
func TestGuard_Room(t *testing.T) {
	g := newGate(t, func(c *ws.GuardConfig) { c.MaxConnections, c.MaxPerToken = 3, 2 }, ws.Config{})
	first, err := g.dial(t, goodToken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.dial(t, goodToken); err != nil {
		t.Fatal(err)
	}
	_, err = g.dial(t, goodToken)
	refusedWith(t, err, http.StatusTooManyRequests)
	if _, err := g.dial(t, otherToken); err != nil {
		t.Fatalf("another token: %v", err)
	}
	_, err = g.dial(t, otherToken)
	refusedWith(t, err, http.StatusServiceUnavailable)
	_, err = g.dial(t, "wrong") // there is no room even to look at it
	refusedWith(t, err, http.StatusServiceUnavailable)

	_ = first.Close()
	<-first.Gone()
	for g.guard.Count() == 3 {
		time.Sleep(time.Millisecond) // the other end needs a moment to see it
	}
	if _, err := g.dial(t, goodToken); err != nil {
		t.Errorf("after one has gone: %v", err)
	}
}

// TestGuard_RoomToWatch: a gateway that is full is full for those who want a
// place, and for nobody else.
func TestGuard_RoomToWatch(t *testing.T) {
	g := newGate(t, func(c *ws.GuardConfig) { c.MaxConnections = 1 }, ws.Config{})
	if _, err := g.dial(t, goodToken); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, method string
		head         map[string]string
		want         int
	}{
		{"who watches", "GET", nil, 200},
		{"a message on a connection there is", "POST", map[string]string{ws.HeaderConnection: "c"}, 200},
		{"a connection", "POST", nil, 503},
		{"a WebSocket", "GET", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}, 503},
		{"a WebSocket with a header that means nothing there", "GET", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", ws.HeaderConnection: "c"}, 503},
		{"a new link", "GET", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", tether.Header: tether.Ask("", 0)}, 503},
		{"a socket for a link there is", "GET", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", tether.Header: tether.Ask("c", 1)}, 200},
	} {
		r := httptest.NewRequest(tt.method, "http://localhost/acp", nil)
		r.Header.Set("Authorization", "Bearer "+goodToken)
		for name, value := range tt.head {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		g.guard.Protect(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), "GET", "POST").ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, w.Code, tt.want)
		}
	}
}

// TestGuard_LogsNoWords: of a request that is turned away the log gets no
// words that a stranger chose, for one of them may be a token in the wrong
// place.
func TestGuard_LogsNoWords(t *testing.T) {
	g := newGate(t, nil, ws.Config{})
	for _, h := range []handshake{
		{line: "GET /" + goodToken + " HTTP/1.1", set: map[string]string{"Host": "evil.example"}},
		{line: "GET /acp/" + goodToken + " HTTP/1.1", set: map[string]string{"Host": "evil.example"}},
		{line: "POST /acp%2f" + goodToken + " HTTP/1.1", set: map[string]string{"Host": "evil.example"}},
		{line: goodToken + " /acp HTTP/1.1"},
		{line: "GET /acp HTTP/1.1", set: map[string]string{"Host": goodToken}},
		{line: "GET /acp HTTP/1.1", add: []string{"Origin: " + goodToken}},
	} {
		r := httptest.NewRecorder()
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(h.text(g.addr()))))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := g.guard.Admit(r, request, http.MethodGet); ok {
			t.Errorf("%s was admitted", h.line)
		}
		if told := fmt.Sprint(r.Header(), r.Body, g.refused()); strings.Contains(told, goodToken) {
			t.Errorf("%s is told: %s", h.line, told)
		}
	}
	if r := g.refused(); len(r) != 6 || r[0].Path != "other" || r[3].Method != "other" || r[5].Path != "/acp" {
		t.Errorf("the log was told %+v", r)
	}
}

// TestGuard_Revoke: a token that is not good any more loses its connections,
// others keep theirs.
func TestGuard_Revoke(t *testing.T) {
	causes := make(chan error, 2)
	g := newGateServing(t, ws.Config{}, func(ctx context.Context, c *ws.Conn, p ws.Peer) {
		if p.Principal.Name == "good" {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return
		}
		for {
			m, err := c.Read()
			if err != nil {
				return
			}
			_ = c.Write(m)
		}
	})
	revoked, err := g.dial(t, goodToken)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := g.dial(t, otherToken)
	if err != nil {
		t.Fatal(err)
	}
	g.guard.Revoke(func(p ws.Principal) bool { return p.Serial != "1" })
	if cause := <-causes; !errors.Is(cause, ws.ErrRevoked) {
		t.Errorf("its context ended with %v", cause)
	}
	var closed *ws.ClosedError
	if _, err := revoked.Read(); !errors.As(err, &closed) || closed.Code != ws.ClosePolicy {
		t.Errorf("the revoked one read %v", err)
	}
	if err := kept.Write([]byte("still here")); err != nil {
		t.Fatal(err)
	}
	if m, err := kept.Read(); string(m) != "still here" {
		t.Errorf("the other one read %q, %v", m, err)
	}
}

// TestGuard_RevokeWithoutTokens: where nobody needs a token, none is missed.
func TestGuard_RevokeWithoutTokens(t *testing.T) {
	g := newGateOf(t, func(cfg *ws.GuardConfig) { cfg.Keys = nil }, ws.Config{}, func(ctx context.Context, c *ws.Conn, _ ws.Peer) {
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		defer stop()
		m, err := c.Read()
		if err == nil {
			_ = c.Write(m)
		}
	})
	c, err := g.dial(t, "")
	if err != nil {
		t.Fatal(err)
	}
	g.guard.Revoke(func(ws.Principal) bool { return false })
	if err := c.Write([]byte("still here")); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Read(); string(m) != "still here" {
		t.Errorf("it read %q, %v", m, err)
	}
}

// knock is one request to a guard, from an address.
func knock(g *ws.Guard, remote, origin, token string) (status int, retry string) {
	r := httptest.NewRequest(http.MethodGet, "http://localhost/acp", nil)
	r.RemoteAddr = remote
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") }), http.MethodGet).ServeHTTP(w, r)
	return w.Code, w.Header().Get("Retry-After")
}

func newGuard() *ws.Guard {
	return ws.NewGuard(ws.GuardConfig{
		Keys: keys{goodToken: {Name: "good"}, localToken: {Name: "bridge"}}, Origins: []string{"https://app.example"}, NewID: func() string { return "r" },
	})
}

// TestGuard_LockOut: ten wrong tokens within a minute, and then nothing from
// there for five minutes, be it right.
func TestGuard_LockOut(t *testing.T) {
	const far, other = "203.0.113.7:4711", "203.0.113.8:4711"
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		for range 10 {
			if status, _ := knock(g, far, "", "wrong"); status != 401 {
				t.Fatalf("a wrong token: %d", status)
			}
			time.Sleep(5 * time.Second)
		}
		if status, retry := knock(g, far, "", goodToken); status != 429 || retry == "" {
			t.Errorf("the right token during the pause: %d, retry after %q", status, retry)
		}
		if status, _ := knock(g, other, "", goodToken); status != 200 {
			t.Errorf("another address: %d", status)
		}
		if status, _ := knock(g, far, "https://app.example", goodToken); status != 200 {
			t.Errorf("another origin: %d", status)
		}
		if status, _ := knock(g, far, "https://evil.example", "wrong"); status != 403 {
			t.Errorf("a foreign origin: %d", status)
		}
		time.Sleep(5 * time.Minute)
		if status, _ := knock(g, far, "", goodToken); status != 200 {
			t.Errorf("the right token after the pause: %d", status)
		}
	})
}

// TestGuard_LockOutNeedsWrongTokens: what is slow, or shows no token, is no
// guessing.
func TestGuard_LockOutNeedsWrongTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		for range 30 {
			if status, _ := knock(g, "203.0.113.7:1", "", ""); status != 401 {
				t.Fatal("no token was let in")
			}
		}
		for range 30 {
			if status, _ := knock(g, "203.0.113.7:1", "", "wrong"); status != 401 {
				t.Fatal("one wrong token every ten seconds was locked out")
			}
			time.Sleep(10 * time.Second)
		}
		if status, _ := knock(g, "203.0.113.7:1", "", goodToken); status != 200 {
			t.Errorf("the right token: %d", status)
		}
	})
}

// TestGuard_LockOutByNetwork: whoever has a network of IPv6 has one key.
func TestGuard_LockOutByNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		for i := range 10 {
			knock(g, fmt.Sprintf("[2001:db8::%d]:1", i+1), "", "wrong")
		}
		if status, _ := knock(g, "[2001:db8::ffff]:1", "", goodToken); status != 429 {
			t.Errorf("the same network: %d", status)
		}
		if status, _ := knock(g, "[2001:db8:0:1::1]:1", "", goodToken); status != 200 {
			t.Errorf("another network: %d", status)
		}
	})
}

// TestGuard_Loopback: every account of a machine has the same address, so a
// guessing one must not keep the others out; it waits for each answer instead.
func TestGuard_Loopback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		for range 10 {
			knock(g, "127.0.0.1:1", "", "wrong")
		}
		start := time.Now()
		if status, _ := knock(g, "127.0.0.1:1", "", "wrong"); status != 429 {
			t.Errorf("a wrong token: %d", status)
		}
		if waited := time.Since(start); waited < time.Second {
			t.Errorf("it was answered after %v", waited)
		}
		start = time.Now()
		if status, _ := knock(g, "127.0.0.1:1", "", goodToken); status != 200 {
			t.Errorf("the right token: %d", status)
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the right token waited %v", waited)
		}
	})
}

// TestGuard_LocalTokens: some count on this machine alone.
func TestGuard_LocalTokens(t *testing.T) {
	for remote, want := range map[string]int{"127.0.0.1:1": 200, "[::1]:1": 200, "@": 200, "203.0.113.7:1": 401} {
		if status, _ := knock(newGuard(), remote, "", localToken); status != want {
			t.Errorf("from %s: %d, want %d", remote, status, want)
		}
	}
}

// TestGuard_ManyKeys: a flood of addresses takes bounded memory, and does not
// set those free that are locked out.
func TestGuard_ManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard()
		for range 10 {
			knock(g, "203.0.113.7:1", "", "wrong")
		}
		for i := range 20_000 {
			knock(g, fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "", "wrong")
		}
		if status, _ := knock(g, "203.0.113.7:1", "", goodToken); status != 429 {
			t.Errorf("it was set free: %d", status)
		}
	})
}

// TestGuard_Open: without tokens Host and Origin still count.
func TestGuard_Open(t *testing.T) {
	g := ws.NewGuard(ws.GuardConfig{NewID: func() string { return "r" }, Anyone: ws.Principal{Name: "anyone"}})
	if status, _ := knock(g, "127.0.0.1:1", "", ""); status != 200 {
		t.Errorf("no token: %d", status)
	}
	if status, _ := knock(g, "127.0.0.1:1", "https://evil.example", ""); status != 403 {
		t.Errorf("a foreign origin: %d", status)
	}
}

// TestGuard_Visible: files need no token, and are judged like the rest.
func TestGuard_Visible(t *testing.T) {
	h := newGuard().Visible(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") }), http.MethodGet)
	for _, tt := range []struct {
		name, method, host, origin string
		want                       int
	}{
		{"a page", "GET", "localhost", "", 200},
		{"a name that was rebound", "GET", "evil.example", "", 403},
		{"a foreign origin", "GET", "localhost", "https://evil.example", 403},
		{"another method", "POST", "localhost", "", 405},
	} {
		r := httptest.NewRequest(tt.method, "http://"+tt.host+"/", nil)
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, w.Code, tt.want)
		}
	}
}

// TestGuard_OwnAddress: a number as Host is ours when the peer came in by it.
func TestGuard_OwnAddress(t *testing.T) {
	g := newGate(t, nil, ws.Config{})
	local := g.Listener.Addr()
	for host, want := range map[string]int{local.String(): 200, "198.51.100.1": 403} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/acp", nil)
		r.Header.Set("Authorization", "Bearer "+goodToken)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		w := httptest.NewRecorder()
		if _, ok := g.guard.Admit(w, r, http.MethodGet); ok != (want == 200) {
			t.Errorf("%s: %d", host, w.Code)
		}
	}
}

// TestDial_Errors: what they say, and that they never repeat a secret.
func TestDial_Errors(t *testing.T) {
	g := newGate(t, nil, ws.Config{})
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	for _, tt := range []struct {
		name string
		cfg  ws.DialConfig
		want string
	}{
		{"a wrong token", ws.DialConfig{URL: g.URL + "/acp", Token: "wrong"}, "answered 401 Unauthorized"},
		{"a wrong token in the address", ws.DialConfig{URL: g.URL + "/acp?token=canary"}, "answered 401"},
		{"another path", ws.DialConfig{URL: g.URL + "/", Token: goodToken}, "answered 404"},
		{"nobody there", ws.DialConfig{URL: "ws://127.0.0.1:1/acp?token=canary"}, "connection refused"},
		{"no socket", ws.DialConfig{URL: "unix:/nowhere/canary.sock"}, "no such file"},
		{"no address", ws.DialConfig{URL: "canary"}, "is not a URL"},
		{"an address that cannot be read", ws.DialConfig{URL: "ws://user:canary@%zz/"}, "is not a URL"},
		{"another scheme", ws.DialConfig{URL: "ftp://host/acp?token=canary"}, "does not begin with"},
		{"a certificate that nobody knows", ws.DialConfig{URL: secure.URL + "/acp"}, "certificate"},
		{"another certificate", ws.DialConfig{URL: secure.URL + "/acp", Fingerprint: strings.Repeat("00", 32)}, "has the fingerprint"},
		{"a fingerprint that is none", ws.DialConfig{URL: secure.URL + "/acp", Fingerprint: "canary"}, "is not one"},
		{"an old version of TLS", ws.DialConfig{URL: secure.URL + "/acp", TLS: &tls.Config{MaxVersion: tls.VersionTLS11}}, "supported versions"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ws.Dial(t.Context(), tt.cfg)
			var e *ws.DialError
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Dial: %v, want %q", err, tt.want)
			}
			if err != nil && tt.name != "no socket" && strings.Contains(err.Error(), "canary") {
				t.Errorf("it repeats a secret: %v", err)
			}
		})
	}
}

// TestDial_OneProtocol: a gateway that would rather speak HTTP/2 is asked for
// HTTP/1.1, which a WebSocket begins with, whatever the caller's settings are
// for.
func TestDial_OneProtocol(t *testing.T) {
	g := newGate(t, nil, ws.Config{})
	s := httptest.NewUnstartedServer(g.Config.Handler)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for _, protocols := range [][]string{nil, {"h2"}, {"h2", "http/1.1"}} {
		settings := s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		settings.NextProtos = protocols
		c, err := ws.Dial(t.Context(), ws.DialConfig{URL: s.URL + "/acp", Token: goodToken, TLS: settings})
		if err != nil {
			t.Errorf("%v: %v", protocols, err)
			continue
		}
		_ = c.Close()
		<-c.Gone()
	}
}

// TestConn_EndsTLS: the end of a connection is one that nobody on the way can
// have forged.
func TestConn_EndsTLS(t *testing.T) {
	g := newGate(t, nil, ws.Config{})
	s := httptest.NewTLSServer(g.Config.Handler)
	defer s.Close()
	settings := s.Client().Transport.(*http.Transport).TLSClientConfig
	settings = settings.Clone()
	settings.MaxVersion = tls.VersionTLS12 // later ones do not show what a record is
	below, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	heard := &tap{Conn: below}
	settings.ServerName = "example.com"
	conn := tls.Client(heard, settings)
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.WriteString(conn, handshake{}.text(s.Listener.Addr().String())); err != nil {
		t.Fatal(err)
	}
	w := &wire{t, conn, bufio.NewReader(conn)}
	if answer, err := http.ReadResponse(w.r, nil); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade: %v %v", answer, err)
	}
	w.send(closing(1000))
	if op, _, err := w.next(); op != opClose || err != nil {
		t.Errorf("it answered %d, %v", op, err)
	}
	if _, err := w.r.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("and ended with %v", err)
	}
	const alert = 21
	last := byte(0)
	for b := heard.bytes; len(b) >= 5; {
		last = b[0]
		b = b[min(len(b), 5+int(binary.BigEndian.Uint16(b[3:5]))):]
	}
	if last != alert {
		t.Errorf("the last record is of kind %d, want an alert", last)
	}
}

// tap keeps what is read.
type tap struct {
	net.Conn
	bytes []byte
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.bytes = append(t.bytes, p[:n]...)
	return n, err
}

// TestDial_Fingerprint: a certificate that nobody vouches for is good when it
// is the one that is expected.
func TestDial_Fingerprint(t *testing.T) {
	g := newGate(t, nil, ws.Config{})
	s := httptest.NewTLSServer(g.Config.Handler)
	defer s.Close()
	want := fmt.Sprintf("%X", sha256.Sum256(s.Certificate().Raw))
	c, err := ws.Dial(t.Context(), ws.DialConfig{URL: s.URL + "/acp?x=1", Token: goodToken, Agent: "reviewer", Fingerprint: want})
	if err != nil {
		t.Fatal(err)
	}
	if p := <-g.peers; p.Agent != "reviewer" || c.Protocol() != ws.ProtocolACP || c.ID() != p.Connection {
		t.Errorf("the peer is %+v, the connection %q %q", p, c.Protocol(), c.ID())
	}
	_ = c.Close()
	<-c.Gone()
}
