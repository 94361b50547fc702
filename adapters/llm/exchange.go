package llm

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Call is one request to a provider.
type Call struct {
	URL  string
	Body []byte // JSON
	// Authorize puts the key where the provider wants it. It is not called
	// when there is no key.
	Authorize func(h http.Header, key string)
	// Sign, when not nil, is called in place of Authorize, with all headers
	// set: for a key that signs a request instead of travelling with it. Now is
	// the time of the request. Its error, which is coded, is that of the
	// exchange.
	Sign func(req *http.Request, body []byte, key string, now time.Time) error
	// Secrets, when not nil, returns the parts of a key that are secrets by
	// themselves.
	Secrets func(key string) []string
	// Patience, when longer than HTTPConfig.Idle, is how long a running answer
	// may be silent: some servers say nothing while they collect a call.
	Patience time.Duration
	// Accept is the type of answer that is asked for; "" is events or JSON.
	Accept string
	// Headers are sent besides the usual ones. Configured headers are over them.
	Headers map[string]string
	// Public are values of the body that may be quoted in an error, such as
	// the model's name. All else of the body is cut out of what a provider
	// says.
	Public []string

	get bool // a document is asked for, see Fetch; there is no body
}

// Exchange is one answer under way. It is read on one goroutine and closed
// exactly once; Close returns when the connection is given up or given back.
type Exchange struct {
	provider *Provider
	body     io.ReadCloser
	status   int
	header   http.Header
	ctx      context.Context
	cancel   context.CancelCauseFunc
	watch    watch
	idle     time.Duration // the silence that is allowed once it has begun
	begun    bool          // the provider has given a sign of life
	redact   redactor
	keyless  bool // no key was sent, nor a header in its place
}

// errSilent ends an exchange whose provider said nothing for too long.
var errSilent = errors.New("the provider was silent for too long")

// Start sends the request and returns the answer once its head is there. All
// errors are *Failure: what a refusal means is already decided.
func (p *Provider) Start(ctx context.Context, call Call) (*Exchange, error) {
	key, err := p.key()
	if err != nil {
		return nil, final(err)
	}
	client, err := p.Client.client()
	if err != nil {
		return nil, final(domain.Errorf(domain.InvalidArgument, "providers.%s.ca_file %w; put the authority's certificate there, in PEM form", p.Name, err))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	x := &Exchange{provider: p, ctx: ctx, cancel: cancel, keyless: key == "" && !p.authorized()}
	x.idle = max(p.Client.cfg.Idle, call.Patience)
	x.redact = newRedactor(p, call, key)
	x.watch = newWatch(p.FirstByte(), func() { cancel(errSilent) })
	req, err := p.request(ctx, call, key)
	if err != nil {
		cancel(nil)
		return nil, final(err)
	}
	x.watch.wait()
	resp, err := client.Do(req)
	x.watch.done()
	if err != nil {
		defer cancel(nil)
		return nil, x.unreachable(err)
	}
	x.body, x.status, x.header = resp.Body, resp.StatusCode, resp.Header
	if err := x.check(); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

func (p *Provider) request(ctx context.Context, call Call, key string) (*http.Request, error) {
	method, content, accept := http.MethodPost, io.Reader(bytes.NewReader(call.Body)), "text/event-stream, application/json"
	if call.get {
		method, content, accept = http.MethodGet, nil, "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, call.URL, content)
	if err != nil {
		return nil, domain.Errorf(domain.InvalidArgument, "providers.%s.base_url is not a URL that can be asked", p.Name)
	}
	if !call.get {
		req.Header.Set("Content-Type", "application/json")
	}
	if call.Accept != "" {
		accept = call.Accept
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("User-Agent", p.Client.cfg.UserAgent)
	for name, value := range call.Headers {
		req.Header.Set(name, value)
	}
	if key != "" && call.Authorize != nil {
		call.Authorize(req.Header, key)
	}
	for name, value := range p.Headers {
		req.Header.Set(name, value)
	}
	// A connection that was kept may be closed by the other side just as it is
	// used again. The name, without a value, is not sent: it tells the pool that
	// a request which got not one byte of an answer from such a connection may
	// be sent once more over another.
	req.Header["X-Idempotency-Key"] = nil
	if key != "" && call.Sign != nil && !p.authorized() {
		if err := call.Sign(req, call.Body, key, p.Client.cfg.Now()); err != nil {
			return nil, err
		}
	}
	return req, nil
}

// authorized reports whether a configured header takes the key's place.
func (p *Provider) authorized() bool {
	for name := range p.Headers {
		switch strings.ToLower(name) {
		case "authorization", "api-key", "x-api-key", "x-goog-api-key":
			return true
		}
	}
	return false
}

// check turns a refusal into its error.
func (x *Exchange) check() error {
	if x.status >= 200 && x.status < 300 {
		if enc := x.header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
			return x.broken("it sent a compressed answer that was not asked for")
		}
		return nil
	}
	x.watch.allow(errorBodyTimeout)
	// What was read before the limit is all there is to read; the status
	// decides.
	body, _ := io.ReadAll(io.LimitReader(x, errorBodyBytes))
	if err := context.Cause(x.ctx); err != nil && !errors.Is(err, errSilent) {
		return x.Cut(err)
	}
	return x.refuse(parseRefusal(x.status, x.header, body))
}

// Read reads the body, under the time limit of the moment.
func (x *Exchange) Read(p []byte) (int, error) {
	x.watch.wait()
	n, err := x.body.Read(p)
	x.watch.done()
	return n, err
}

// Alive notes a sign of life: the silence that is allowed begins anew.
func (x *Exchange) Alive() {
	x.begun = true
	x.watch.allow(x.idle)
}

// Within sets how long the exchange may go on being silent.
func (x *Exchange) Within(d time.Duration) { x.watch.allow(d) }

// Header returns a header of the answer.
func (x *Exchange) Header(name string) string { return x.header.Get(name) }

// Close ends the exchange. One that was read to its end leaves its connection
// for the next request; any other closes it.
func (x *Exchange) Close() {
	x.cancel(nil)
	x.watch.stop()
	// The body's own error tells nothing that the reader was not told.
	_ = x.body.Close()
}

// Drain reads what remains of an answer whose end was understood, so that the
// connection can be used again, but only as far as it arrives at once.
func (x *Exchange) Drain() {
	x.watch.allow(drainTimeout)
	var scratch [512]byte
	for range 8 {
		if _, err := x.Read(scratch[:]); err != nil {
			return
		}
	}
}

// drainTimeout is what keeping a connection is worth: about as much as
// opening a new one to a server nearby.
const drainTimeout = 2 * time.Millisecond

// watch limits how long an exchange may wait for its provider, counting only
// the time spent waiting: a slow reader of ours uses none of it up.
type watch struct {
	timer *time.Timer
	left  time.Duration
	since time.Time
}

func newWatch(limit time.Duration, fire func()) watch {
	w := watch{timer: time.AfterFunc(limit, fire), left: limit}
	w.timer.Stop()
	return w
}

func (w *watch) allow(d time.Duration) { w.left = d }

func (w *watch) wait() {
	w.since = time.Now()
	w.timer.Reset(w.left)
}

func (w *watch) done() {
	w.timer.Stop()
	w.left -= time.Since(w.since)
}

func (w *watch) stop() { w.timer.Stop() }

// bareURLError returns the cause of a url.Error, which would quote the whole
// URL with whatever it holds.
func bareURLError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
