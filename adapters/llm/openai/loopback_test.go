package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// loopback serves a handler on a real socket, through the real transport.
func loopback(t testing.TB, h http.Handler, change func(*llm.Provider, *llm.HTTPConfig)) (*Model, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(h)
	cfg := llm.HTTPConfig{}
	p := llm.Provider{ProviderConfig: llm.ProviderConfig{
		Name: "fake", BaseURL: server.URL + "/v1", APIKey: func() (string, error) { return canary, nil },
	}}
	if change != nil {
		change(&p, &cfg)
	}
	p.Client = llm.NewClient(cfg)
	m, err := New(p, domain.ModelInfo{Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Client.Close()
		server.Close()
	})
	return m, server
}

// endlessStream sends text until the client goes, and tells when it has.
func endlessStream(gone chan<- time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(w, data(text("a")))
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
		gone <- time.Now()
	})
}

// TestLoopback_Unreachable: what is wrong with an address is said, and no
// secret of it.
func TestLoopback_Unreachable(t *testing.T) {
	closedPort := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a port nobody listens on
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}()
	tlsServer := httptest.NewTLSServer(http.NotFoundHandler())
	defer tlsServer.Close()
	tlsServer.Config.ErrorLog = nil
	for name, c := range map[string]struct{ base, want string }{
		"nobody listens": {"http://user:s3cret-pw@" + closedPort + "/v1", "nothing listens at its address; check providers.fake.base_url"},
		"no such host":   {"http://no-such-host.invalid/v1", "providers.fake.base_url"},
		"bad cert":       {tlsServer.URL, "its certificate is not valid"},
		"TLS to plain":   {"https://" + closedPort, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			p := llm.Provider{Client: llm.NewClient(llm.HTTPConfig{}), ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: c.base}}
			defer p.Client.Close()
			m, err := New(p, domain.ModelInfo{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = got(t, m, porttest.SampleRequest())
			if !domain.HasCode(err, domain.Unavailable) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestLoopback_Redirect: keys and the conversation go nowhere but to the
// address that was configured.
func TestLoopback_Redirect(t *testing.T) {
	var strayed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		m, _ := loopback(t, http.RedirectHandler(elsewhere.URL, status), nil)
		_, err := got(t, m, porttest.SampleRequest())
		if !domain.HasCode(err, domain.ProviderRejected) || !strings.Contains(err.Error(), "base_url") {
			t.Errorf("%d: %v", status, err)
		}
	}
	if n := strayed.Load(); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

// TestLoopback_Proxy: requests go through the proxy that was passed in.
func TestLoopback_Proxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = fmt.Fprint(w, data(text("by way of "+req.URL.Host), ended("stop")))
	}))
	defer proxy.Close()
	m, _ := loopback(t, http.NotFoundHandler(), func(p *llm.Provider, cfg *llm.HTTPConfig) {
		p.BaseURL = "http://far.invalid/v1"
		cfg.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	})
	if line, err := got(t, m, porttest.SampleRequest()); line != "by way of far.invalid .stop" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestLoopback_Headers: configured headers are over our own, and nothing asks
// for compression, which would hold events back.
func TestLoopback_Headers(t *testing.T) {
	seen := make(chan http.Header, 1)
	m, _ := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		seen <- req.Header
		_, _ = fmt.Fprint(w, data(text("a"), ended("stop")))
	}), func(p *llm.Provider, cfg *llm.HTTPConfig) {
		p.Headers = map[string]string{"X-Title": "Berth", "Authorization": "Custom zzz"}
		cfg.UserAgent = "berth/1.2.3"
	})
	if _, err := got(t, m, porttest.SampleRequest()); err != nil {
		t.Fatal(err)
	}
	h := <-seen
	for name, want := range map[string]string{
		"X-Title": "Berth", "Authorization": "Custom zzz", "User-Agent": "berth/1.2.3", "Content-Type": "application/json", "Accept-Encoding": "",
	} {
		if h.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, h.Get(name), want)
		}
	}
}

// TestLoopback_Compressed: an answer nobody asked to compress is refused.
func TestLoopback_Compressed(t *testing.T) {
	m, _ := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte{0x1f, 0x8b, 8})
	}), nil)
	if _, err := got(t, m, porttest.SampleRequest()); !domain.HasCode(err, domain.Unavailable) || !strings.Contains(err.Error(), "compressed") {
		t.Errorf("%v", err)
	}
}

// TestLoopback_HTTP2: the same over HTTP/2, where a cancel ends a stream and
// not a connection.
func TestLoopback_HTTP2(t *testing.T) {
	gone := make(chan time.Time, 1)
	var protocols, streams atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		protocols.Store(int32(req.ProtoMajor))
		if streams.Add(1) == 1 {
			endlessStream(gone).ServeHTTP(w, req)
			return
		}
		answer("text/event-stream", data(text("b"), ended("stop"), done)).ServeHTTP(w, req)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := llm.NewClient(llm.HTTPConfig{Transport: server.Client().Transport})
	m, err := New(llm.Provider{Client: client, ProviderConfig: llm.ProviderConfig{Name: "fake", BaseURL: server.URL}}, domain.ModelInfo{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var at time.Time
	var last error
	for ev, err := range m.Stream(ctx, porttest.SampleRequest()) {
		if last = err; ev != nil {
			at = time.Now()
			cancel(domain.CancelledByClient)
		}
	}
	if seen := (<-gone).Sub(at); seen > 100*time.Millisecond || !errors.Is(last, domain.CancelledByClient) {
		t.Errorf("the server saw the cancel after %s; the stream ended with %v", seen, last)
	}
	if line, err := got(t, m, porttest.SampleRequest()); line != "b .stop" || protocols.Load() != 2 {
		t.Errorf("%q, %v over HTTP/%d", line, err, protocols.Load())
	}
}

// TestLoopback_Many: many sessions share a model without mixing replies up.
func TestLoopback_Many(t *testing.T) {
	m, _ := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		n := body[strings.Index(string(body), "session ")+len("session "):][:2]
		for range 50 {
			_, _ = io.WriteString(w, data(text(string(n))))
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, data(ended("stop"), done))
	}), nil)
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			n := fmt.Sprint(10 + i)
			for range 3 {
				line, err := got(t, m, domain.ModelRequest{Messages: []domain.ModelMessage{user("session " + n)}})
				if line != strings.Repeat(n, 50)+" .stop" {
					t.Errorf("session %s: %q, %v", n, line, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestLoopback_HeadersOnly: a provider that sends its head and nothing more is
// given up after the limit on the first sign of an answer, and the error says
// which setting that is.
func TestLoopback_HeadersOnly(t *testing.T) {
	m, _ := loopback(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	}), func(p *llm.Provider, _ *llm.HTTPConfig) { p.Timeout, p.MaxRetries = 50*time.Millisecond, 3 })
	began := time.Now()
	_, err := got(t, m, porttest.SampleRequest())
	if took := time.Since(began); !domain.HasCode(err, domain.Unavailable) || !strings.Contains(err.Error(), "timeout_secs") || took > 30*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}
