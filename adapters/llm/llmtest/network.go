package llmtest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// Dialect is a provider type with its fake server, for tests that go through
// all of them.
type Dialect struct {
	Name  string // for people, such as "Anthropic"
	Type  string // key of the opener
	Path  string // what the base URL has behind the host, such as "/v1"
	Model string // the one model the server has
	// New returns a server without replies.
	New func() *Server
	// Idle is how long a running answer may be silent, with a provider of the
	// usual settings; 0 is llm.DefaultIdle.
	Idle time.Duration
	// NoThoughtCount and NoCacheCount are as in porttest.ModelHarness.
	NoThoughtCount, NoCacheCount bool
	// Opener is the adapter under test.
	Opener llm.Opener
}

// Provider returns the settings of a provider of the dialect at a host, such
// as "http://127.0.0.1:8080".
func (d Dialect) Provider(name, host string) llm.ProviderConfig {
	return llm.ProviderConfig{
		Name: name, Type: d.Type, BaseURL: host + d.Path,
		APIKey: func() (string, error) { return Canary, nil },
	}
}

// pipes is a listener whose connections are net.Pipe, so that a synctest
// bubble can see all of the network.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Host is the address of what Connect serves.
const Host = "http://fake.invalid"

// Connect runs a handler at Host on a network in memory until the case ends,
// and returns the client that reaches it.
func Connect(t porttest.TB, h http.Handler) *llm.Client {
	t.Helper()
	network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(network) })
	client := llm.NewClient(llm.HTTPConfig{Transport: &http.Transport{DialContext: network.dial, DisableCompression: true}})
	t.Cleanup(func() {
		client.Close()
		_ = server.Close()
		_ = network.Close()
		done.Wait()
	})
	return client
}
