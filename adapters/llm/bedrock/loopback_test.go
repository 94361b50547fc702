package bedrock

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// loopback serves a handler on a real socket, through the real transport,
// with signed requests.
func loopback(t testing.TB, h http.Handler, watch func(net.Conn, http.ConnState)) (*Model, *httptest.Server) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = watch
	server.Start()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: server.URL + "?region=us-east-1",
		APIKey: func() (string, error) { return Credentials("AKIAIOSFODNN7EXAMPLE", "secret", ""), nil },
	}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: claude}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Client.Close()
		server.Close()
	})
	return m, server
}

// answer writes the same stream to every request.
func answer(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", eventStream)
		_, _ = io.WriteString(w, body)
	})
}

// TestLoopback_KeepAlive: a connection serves the next request after a reply
// that was read to its end.
func TestLoopback_KeepAlive(t *testing.T) {
	var opened atomic.Int32
	m, _ := loopback(t, answer(start()+text(0, "a")+end("end_turn")+counts(`"inputTokens":1,"outputTokens":2`)), func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	})
	for range 5 {
		if line, _, err := told(t.Context(), m, porttest.SampleRequest()); line != "a 1+2(0,0) .stop" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections were opened for 5 requests", n)
	}
}

// TestLoopback_Cancel: the server sees the connection end soon after a cancel
// and after leaving the loop, and nothing is left running.
func TestLoopback_Cancel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	gone := make(chan struct{}, 1)
	m, server := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(w, start()+text(0, "a"))
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		gone <- struct{}{}
	}), nil)
	for name, leave := range map[string]bool{"cancel": false, "leave": true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var last error
		for ev, err := range m.Stream(ctx, porttest.SampleRequest()) {
			last = err
			if _, ok := ev.(domain.TextDelta); ok {
				if leave {
					break
				}
				cancel(domain.CancelledByClient)
			}
		}
		select {
		case <-gone:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: the server did not see it", name)
		}
		if !leave && !errors.Is(last, domain.CancelledByClient) {
			t.Errorf("%s: %v", name, last)
		}
		cancel(nil)
	}
	m.provider.Client.Close()
	server.Close()
}
