package web

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

const public = "93.184.215.14"

// world is a web of one server that has every name and every address. What
// was looked up, dialled and asked for is written down.
type world struct {
	t       testing.TB
	cfg     Config
	limit   time.Duration
	plain   *httptest.Server
	secure  *httptest.Server
	handler http.HandlerFunc

	mu      sync.Mutex
	names   map[string][][]string // host to its answers, the last one for ever
	lookups []string
	dials   []string
	asked   []*http.Request
}

func newWorld(t testing.TB, handler http.HandlerFunc) *world {
	w := &world{t: t, handler: handler, names: map[string][][]string{}, limit: timeLimit}
	serve := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.asked = append(w.asked, r)
		w.mu.Unlock()
		w.handler(rw, r)
	})
	w.plain, w.secure = httptest.NewServer(serve), httptest.NewTLSServer(serve)
	t.Cleanup(w.plain.Close)
	t.Cleanup(w.secure.Close)
	roots := x509.NewCertPool()
	roots.AddCert(w.secure.Certificate())
	w.cfg = Config{UserAgent: "berth/test", RootCAs: roots, Resolve: w.resolve, Dial: w.dial}
	return w
}

func (w *world) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lookups = append(w.lookups, host)
	answers, ok := w.names[host]
	if !ok {
		answers = [][]string{{public}}
	}
	if len(answers) > 1 {
		w.names[host] = answers[1:]
	}
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var out []netip.Addr
	for _, a := range answers[0] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, ctx.Err()
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, address)
	w.mu.Unlock()
	to := w.secure.Listener.Addr().String()
	if strings.HasSuffix(address, ":80") {
		to = w.plain.Listener.Addr().String()
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

func (w *world) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

func (w *world) tool() ports.Tool {
	w.t.Helper()
	s := NewSource(w.cfg)
	s.limit = w.limit
	set, err := s.Open(w.t.Context(), domain.Session{ID: "s"}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = set.Close() })
	return set.Tools()[0]
}

func callOf(args map[string]any) domain.ToolCall {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return domain.ToolCall{Session: "s", Turn: "t", ID: "c", Name: toolName, Args: raw}
}

// fetch runs one call.
func (w *world) fetch(ctx context.Context, url string, more ...any) (domain.ToolResult, error) {
	w.t.Helper()
	args := map[string]any{"url": url}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	p, err := w.tool().Prepare(ctx, callOf(args))
	if err != nil {
		return domain.ToolResult{}, err
	}
	r, err := p.Run(ctx, func(domain.ToolProgress) {})
	return r, errors.Join(err, p.Close())
}

func (w *world) get(url string, more ...any) domain.ToolResult {
	w.t.Helper()
	r, err := w.fetch(w.t.Context(), url, more...)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// page answers with one body.
func page(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if kind != "" {
			w.Header().Set("Content-Type", kind)
		} else {
			w.Header()["Content-Type"] = nil
		}
		_, _ = w.Write([]byte(body))
	}
}

// inside is what stands between the two boundaries of a result.
func inside(text string) string {
	_, rest, _ := strings.Cut(text, " begins]]\n")
	i := strings.LastIndex(rest, "\n[[foreign ")
	if i < 0 {
		return ""
	}
	return rest[:i]
}
