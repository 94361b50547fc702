package ws_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/adapters/ws"
)

// FuzzGuard holds every request that is let in against what others make of its
// parts: the host that a browser would have gone to, the origin it would have
// come from, and the token, which has to be somewhere.
func FuzzGuard(f *testing.F) {
	for _, host := range []string{"localhost", "127.0.0.1:80", "[::1]:8080", "agents.example", "evil.example", "localhost.", "[::1%25lo]", "a@localhost", "::1", "localhost:80:80", "[localhost]"} {
		f.Add(host, "", "Bearer "+goodToken, "", "")
		f.Add(host, "http://"+host, "", "acp.v1, bearer."+goodToken, "")
	}
	f.Add("localhost", "https://app.example", "", "", "token="+goodToken)
	f.Add("localhost", "null", "bearer  "+goodToken, "bearer.", "token=%20")
	f.Add("localhost", "https://app.example:443", "Basic x", "bearer."+goodToken+",bearer.x", "token="+goodToken+"&token=x")
	f.Fuzz(func(t *testing.T, host, origin, authorization, protocols, query string) {
		var told []ws.Refusal
		g := ws.NewGuard(ws.GuardConfig{
			Keys: keys{goodToken: {Name: "good"}}, Hosts: []string{"agents.example"}, Origins: []string{"https://app.example"},
			NewID: func() string { return "r" }, Refused: func(r ws.Refusal) { told = append(told, r) },
		})
		r := httptest.NewRequest(http.MethodGet, "http://localhost/acp", nil)
		r.Host, r.URL.RawQuery, r.URL.Path = host, query, "/"+query
		for name, value := range map[string]string{"Origin": origin, "Authorization": authorization, "Sec-WebSocket-Protocol": protocols} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if _, ok := g.Admit(httptest.NewRecorder(), r, http.MethodGet); !ok {
			if len(told) != 1 || !slices.Contains([]string{"/", "/acp", "/metrics", "/healthz", "/readyz", "other"}, told[0].Path) {
				t.Errorf("the log was told %+v", told)
			}
			return
		}
		u, err := url.Parse("http://" + host + "/")
		if err != nil || u.User != nil {
			t.Fatalf("the host %q was let in: %v", host, err)
		}
		name := strings.ToLower(u.Hostname())
		ip, err := netip.ParseAddr(name)
		if local := err == nil && ip.Unmap().IsLoopback(); !local && name != "localhost" && name != "agents.example" {
			t.Errorf("the host %q was let in", host)
		}
		if from, err := url.Parse(origin); origin != "" && (err != nil || from.Scheme+"://"+strings.TrimSuffix(strings.ToLower(from.Host), ":443") != "https://app.example" &&
			from.Scheme+"://"+strings.TrimSuffix(strings.ToLower(from.Host), ":80") != "http://"+strings.TrimSuffix(strings.ToLower(host), ":80")) {
			t.Errorf("the origin %q was let in, to the host %q", origin, host)
		}
		values, _ := url.ParseQuery(query)
		shown := strings.Fields(authorization)
		for p := range strings.SplitSeq(protocols, ",") {
			if token, ok := strings.CutPrefix(strings.TrimSpace(p), "bearer."); ok {
				shown = append(shown, token)
			}
		}
		if shown = append(shown, values["token"]...); !slices.Contains(shown, goodToken) {
			t.Errorf("no token was let in: %q, %q, %q", authorization, protocols, query)
		}
	})
}

// FuzzFrames sends bytes to a connection: whatever they are, it ends, and hands
// on nothing but texts within the limit.
func FuzzFrames(f *testing.F) {
	for _, seed := range [][]byte{
		frame(fin|opText, `{"a":1}`), slices.Concat(frame(opText, "he"), frame(fin|opPing, "x"), frame(fin|opMore, "llo")),
		frame(fin|opText, "\xff"), frame(fin|0x40|opText, "{}"), frame(fin|opPing, strings.Repeat("x", 126)), closing(1005), closing(1000),
		{fin | opText, 0x80 | 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, {fin | opText, 2, '{', '}'},
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		const most = 1000
		done := make(chan struct{})
		g := newGateServing(t, ws.Config{MaxBytes: most}, func(_ context.Context, c *ws.Conn, _ ws.Peer) {
			defer close(done)
			for {
				m, err := c.Read()
				if err != nil {
					return
				}
				if len(m) > most || !utf8.Valid(m) {
					t.Errorf("it handed on %q", m)
				}
				if c.Write(m) != nil {
					return
				}
			}
		})
		w := g.raw(t)
		_, _ = w.conn.Write(sent)
		_ = w.conn.(*net.TCPConn).CloseWrite()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("it does not end")
		}
	})
}
