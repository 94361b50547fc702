package ollama

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// over returns a model of a server on a real socket.
func over(t testing.TB, server *httptest.Server) *Model {
	t.Helper()
	p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: server.URL + "/v1"}}
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Tools: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Client.Close)
	return m
}

// TestLoopback_KeepAlive: one connection serves the questions about the model
// and all its replies.
func TestLoopback_KeepAlive(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(&server{version: "0.30.1", chat: answer(http.StatusOK, text("a")+done("stop", ""))})
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	m := over(t, server)
	for range 5 {
		if line, err := got(t, m, porttest.SampleRequest()); line != "a .stop" {
			t.Fatalf("%q, %v", line, err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections were opened for 5 replies", n)
	}
}

// TestLoopback_Cancel: the server sees the connection end within milliseconds
// of a cancel and of leaving the loop, and nothing is left running.
func TestLoopback_Cancel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	gone := make(chan time.Time, 1)
	server := httptest.NewServer(&server{version: "0.30.1", chat: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, text("a"))
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		gone <- time.Now()
	})})
	m := over(t, server)
	for name, leave := range map[string]bool{"cancel": false, "leave": true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var at time.Time
		var last error
		for ev, err := range m.Stream(ctx, porttest.SampleRequest()) {
			last = err
			if _, ok := ev.(domain.TextDelta); ok {
				at = time.Now()
				if leave {
					break
				}
				cancel(domain.CancelledByClient)
			}
		}
		if seen := (<-gone).Sub(at); seen > 100*time.Millisecond {
			t.Errorf("%s: the server saw it after %s", name, seen)
		}
		if !leave && !errors.Is(last, domain.CancelledByClient) {
			t.Errorf("%s: %v", name, last)
		}
		cancel(nil)
	}
	m.provider.Client.Close()
	server.Close()
}

// TestSlowCall: a server that says nothing while its model writes a call is
// given as much time as it has to begin, and what is said then names the
// setting.
func TestSlowCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := 5 * time.Minute
		s := &server{chat: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			_, _ = io.WriteString(w, text("I write."))
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(wait):
			case <-req.Context().Done():
				return
			}
			_, _ = io.WriteString(w, calls(`{"function":{"name":"f","arguments":{}}}`)+done("stop", ""))
		})}
		m := s.model(t, func(p *llm.Provider, _ *domain.ModelInfo) { p.Timeout = 6 * time.Minute })
		if line, err := got(t, m, porttest.SampleRequest()); line != "I write. +:f{} .calls" {
			t.Errorf("%q, %v", line, err)
		}
		wait = 7 * time.Minute
		line, err := got(t, m, porttest.SampleRequest())
		if line != "I write. !unavailable" || !strings.Contains(err.Error(), "nothing came for 6m0s") || !strings.Contains(err.Error(), "providers.fake.timeout_secs") {
			t.Errorf("%q, %v", line, err)
		}
	})
}
