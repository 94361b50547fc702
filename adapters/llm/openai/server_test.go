package openai

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// canary is the key of the tests. It has the shape of no real one, so only
// the redaction by value can find it.
const canary = "canary0123456789abcdef"

// pipes is a network in memory: a listener whose connections are net.Pipe, so
// that a synctest bubble can see all of it.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

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

// serve runs a handler on a network in memory until the case ends, and
// returns a provider that reaches it.
func serve(t porttest.TB, h http.Handler) llm.Provider {
	t.Helper()
	network := newPipes()
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
	return llm.Provider{Client: client, ProviderConfig: llm.ProviderConfig{
		Name: "fake", Type: "openai-chat", BaseURL: "http://fake.invalid/v1", MaxRetries: 2,
		APIKey: func() (string, error) { return canary, nil },
	}}
}

func open(t porttest.TB, p llm.Provider) *Model {
	t.Helper()
	m, err := New(p, domain.ModelInfo{
		Ref: domain.ModelRef{Provider: "fake", Model: "fake-1"}, Title: "fake", Tools: true, Images: true,
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return m
}

// dialect is how a fake server writes events.
type dialect struct {
	newline   string // "" is LF
	tight     bool   // no space after the colon
	bom       bool
	comments  bool
	noIndex   bool
	noDone    bool
	lastBare  bool // the end mark without a blank line
	emptyIDs  bool // later fragments repeat id and name as ""
	noUsage   bool
	reasoning string // the field of thoughts; "" is reasoning_content
	extra     bool   // fields that nobody asked for
	pretty    bool   // events over several data lines
}

// fakeServer plays replies in the dialect of chat completions.
type fakeServer struct {
	dialect  dialect
	replies  []porttest.Reply
	requests atomic.Int32
	running  atomic.Int32
	bodies   sync.Map // int -> string
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.running.Add(1)
	defer s.running.Add(-1)
	n := int(s.requests.Add(1))
	data, _ := io.ReadAll(req.Body)
	s.bodies.Store(n, string(data))
	var in struct {
		Stream  bool   `json:"stream"`
		Model   string `json:"model"`
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	switch err := json.Unmarshal(data, &in); {
	case err != nil || !in.Stream || in.Model != "fake-1" || req.URL.Path != "/v1/chat/completions" || req.Method != http.MethodPost:
		http.Error(w, fmt.Sprintf("unexpected request %s %s: %v", req.Method, req.URL, err), http.StatusTeapot)
		return
	case req.Header.Get("Authorization") != "Bearer "+canary:
		http.Error(w, "unexpected key", http.StatusTeapot)
		return
	case n > len(s.replies):
		http.Error(w, "more requests than replies", http.StatusTeapot)
		return
	}
	e := &eventWriter{w: w, req: req, d: s.dialect, grain: s.replies[n-1].Grain}
	e.play(s.replies[n-1], in.Options.Usage)
}

// eventWriter writes the events of one answer.
type eventWriter struct {
	w     http.ResponseWriter
	req   *http.Request
	d     dialect
	grain int
}

func (e *eventWriter) send(s string) {
	step := e.grain
	if step == 0 {
		step = max(1, len(s))
	}
	for len(s) > 0 {
		n := min(step, len(s))
		_, _ = io.WriteString(e.w, s[:n])
		_ = http.NewResponseController(e.w).Flush()
		s = s[n:]
	}
}

// event writes one event with the line ends of the dialect.
func (e *eventWriter) event(data string) {
	nl, field := "\n", "data: "
	if e.d.newline != "" {
		nl = e.d.newline
	}
	if e.d.tight {
		field = "data:"
	}
	var b strings.Builder
	if e.d.comments {
		b.WriteString(": keep-alive" + nl + nl + "event: message" + nl + "id: 7" + nl + "retry: 10" + nl)
	}
	if e.d.pretty {
		data = strings.ReplaceAll(data, `,"choices"`, ",\n \"choices\"")
	}
	for line := range strings.SplitSeq(data, "\n") {
		b.WriteString(field + line + nl)
	}
	if !e.d.lastBare || data != "[DONE]" {
		b.WriteString(nl)
	}
	e.send(b.String())
}

func js(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func (e *eventWriter) head() string {
	s := `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fake-1","system_fingerprint":null`
	if e.d.extra {
		s += `,"provider":"x","prompt_filter_results":[{"a":{"b":[1,2.5e3,true,null]}}],"usage":null`
	}
	return s
}

// choice writes an event with a delta.
func (e *eventWriter) choice(delta string, finish string) {
	reason := "null"
	if finish != "" {
		reason = js(finish)
	}
	more := ""
	if e.d.extra {
		more = `,"logprobs":null,"native_finish_reason":null`
	}
	e.event(e.head() + `,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + more + `}]}`)
}

func (e *eventWriter) play(r porttest.Reply, usage bool) {
	if r.Refusal != nil {
		e.refuse(*r.Refusal)
		return
	}
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.w.WriteHeader(http.StatusOK)
	if e.d.bom {
		e.send("\uFEFF")
	}
	silentFromStart := r.End == porttest.EndSilent && len(r.Parts) == 0
	if !silentFromStart {
		e.choice(`{"role":"assistant","content":""}`, "")
	}
	index := 0
	for _, part := range r.Parts {
		switch part := part.(type) {
		case porttest.SendText:
			e.choice(`{"content":`+js(string(part))+`}`, "")
		case porttest.SendThought:
			field := e.d.reasoning
			if field == "" {
				field = "reasoning_content"
			}
			e.choice(`{"content":null,"`+field+`":`+js(string(part))+`}`, "")
		case porttest.Wait:
			select {
			case <-time.After(time.Duration(part)):
			case <-e.req.Context().Done():
			}
		case porttest.SendCall:
			e.call(part, index)
			index++
		}
	}
	e.end(r, index > 0, usage)
}

// call writes a call as fragments. Pieces are cut between characters, as
// servers do that cut decoded text.
func (e *eventWriter) call(c porttest.SendCall, index int) {
	runes := []rune(c.Args)
	pieces := max(1, c.Pieces)
	for i := range pieces {
		piece := string(runes[len(runes)*i/pieces : len(runes)*(i+1)/pieces])
		f := map[string]any{"function": map[string]any{"arguments": piece}}
		switch {
		case i == 0:
			f["type"], f["function"] = "function", map[string]any{"name": c.Name, "arguments": piece}
			if c.ID != "" {
				f["id"] = c.ID
			}
		case e.d.emptyIDs:
			f["id"], f["function"] = "", map[string]any{"name": "", "arguments": piece}
		case e.d.noIndex && c.ID != "":
			f["id"] = c.ID
		}
		if !e.d.noIndex {
			f["index"] = index
		}
		e.choice(`{"tool_calls":[`+js(f)+`]}`, "")
	}
}

func (e *eventWriter) end(r porttest.Reply, called, usage bool) {
	switch r.End {
	case porttest.EndComplete:
		if called {
			e.close("tool_calls", r.Usage, usage)
		} else {
			e.close("stop", r.Usage, usage)
		}
	case porttest.EndLength:
		e.close("length", r.Usage, usage)
	case porttest.EndRefusal:
		e.close("content_filter", r.Usage, usage)
	case porttest.EndCut:
	case porttest.EndBroken:
		panic(http.ErrAbortHandler)
	case porttest.EndSilent:
		_ = http.NewResponseController(e.w).Flush()
		<-e.req.Context().Done()
	case porttest.EndMalformed:
		e.event(`{"choices":[{"delta":{"content":"lost`)
	case porttest.EndError:
		e.event(`{"error":` + errorObject(r.Fault) + `,"choices":[]}`)
	}
}

func (e *eventWriter) close(reason string, u domain.Usage, usage bool) {
	e.choice(`{}`, reason)
	if usage && u != (domain.Usage{}) && !e.d.noUsage {
		e.event(fmt.Sprintf(`%s,"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
			`"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}}`,
			strings.Replace(e.head(), `,"usage":null`, "", 1), u.Input, u.Output, u.Input+u.Output, u.CachedRead, u.Thought))
	}
	if !e.d.noDone {
		e.event("[DONE]")
	}
}

func errorObject(r porttest.Refusal) string {
	kinds := map[porttest.RefusalKind][2]string{
		porttest.KeyRefused: {"invalid_request_error", "invalid_api_key"}, porttest.Forbidden: {"permission_error", ""},
		porttest.BadRequest: {"invalid_request_error", ""}, porttest.NoSuchModel: {"invalid_request_error", "model_not_found"},
		porttest.TooLong: {"invalid_request_error", "context_length_exceeded"}, porttest.TooManyTokens: {"tokens", ""},
		porttest.LimitedRate: {"requests", "rate_limit_exceeded"}, porttest.SpentQuota: {"insufficient_quota", "insufficient_quota"},
	}
	kind, ok := kinds[r.Kind]
	if !ok {
		kind = [2]string{"server_error", ""}
	}
	object := map[string]any{"message": r.Words, "type": kind[0], "param": nil, "code": nil, "status": r.Kind.Status()}
	if kind[1] != "" {
		object["code"] = kind[1]
	}
	return js(object)
}

func (e *eventWriter) refuse(r porttest.Refusal) {
	e.w.Header().Set("Content-Type", "application/json")
	if r.RetryAfter != "" {
		e.w.Header().Set("Retry-After", r.RetryAfter)
	}
	e.w.WriteHeader(r.Kind.Status())
	if r.Stall {
		e.send(`{"error":{"mess`)
		<-e.req.Context().Done()
		return
	}
	e.send(`{"error":` + errorObject(r) + `}`)
}

// update rewrites golden files.
var update = flag.Bool("update", false, "rewrite golden files")
