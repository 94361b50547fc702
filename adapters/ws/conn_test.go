package ws_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/framestest"
	"github.com/berth-dev/berth/adapters/ws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ jsonrpc.Frames = (*ws.Conn)(nil)

// connected makes both ends of a connection.
func connected(t framestest.TB, cfg ws.Config, tls bool) (client, server *ws.Conn) {
	t.Helper()
	served := make(chan *ws.Conn, 1)
	h := ws.NewHandler(ws.HandlerConfig{
		Conn: cfg, NewID: func() string { return "c-1" },
		Serve: func(_ context.Context, c *ws.Conn, _ ws.Peer) {
			served <- c
			<-c.Gone()
		},
	})
	g := ws.NewGuard(ws.GuardConfig{NewID: func() string { return "r-1" }})
	s := httptest.NewUnstartedServer(g.Protect(h, "GET"))
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background(), nil); err != nil {
			t.Errorf("Close: %v", err)
		}
		s.Close()
	})
	d := ws.DialConfig{URL: "ws" + strings.TrimPrefix(s.URL, "http") + "/acp", Conn: cfg}
	if tls {
		d.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
	}
	client, err := ws.Dial(t.Context(), d)
	if err != nil {
		t.Fatalf("Dial: %v", err)
	}
	t.Cleanup(func() {
		_ = client.Close()
		<-client.Gone()
	})
	return client, <-served
}

func TestFrames(t *testing.T) {
	for _, tt := range []struct {
		name string
		tls  bool
		turn bool // the server's end is the suite's first
	}{
		{"client first", false, false},
		{"server first", false, true},
		{"client first over TLS", true, false},
		{"server first over TLS", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			framestest.Run(t, func(t framestest.TB, maxBytes int) (a, b jsonrpc.Frames) {
				client, server := connected(t, ws.Config{MaxBytes: maxBytes}, tt.tls)
				if tt.turn {
					return server, client
				}
				return client, server
			})
		})
	}
}
