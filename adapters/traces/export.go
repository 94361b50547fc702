package traces

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxWaiting bounds the spans that wait; those that come after it are
	// dropped and counted.
	maxWaiting = 4096
	// maxBatch is how many are sent at once, and batchTime how long one waits
	// for others.
	maxBatch  = 512
	batchTime = 3 * time.Second
	// requestTime bounds one request, attempts how often a batch is sent.
	requestTime = 10 * time.Second
	attempts    = 4
	// maxPause is the longest wait between two attempts that is kept to.
	maxPause = 30 * time.Second
)

// exporter sends spans.
type exporter struct {
	cfg     *Config
	mu      sync.Mutex
	waiting []span
	started bool
	closed  bool
	more    chan struct{}   // has room for one: there is a full batch
	stop    chan struct{}   // closed by Close
	done    chan struct{}   // closed when nothing runs any more
	ctx     context.Context //nolint:containedctx // of the sending, which Close cuts short
	cancel  context.CancelFunc
	silent  bool // the trouble was told
}

func (e *exporter) init(cfg *Config) {
	e.cfg, e.more, e.stop, e.done = cfg, make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	e.ctx, e.cancel = context.WithCancel(context.Background())
}

// enqueue hands a span over. It never waits. The first one starts the sending.
func (e *exporter) enqueue(s span) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || len(e.waiting) >= maxWaiting {
		e.count("dropped", 1)
		return
	}
	e.waiting = append(e.waiting, s)
	if !e.started {
		e.started = true
		go e.run() // ends with Close, which joins it
	}
	if len(e.waiting) >= maxBatch {
		select {
		case e.more <- struct{}{}:
		default:
		}
	}
}

// Close sends what waits and returns when that is done, or with the context,
// at which the rest is dropped.
func (e *exporter) Close(ctx context.Context) error {
	e.mu.Lock()
	if !e.closed {
		e.closed = true
		close(e.stop)
	}
	started := e.started
	e.mu.Unlock()
	defer e.cancel()
	if !started {
		return nil
	}
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
		e.cancel()
		<-e.done
		return context.Cause(ctx)
	}
}

// run sends batches until Close.
func (e *exporter) run() {
	defer close(e.done)
	tick := time.NewTicker(batchTime)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-e.more:
		case <-e.stop:
			over = true
		}
		for batch := e.take(); len(batch) > 0; batch = e.take() {
			e.send(batch)
		}
	}
}

// take returns the next batch.
func (e *exporter) take() []span {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.waiting), maxBatch)
	batch := e.waiting[:n:n]
	e.waiting = append([]span(nil), e.waiting[n:]...)
	return batch
}

// send sends a batch, again when the collector asks for that or cannot be
// reached.
func (e *exporter) send(batch []span) {
	body, err := json.Marshal(e.request(batch))
	pause := time.Second
	for n := 1; err == nil; n++ {
		var again bool
		var after time.Duration
		var refused *refusal
		again, after, err = e.post(body)
		if errors.As(err, &refused) {
			refused.spans = min(refused.spans, len(batch))
			if taken := len(batch) - refused.spans; taken > 0 {
				e.count("exported", taken)
			}
			batch = batch[:refused.spans]
		}
		if err == nil {
			e.silent = false
			e.count("exported", len(batch))
			return
		}
		if !again || n == attempts || e.ctx.Err() != nil {
			break
		}
		err = e.wait(max(pause, after), err)
		pause *= 2
	}
	e.count("dropped", len(batch))
	if !e.silent && e.cfg.Trouble != nil {
		e.silent = true
		e.cfg.Trouble(err)
	}
}

// wait waits before another attempt. It returns why there is none, or nil.
func (e *exporter) wait(d time.Duration, last error) error {
	timer := time.NewTimer(min(d, maxPause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-e.stop: // nobody waits for a collector that is not there
		return last
	case <-e.ctx.Done():
		return last
	}
}

// post sends a body once. again tells whether another attempt makes sense.
func (e *exporter) post(body []byte) (again bool, after time.Duration, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.address(), bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("the address of the collector is none")
	}
	req.Header.Set("Content-Type", "application/json")
	if e.cfg.UserAgent != "" {
		req.Header.Set("User-Agent", e.cfg.UserAgent)
	}
	if e.cfg.Header != nil {
		name, value, err := e.cfg.Header()
		if err != nil {
			return false, 0, err
		}
		if name != "" {
			req.Header.Set(name, value)
		}
	}
	client, err := e.cfg.Client()
	if err != nil {
		return false, 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return true, 0, fmt.Errorf("the collector cannot be reached: %w", err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // to its end, so that the connection is kept
	switch resp.StatusCode {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		return false, 0, partly(answer)
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return true, time.Duration(max(seconds, 0)) * time.Second, fmt.Errorf("the collector answers %s", resp.Status)
	}
	return false, 0, fmt.Errorf("the collector answers %s", resp.Status)
}

// refusal is a collector that took a batch but for some spans. They are not sent
// again.
type refusal struct {
	spans int
	why   string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the collector refused %d spans: %s", r.spans, r.why)
}

// partly returns a *refusal when an answer says that spans were refused. One
// that cannot be read says nothing.
func partly(answer []byte) error {
	var told struct {
		Partial struct {
			Rejected json.Number `json:"rejectedSpans"` // a number, or one in quotes
			Message  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if err := json.Unmarshal(answer, &told); err != nil {
		return nil //nolint:nilerr // the batch was taken all the same
	}
	n, err := strconv.Atoi(strings.Trim(told.Partial.Rejected.String(), `"`))
	if err != nil || n <= 0 {
		return nil //nolint:nilerr // as above
	}
	why := told.Partial.Message
	if len(why) > maxWhy {
		why = strings.ToValidUTF8(why[:maxWhy], "") + "…"
	}
	return &refusal{n, why}
}

// maxWhy is how much of a collector's own words is told, in bytes.
const maxWhy = 200

// address is where traces go.
func (e *exporter) address() string {
	const path = "/v1/traces"
	base := strings.TrimRight(e.cfg.Endpoint, "/")
	if strings.HasSuffix(base, path) {
		return base
	}
	return base + path
}

func (e *exporter) count(outcome string, n int) {
	if e.cfg.Sent != nil {
		e.cfg.Sent(outcome, n)
	}
}

// The envelope of OTLP.
type (
	exportRequest struct {
		Resources []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource resource     `json:"resource"`
		Scopes   []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []attribute `json:"attributes"`
	}
	scopeSpans struct {
		Scope scope  `json:"scope"`
		Spans []span `json:"spans"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
)

func (e *exporter) request(batch []span) exportRequest {
	var who span
	who.text("service.name", e.cfg.Service)
	who.text("service.version", e.cfg.Version)
	who.text("service.instance.id", e.cfg.Instance)
	return exportRequest{[]resourceSpans{{
		Resource: resource{who.Attributes},
		Scopes:   []scopeSpans{{Scope: scope{"github.com/berth-dev/berth", e.cfg.Version}, Spans: batch}},
	}}}
}

func hexed(id []byte) string { return hex.EncodeToString(id) }
