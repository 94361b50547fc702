package streamhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/streamhttp"
	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/core/domain"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a step may take; only what hangs reaches it. In a
// bubble it is an hour of fake time.
const patience = 30 * time.Second

// pipes is a listener without a network, for bubbles.
type pipes struct {
	conns chan net.Conn
	over  chan struct{}
	close func()
}

func newPipes() *pipes {
	p := &pipes{conns: make(chan net.Conn), over: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.over) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close()
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case p.conns <- a:
		return b, nil
	case <-p.over:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// keys are two tokens, good until they are taken away.
type keys struct {
	mu   sync.Mutex
	good map[string]string
}

func (k *keys) Lookup(token string, _ bool) (ws.Principal, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name, ok := k.good[token]
	return ws.Principal{Name: name}, ok
}

const (
	annsToken = "ann-0123456789abcdef0123456789abcdef"
	bobsToken = "bob-0123456789abcdef0123456789abcdef"
)

// served is a connection as its server sees it.
type served struct {
	frames   jsonrpc.Frames
	peer     ws.Peer
	ctx      context.Context
	done     chan struct{} // closed by the test when it is over
	patience time.Duration
}

// rig is a gateway whose connections the test serves by hand.
type rig struct {
	t        testing.TB
	url      string
	http     *http.Client
	h        *streamhttp.Handler
	guard    *ws.Guard
	keys     *keys
	conns    chan *served
	patience time.Duration
}

func newRig(t testing.TB, options ...func(*streamhttp.Options)) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startRig(t, l, &http.Transport{}, options...)
}

// newBubble is a rig inside a synctest bubble: what is not read is not even
// in a socket's buffer.
func newBubble(t testing.TB, options ...func(*streamhttp.Options)) *rig {
	t.Helper()
	p := newPipes()
	r := startRig(t, p, &http.Transport{DialContext: p.dial}, options...)
	r.patience = time.Hour
	return r
}

func startRig(t testing.TB, l net.Listener, transport *http.Transport, options ...func(*streamhttp.Options)) *rig {
	t.Helper()
	r := &rig{t: t, patience: patience, conns: make(chan *served, 64), keys: &keys{good: map[string]string{annsToken: "ann", bobsToken: "bob"}}}
	var ids atomic.Int64
	opts := streamhttp.Options{
		Farewell: time.Millisecond, // the test ends its connections later
		NewID:    func() string { return fmt.Sprintf("c%d", ids.Add(1)) },
		Serve: func(ctx context.Context, frames jsonrpc.Frames, p ws.Peer) {
			s := &served{frames, p, ctx, make(chan struct{}), r.patience}
			select {
			case r.conns <- s:
			case <-ctx.Done():
				return
			}
			select {
			case <-s.done:
			case <-ctx.Done():
			}
		},
	}
	for _, o := range options {
		o(&opts)
	}
	r.h = streamhttp.NewHandler(opts)
	r.guard = ws.NewGuard(ws.GuardConfig{
		Keys: r.keys, Origins: []string{"https://page.example"}, MaxConnections: 8, MaxPerToken: 4,
		NewID: func() string { return "r" },
	})
	srv := &http.Server{Handler: r.h.Behind(r.guard), Protocols: new(http.Protocols), ErrorLog: log.New(io.Discard, "", 0)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(l) })
	r.url = "http://localhost/acp"
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		r.url = "http://" + a.String() + "/acp"
	}
	r.http = &http.Client{Transport: transport}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := r.h.Close(ctx, domain.ProcessEnding); err != nil {
			t.Errorf("the handler does not end: %v", err)
		}
		_ = srv.Close()
		serving.Wait()
		transport.CloseIdleConnections()
		if n := r.h.Count(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		if n := r.guard.Count(); n != 0 {
			t.Errorf("%d places of the guard are still taken", n)
		}
	})
	return r
}

// useHTTP2 has the client speak HTTP/2 without TLS from the start.
func (r *rig) useHTTP2() {
	t := r.http.Transport.(*http.Transport)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetUnencryptedHTTP2(true)
}

// answer is an HTTP answer without a stream.
type answer struct {
	status int
	body   string
	head   http.Header
}

// request makes a request; headers come as pairs.
func (r *rig) request(method, body string, headers ...string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+annsToken)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		case strings.HasPrefix(headers[i], "+"):
			req.Header.Add(headers[i][1:], headers[i+1])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	return req
}

func (r *rig) do(method, body string, headers ...string) answer {
	r.t.Helper()
	res, err := r.http.Do(r.request(method, body, headers...))
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{res.StatusCode, string(text), res.Header}
}

// post posts a message on a connection and wants it to be taken.
func (r *rig) post(id, session, body string) {
	r.t.Helper()
	if a := r.do(http.MethodPost, body, "Acp-Connection-Id", id, "Acp-Session-Id", session); a.status != http.StatusAccepted || a.body != "" {
		r.t.Fatalf("POST %s: %d %s", body, a.status, a.body)
	}
}

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`
	initialized = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`
)

// open opens a connection and returns its id and its server's end.
func (r *rig) open(headers ...string) (string, *served) {
	r.t.Helper()
	got := make(chan answer, 1)
	go func() { got <- r.do(http.MethodPost, initialize, headers...) }()
	s := r.serve()
	if frame := s.read(r.t); frame != initialize {
		r.t.Fatalf("the server read %s", frame)
	}
	s.write(r.t, initialized)
	a := <-got
	id := a.head.Get("Acp-Connection-Id")
	if a.status != http.StatusOK || a.body != initialized || id == "" || a.head.Get("Content-Type") != "application/json" {
		r.t.Fatalf("initialize: %d %s %v", a.status, a.body, a.head)
	}
	return id, s
}

func (r *rig) serve() *served {
	r.t.Helper()
	select {
	case s := <-r.conns:
		return s
	case <-time.After(patience):
		r.t.Fatal("no connection was served")
		return nil
	}
}

func (s *served) read(t testing.TB) string {
	t.Helper()
	frame, err := s.readEnd(t)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return frame
}

func (s *served) readEnd(t testing.TB) (string, error) {
	t.Helper()
	type read struct {
		frame []byte
		err   error
	}
	got := make(chan read, 1)
	go func() {
		frame, err := s.frames.Read()
		got <- read{frame, err}
	}()
	select {
	case r := <-got:
		return string(r.frame), r.err
	case <-time.After(s.patience):
		t.Fatal("Read hangs")
		return "", nil
	}
}

func (s *served) write(t testing.TB, frames ...string) {
	t.Helper()
	for _, frame := range frames {
		if err := s.frames.Write([]byte(frame)); err != nil {
			t.Fatalf("Write %s: %v", frame, err)
		}
	}
}

// sse is an open stream.
type sse struct {
	t        testing.TB
	body     io.Closer
	cancel   context.CancelFunc
	lines    chan string // closed at the end; nothing is read ahead but a buffer of 4 KiB
	last     string      // the last event's id
	patience time.Duration
	joined   sync.WaitGroup
}

// listen opens a stream and wants that to succeed.
func (r *rig) listen(id, session string, headers ...string) *sse {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.t.Context())
	req := r.request(http.MethodGet, "", append([]string{"Accept", "text/event-stream", "Acp-Connection-Id", id, "Acp-Session-Id", session}, headers...)...)
	res, err := r.http.Do(req.WithContext(ctx))
	if err != nil {
		cancel()
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		text, _ := io.ReadAll(res.Body)
		cancel()
		r.t.Fatalf("GET: %s %v %s", res.Status, res.Header, text)
	}
	s := &sse{t: r.t, body: res.Body, cancel: cancel, lines: make(chan string), patience: r.patience}
	s.joined.Go(func() {
		defer close(s.lines)
		in := bufio.NewReader(res.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line = strings.TrimSuffix(line, "\n"); line == "" {
				continue
			}
			select {
			case s.lines <- line:
			case <-ctx.Done():
				return
			}
		}
	})
	r.t.Cleanup(s.close)
	if got := s.line(); got != ":" {
		r.t.Fatalf("the stream began with %q", got)
	}
	return s
}

func (s *sse) close() {
	s.cancel()
	_ = s.body.Close()
	s.joined.Wait()
}

// line returns the next line that is not empty, or "end" at the end.
func (s *sse) line() string {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			return "end"
		}
		return line
	case <-time.After(s.patience):
		s.t.Fatal("nothing comes on the stream")
		return ""
	}
}

// next returns the next message, or "end".
func (s *sse) next() string {
	s.t.Helper()
	for {
		line := s.line()
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return data
		}
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			s.last = id
		}
		if line == "end" {
			return line
		}
	}
}

// want wants the next messages.
func (s *sse) want(frames ...string) {
	s.t.Helper()
	for _, want := range frames {
		if got := s.next(); got != want {
			s.t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// quiet wants that nothing has come.
func (s *sse) quiet() {
	s.t.Helper()
	select {
	case line, ok := <-s.lines:
		if line != "" || !ok {
			s.t.Fatalf("got %q (open: %v), want nothing", line, ok)
		}
	default:
	}
}

func update(session, text string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":"` + text + `"}}`
}

func call(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func result(id, r string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + r + `}` }

func repeat(n int) string { return string(bytes.Repeat([]byte{'x'}, n)) }
