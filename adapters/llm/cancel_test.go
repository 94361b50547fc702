package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/berth-dev/berth/core/domain"
)

// hangLimit is when a provider that was left counts as never told.
const hangLimit = 30 * time.Second

// stage is how far a provider gets with an answer before the request is
// cancelled.
type stage struct {
	name string
	// play answers and calls ready at the point where the cancel comes. It may
	// go on after that, and returns when it likes.
	play func(w http.ResponseWriter, req *http.Request, ready func())
}

func stages() []stage {
	send := func(w http.ResponseWriter, s string) {
		_, _ = io.WriteString(w, s)
		_ = http.NewResponseController(w).Flush()
	}
	return []stage{
		{"before the head", func(_ http.ResponseWriter, _ *http.Request, ready func()) { ready() }},
		{"after the head", func(w http.ResponseWriter, _ *http.Request, ready func()) { send(w, ""); ready() }},
		{"between events", func(w http.ResponseWriter, _ *http.Request, ready func()) { send(w, "data: {}\n\n"); ready() }},
		{"within an event", func(w http.ResponseWriter, _ *http.Request, ready func()) {
			send(w, "data: {}\n\ndata: {\"te")
			ready()
		}},
		{"within a refusal", func(w http.ResponseWriter, _ *http.Request, ready func()) {
			w.WriteHeader(http.StatusTooManyRequests)
			send(w, `{"error":{"mess`)
			ready()
		}},
		{"in a flood", func(w http.ResponseWriter, req *http.Request, ready func()) {
			ready()
			for req.Context().Err() == nil {
				if _, err := io.WriteString(w, "data: {}\n\n"); err != nil {
					return
				}
			}
		}},
	}
}

// TestCancel: wherever an answer stands, the provider sees that it is not
// wanted any more at once. What it took is measured at the provider and
// printed.
func TestCancel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, h2 := range []bool{false, true} {
		for _, s := range stages() {
			t.Run(fmt.Sprintf("%s, HTTP2=%v", s.name, h2), func(t *testing.T) { checkCancel(t, s, h2) })
		}
	}
}

func checkCancel(t *testing.T, s stage, h2 bool) {
	t.Helper()
	const rounds = 25
	ready, gone := make(chan struct{}), make(chan time.Time)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		s.play(w, req, func() { ready <- struct{}{} })
		<-req.Context().Done()
		gone <- time.Now()
	}))
	cfg := HTTPConfig{}
	if server.EnableHTTP2 = h2; h2 {
		server.StartTLS()
		cfg.Transport = server.Client().Transport
	} else {
		server.Start()
	}
	defer server.Close()
	p := Provider{ProviderConfig: ProviderConfig{Name: "p"}, Client: NewClient(cfg)}
	defer p.Client.Close()
	var theirs, ours []time.Duration
	for range rounds {
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- readAnswer(ctx, &p, server.URL) }()
		<-ready
		at := time.Now()
		cancel(domain.CancelledByClient)
		for range 2 {
			select {
			case seen := <-gone:
				theirs = append(theirs, seen.Sub(at))
			case err := <-ended:
				ours = append(ours, time.Since(at))
				if !domain.HasCode(err, domain.Cancelled) || !errors.Is(err, domain.CancelledByClient) {
					t.Errorf("the exchange ended with %v", err)
				}
			case <-time.After(hangLimit):
				t.Fatal("the cancel did not arrive")
			}
		}
	}
	slices.Sort(theirs)
	slices.Sort(ours)
	t.Logf("the provider saw it after %s (median), %s (longest of %d); Stream could return after %s, %s",
		theirs[rounds/2], theirs[rounds-1], rounds, ours[rounds/2], ours[rounds-1])
}

// readAnswer reads an answer until it ends, as an adapter does.
func readAnswer(ctx context.Context, p *Provider, address string) error {
	x, err := p.Start(ctx, Call{URL: address, Body: []byte("{}")})
	if err != nil {
		return err
	}
	defer x.Close()
	x.Alive()
	if _, err := io.Copy(io.Discard, x); err != nil {
		return x.Cut(err)
	}
	return x.Cut(nil)
}

// TestCancel_Connecting: a cancel ends a request whose connection is being
// made. The connection itself may be finished for the next request, which is
// what net/http does; nothing was sent on it.
func TestCancel_Connecting(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a server of this test
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := Provider{ProviderConfig: ProviderConfig{Name: "p"}, Client: NewClient(HTTPConfig{})}
	defer p.Client.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- readAnswer(ctx, &p, "https://"+l.Addr().String()) }()
	conn, err := l.Accept() // which never answers the handshake
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	cancel(domain.CancelledByClient)
	select {
	case err := <-ended:
		if !errors.Is(err, domain.CancelledByClient) {
			t.Errorf("it ended with %v", err)
		}
		t.Logf("the exchange ended after %s", time.Since(at))
	case <-time.After(hangLimit):
		t.Error("the cancel did not end the request")
	}
	_ = conn.Close()
}

// TestRetries_Bounded: however many layers could try again, a request is sent
// once and as often again as configured, also when connections break.
func TestRetries_Bounded(t *testing.T) {
	var accepted atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		accepted.Add(1)
		panic(http.ErrAbortHandler)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	p := Provider{ProviderConfig: ProviderConfig{Name: "p"}, Client: NewClient(HTTPConfig{})}
	defer p.Client.Close()
	const retries = 1
	var last error
	for _, err := range Stream(t.Context(), retries, func(ctx context.Context, _ Emit) error { return readAnswer(ctx, &p, server.URL) }) {
		last = err
	}
	if !domain.HasCode(last, domain.Unavailable) || strings.Contains(last.Error(), server.URL) || accepted.Load() != retries+1 {
		t.Errorf("%d requests, %v", accepted.Load(), last)
	}
}
