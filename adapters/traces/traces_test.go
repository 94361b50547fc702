package traces

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/core/domain"
)

// collector is the far end, in memory: it answers as the test says and keeps
// what it took.
type collector struct {
	mu      sync.Mutex
	answers []int // statuses; 0 is a connection that breaks; none left is 200
	after   string
	says    string // what it answers; "" is {}
	hang    bool
	seen    []*http.Request
	spans   []map[string]any
	who     map[string]string
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.seen = append(c.seen, r)
	status, hang, says := http.StatusOK, c.hang, c.says
	if says == "" {
		says = "{}"
	}
	if len(c.answers) > 0 {
		status, c.answers = c.answers[0], c.answers[1:]
	}
	c.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	if status == http.StatusOK {
		c.take(body)
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: http.Header{"Retry-After": {c.after}}, Body: io.NopCloser(strings.NewReader(says))}, nil
}

func (c *collector) take(body []byte) {
	var got struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []map[string]any }
			ScopeSpans []struct{ Spans []map[string]any }
		}
	}
	if err := json.Unmarshal(body, &got); err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range got.ResourceSpans {
		c.who = flat(r.Resource.Attributes)
		for _, s := range r.ScopeSpans {
			c.spans = append(c.spans, s.Spans...)
		}
	}
}

func (c *collector) requests() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.seen) }

// flat writes attributes as texts by their keys.
func flat(list []map[string]any) map[string]string {
	out := map[string]string{}
	for _, a := range list {
		for _, v := range a["value"].(map[string]any) {
			if m, ok := v.(map[string]any); ok {
				v = m["values"].([]any)[0].(map[string]any)["stringValue"]
			}
			out[a["key"].(string)] = fmt.Sprint(v)
		}
	}
	return out
}

// find returns the span of a name.
func (c *collector) find(t *testing.T, name string) (span map[string]any, attributes map[string]string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s["name"] == name {
			var list []map[string]any
			for _, a := range s["attributes"].([]any) {
				list = append(list, a.(map[string]any))
			}
			return s, flat(list)
		}
	}
	t.Fatalf("there is no span %q in %v", name, c.spans)
	return nil, nil
}

// counting is a source of ids that are told apart easily.
type counting struct{ n byte }

func (c *counting) Read(p []byte) (int, error) {
	c.n += 2
	for i := range p {
		p[i] = c.n
	}
	return len(p), nil
}

func tracer(c *collector, change ...func(*Config)) *Tracer {
	cfg := Config{
		Endpoint: "http://collector:4318", Client: func() (*http.Client, error) { return &http.Client{Transport: c}, nil },
		Service: "berth", Version: "1", Instance: "i", Sample: 1, Clock: time.Now, Random: &counting{},
		Provider: func(name string) string { return "known." + name },
	}
	for _, f := range change {
		f(&cfg)
	}
	return New(cfg)
}

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// story is a turn with a fallback, a question, a failed call and an answer.
func story(t *Tracer, trace domain.Trace) {
	ref, other := domain.ModelRef{Provider: "p", Model: "one"}, domain.ModelRef{Provider: "q", Model: "two"}
	cost := domain.MicroUSD(20_000)
	ctx := context.Background()
	t.Observe(ctx, domain.TurnBegan{Session: "s", Turn: "t", Trace: trace, Prompt: []domain.Block{domain.Text{Text: "said by a person"}}})
	t.Observe(ctx, domain.StepDone{
		Session: "s", Turn: "t", Agent: "a", Asked: ref, Model: other, Duration: 2 * time.Second, FirstText: time.Second, Retries: 1, Cost: &cost,
		Usage: domain.Usage{Input: 10, Output: 5, CachedRead: 4, CachedWrite: 1, Thought: 2}, Finish: domain.FinishCalls,
	})
	t.Observe(ctx, domain.PermissionDone{Session: "s", Turn: "t", Call: "c", Tool: "shell", Asked: true, Outcome: domain.Selected, Option: "allow-once", Duration: time.Second})
	t.Observe(ctx, domain.PermissionDone{Session: "s", Turn: "t", Call: "c", Tool: "read_file", Verdict: domain.Allow}) // nobody was asked
	t.Observe(ctx, domain.CallDone{
		Session: "s", Turn: "t", Call: "c", Tool: "shell", Status: domain.CallFailed, Duration: 3 * time.Second, Args: []byte(`{"said":"by a model"}`), Result: "said by a tool",
	})
	t.Observe(ctx, domain.TurnDone{
		Session: "s", Turn: "t", Agent: "a", Stop: domain.StopEndTurn, Duration: 6 * time.Second, Requests: 1, Calls: 1, Usage: domain.Usage{Input: 10, Output: 5}, Text: "said in the end",
	})
	t.Observe(ctx, domain.StepDone{Turn: "t"}) // outlived its turn
}

func TestTracer_Story(t *testing.T) {
	c := &collector{}
	tr := tracer(c)
	story(tr, domain.Trace{Parent: parent, State: "vendor=1"})
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.spans) != 4 {
		t.Fatalf("%d spans", len(c.spans))
	}
	turn, about := c.find(t, "invoke_agent a")
	if turn["traceId"] != "0af7651916cd43dd8448eb211c80319c" || turn["parentSpanId"] != "b7ad6b7169203331" || turn["traceState"] != "vendor=1" || turn["kind"] != float64(kindServer) {
		t.Errorf("the turn does not hang on the client's trace: %v", turn)
	}
	if diff := cmp.Diff(map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "gen_ai.conversation.id": "s", "berth.turn.id": "t", "berth.stop_reason": "end_turn",
		"gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "5", "berth.model_requests": "1", "berth.tool_calls": "1",
	}, about); diff != "" {
		t.Errorf("the turn (-want +got):\n%s", diff)
	}
	step, about := c.find(t, "chat one")
	if diff := cmp.Diff(map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "known.q", "gen_ai.request.model": "one", "gen_ai.response.model": "two", "gen_ai.conversation.id": "s",
		"gen_ai.agent.name": "a", "berth.provider": "q", "berth.fallback_of": "p/one", "gen_ai.response.finish_reasons": "tool_calls",
		"gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "5", "gen_ai.usage.cache_read.input_tokens": "4", "gen_ai.usage.cache_creation.input_tokens": "1",
		"gen_ai.usage.reasoning.output_tokens": "2", "berth.retries": "1", "berth.cost_dollars": "0.02", "gen_ai.response.time_to_first_chunk": "1",
	}, about); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	call, about := c.find(t, "execute_tool shell")
	if diff := cmp.Diff(map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "shell", "gen_ai.tool.call.id": "c", "gen_ai.tool.type": "function", "gen_ai.conversation.id": "s",
		"berth.status": "failed", "error.type": "tool_failed",
	}, about); diff != "" {
		t.Errorf("the call (-want +got):\n%s", diff)
	}
	asked, about := c.find(t, "ask_permission shell")
	if about["berth.permission.outcome"] != "selected" || about["berth.permission.option"] != "allow-once" {
		t.Errorf("the question: %v", about)
	}
	for _, s := range []struct{ child, parent map[string]any }{{step, turn}, {call, turn}, {asked, call}} {
		if s.child["parentSpanId"] != s.parent["spanId"] || s.child["traceId"] != turn["traceId"] {
			t.Errorf("%v does not hang on %v", s.child, s.parent)
		}
	}
	if step["startTimeUnixNano"].(string) >= step["endTimeUnixNano"].(string) {
		t.Errorf("the request took no time: %v", step)
	}
	if diff := cmp.Diff(map[string]string{"service.name": "berth", "service.version": "1", "service.instance.id": "i"}, c.who); diff != "" {
		t.Errorf("who (-want +got):\n%s", diff)
	}
	if r := c.seen[0]; r.URL.String() != "http://collector:4318/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("sent to %s as %v", r.URL, r.Header)
	}
}

// What was said is in a span only when that was asked for.
func TestTracer_Content(t *testing.T) {
	for _, asked := range []bool{false, true} {
		t.Run(fmt.Sprint(asked), func(t *testing.T) {
			c := &collector{}
			tr := tracer(c, func(cfg *Config) { cfg.Content = asked })
			story(tr, domain.Trace{})
			if err := tr.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			all, err := json.Marshal(c.spans)
			if err != nil {
				t.Fatal(err)
			}
			for _, words := range []string{"said by a person", "by a model", "said by a tool", "said in the end"} {
				if strings.Contains(string(all), words) != asked {
					t.Errorf("%q: %s", words, all)
				}
			}
			if !asked {
				return
			}
			_, turn := c.find(t, "invoke_agent a")
			if got, want := turn["gen_ai.input.messages"], `[{"role":"user","parts":[{"type":"text","content":"said by a person"}]}]`; got != want {
				t.Errorf("input is %s, want %s", got, want)
			}
			if got, want := turn["gen_ai.output.messages"], `[{"role":"assistant","parts":[{"type":"text","content":"said in the end"}],"finish_reason":"end_turn"}]`; got != want {
				t.Errorf("output is %s, want %s", got, want)
			}
		})
	}
}

func TestTracer_Failures(t *testing.T) {
	for _, tt := range []struct {
		name          string
		done          domain.TurnDone
		kind, message string
		bad           bool
	}{
		{"coded", domain.TurnDone{Err: domain.WrapError(domain.RateLimited, errors.New("hidden"), "Wait a while")}, "rate_limited", "Wait a while", true},
		{"not foreseen", domain.TurnDone{Err: errors.New("hidden")}, "internal", "", true},
		{"cancelled", domain.TurnDone{Stop: domain.StopCancelled, Cause: domain.CancelledByClient}, "cancelled", "", false},
		{"well", domain.TurnDone{Stop: domain.StopEndTurn}, "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &collector{}
			tr := tracer(c)
			tr.Observe(t.Context(), domain.TurnBegan{Turn: "t"})
			tt.done.Turn, tt.done.Agent = "t", "a"
			tr.Observe(t.Context(), tt.done)
			if err := tr.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			s, about := c.find(t, "invoke_agent a")
			st, bad := s["status"].(map[string]any)
			msg, _ := st["message"].(string)
			if about["error.type"] != tt.kind || bad != tt.bad || msg != tt.message {
				t.Errorf("error.type %q, status %v", about["error.type"], s["status"])
			}
		})
	}
}

func TestParseParent(t *testing.T) {
	for _, tt := range []struct {
		name, text  string
		ok, sampled bool
	}{
		{"sampled", parent, true, true},
		{"not sampled", parent[:53] + "00", true, false},
		{"other flags", parent[:53] + "02", true, false},
		{"a later version", "cc" + parent[2:] + "-what-is-to-come", true, true},
		{"a later version that goes on", "cc" + parent[2:] + "x", false, false},
		{"version ff", "ff" + parent[2:], false, false},
		{"too long", parent + "-", false, false},
		{"too short", parent[:54], false, false},
		{"empty", "", false, false},
		{"no trace", "00-" + strings.Repeat("0", 32) + parent[35:], false, false},
		{"no span", parent[:36] + strings.Repeat("0", 16) + "-01", false, false},
		{"upper case", strings.ToUpper(parent), false, false},
		{"no hexadecimal", strings.Replace(parent, "a", "g", 1), false, false},
		{"other hyphens", strings.ReplaceAll(parent, "-", "_"), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			trace, span, sampled, ok := parseParent(tt.text)
			if ok != tt.ok || sampled != tt.sampled || ok == (trace == [16]byte{}) || ok == (span == [8]byte{}) {
				t.Errorf("%x %x %v %v", trace, span, sampled, ok)
			}
		})
	}
	if got := cleanState("a=1\nb"); got != "" {
		t.Errorf("a state with a line end became %q", got)
	}
	if got := cleanState(strings.Repeat("a", maxState+1)); got != "" {
		t.Errorf("a long state became %d bytes", len(got))
	}
}

// The client decides whether its turns are traced; for others the share does.
func TestTracer_Sampling(t *testing.T) {
	for _, tt := range []struct {
		name   string
		share  float64
		parent string
		want   int // spans of 200 turns, at least and at most by 60
		most   int
	}{
		{"all", 1, "", 200, 200}, {"none", 0, "", 0, 0}, {"half", 0.5, "", 60, 140},
		{"the client wants it", 0, parent, 200, 200}, {"the client does not", 1, parent[:53] + "00", 0, 0}, {"what the client sent is none", 0, "nonsense", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &collector{}
			var seed uint64
			tr := tracer(c, func(cfg *Config) {
				cfg.Sample = tt.share
				cfg.Random = reader(func(p []byte) {
					for i := range p {
						seed = seed*6364136223846793005 + 1442695040888963407
						p[i] = byte(seed >> 56)
					}
				})
			})
			for i := range 200 {
				id := domain.TurnID(fmt.Sprint(i))
				tr.Observe(t.Context(), domain.TurnBegan{Turn: id, Trace: domain.Trace{Parent: tt.parent}})
				tr.Observe(t.Context(), domain.TurnDone{Turn: id, Stop: domain.StopEndTurn})
			}
			if err := tr.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := len(c.spans); n < tt.want || n > tt.most {
				t.Errorf("%d spans, want %d to %d", n, tt.want, tt.most)
			}
			if len(tr.turns) > 0 {
				t.Errorf("%d turns are kept", len(tr.turns))
			}
		})
	}
}

type reader func([]byte)

func (r reader) Read(p []byte) (int, error) { r(p); return len(p), nil }

// one sends the span of one turn.
func one(t *Tracer, id domain.TurnID) {
	t.Observe(context.Background(), domain.TurnBegan{Turn: id})
	t.Observe(context.Background(), domain.TurnDone{Turn: id, Stop: domain.StopEndTurn})
}

// What a collector answers, and what is done about it.
func TestExport_Answers(t *testing.T) {
	for _, tt := range []struct {
		name     string
		answers  []int
		after    string
		requests int
		sent     map[string]int
		took     time.Duration
		trouble  string
	}{
		{"taken", []int{200}, "", 1, map[string]int{"exported": 1}, 0, ""},
		{"busy, then taken", []int{503, 200}, "", 2, map[string]int{"exported": 1}, time.Second, ""},
		{"it says when", []int{429, 200}, "7", 2, map[string]int{"exported": 1}, 7 * time.Second, ""},
		{"it says much later", []int{429, 200}, "4000", 2, map[string]int{"exported": 1}, maxPause, ""},
		{"not there, then taken", []int{0, 0, 200}, "", 3, map[string]int{"exported": 1}, 3 * time.Second, ""},
		{"never there", []int{0, 0, 0, 0}, "", 4, map[string]int{"dropped": 1}, 7 * time.Second, "cannot be reached"},
		{"refused", []int{401}, "", 1, map[string]int{"dropped": 1}, 0, "answers 401"},
		{"sent elsewhere", []int{302}, "", 1, map[string]int{"dropped": 1}, 0, "answers 302"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &collector{answers: tt.answers, after: tt.after}
				sent, trouble := map[string]int{}, ""
				ended := make(chan time.Time, 1)
				tr := tracer(c, func(cfg *Config) {
					cfg.Sent = func(outcome string, n int) { sent[outcome] += n; ended <- time.Now() }
					cfg.Trouble = func(err error) { trouble = err.Error() }
				})
				start := time.Now()
				one(tr, "t")
				if took := (<-ended).Sub(start) - batchTime; took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				if err := tr.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c.requests() != tt.requests || !cmp.Equal(sent, tt.sent) {
					t.Errorf("%d requests, %v", c.requests(), sent)
				}
				if (trouble == "") != (tt.trouble == "") || !strings.Contains(trouble, tt.trouble) {
					t.Errorf("trouble %q, want %q", trouble, tt.trouble)
				}
			})
		})
	}
}

// A collector that takes a batch but for some spans: those are dropped, the rest
// is not, and nothing is sent again.
func TestExport_TakenInPart(t *testing.T) {
	for _, tt := range []struct {
		says    string
		sent    map[string]int
		trouble string
	}{
		{`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}`, map[string]int{"exported": 1, "dropped": 2}, "the collector refused 2 spans: too old"},
		{
			`{"partialSuccess":{"rejectedSpans":"2","errorMessage":"x` + strings.Repeat("é", maxWhy) + `"}}`,
			map[string]int{"exported": 1, "dropped": 2}, "refused 2 spans: x" + strings.Repeat("é", (maxWhy-1)/2) + "…",
		},
		{`{"partialSuccess":{"rejectedSpans":2}}`, map[string]int{"exported": 1, "dropped": 2}, "refused 2 spans"},
		{`{"partialSuccess":{"rejectedSpans":"9"}}`, map[string]int{"dropped": 3}, "refused 3 spans"},
		{`{"partialSuccess":{"rejectedSpans":"0","errorMessage":"look here"}}`, map[string]int{"exported": 3}, ""},
		{`{"partialSuccess":{}}`, map[string]int{"exported": 3}, ""},
		{`{"partialSuccess":7}`, map[string]int{"exported": 3}, ""},
		{`thanks`, map[string]int{"exported": 3}, ""},
	} {
		c, sent, trouble := &collector{says: tt.says}, map[string]int{}, ""
		tr := tracer(c, func(cfg *Config) {
			cfg.UserAgent = "berth/1"
			cfg.Sent = func(outcome string, n int) { sent[outcome] += n }
			cfg.Trouble = func(err error) { trouble = err.Error() }
		})
		for i := range 3 {
			one(tr, domain.TurnID(fmt.Sprint(i)))
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.requests() != 1 || !cmp.Equal(sent, tt.sent) || (trouble == "") != (tt.trouble == "") || !strings.Contains(trouble, tt.trouble) {
			t.Errorf("%s: %d requests, %v, %q; want %v, %q", tt.says, c.requests(), sent, trouble, tt.sent, tt.trouble)
		}
		if got := c.seen[0].Header.Get("User-Agent"); got != "berth/1" {
			t.Errorf("it calls itself %q", got)
		}
	}
}

// Nothing runs before there is a span, and a collector that is not there is
// told of once.
func TestExport_QuietWithoutNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answers: slices.Repeat([]int{400}, 10)}
		troubles := 0
		tr := tracer(c, func(cfg *Config) { cfg.Trouble = func(error) { troubles++ } })
		tr.Observe(t.Context(), domain.SessionOpened{Session: "s", How: "new"})
		time.Sleep(time.Hour)
		if c.requests() != 0 || tr.started {
			t.Error("something was started")
		}
		for i := range 5 {
			one(tr, domain.TurnID(fmt.Sprint(i)))
			time.Sleep(time.Minute)
		}
		if c.requests() != 5 || troubles != 1 {
			t.Errorf("%d requests, told %d times", c.requests(), troubles)
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := tracer(c).Close(t.Context()); err != nil { // nothing was started
			t.Error(err)
		}
	})
}

// Spans go in batches, and who reports never waits for a collector that hangs:
// what is too much is dropped, and so is the rest when the process ends.
func TestExport_ACollectorThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{hang: true}
		var mu sync.Mutex
		sent := map[string]int{}
		tr := tracer(c, func(cfg *Config) {
			cfg.Sent = func(outcome string, n int) { mu.Lock(); defer mu.Unlock(); sent[outcome] += n }
		})
		start := time.Now()
		const n = 2 * maxWaiting
		for i := range n {
			one(tr, domain.TurnID(fmt.Sprint(i)))
		}
		if time.Since(start) > 0 {
			t.Error("it waited")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := tr.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("closed with %v", err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		mu.Lock()
		defer mu.Unlock()
		if sent["dropped"] != n || sent["exported"] != 0 {
			t.Errorf("%v of %d spans", sent, n)
		}
	})
}

func TestExport_Batches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		tr := tracer(c)
		for i := range 1000 {
			one(tr, domain.TurnID(fmt.Sprint(i)))
		}
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(c.spans) != 1000 || c.requests() > 4 {
			t.Errorf("%d spans in %d requests", len(c.spans), c.requests())
		}
		one(tr, "late")
		if len(c.spans) != 1000 {
			t.Error("something was sent after the end")
		}
	})
}

func TestExport_HeaderAndAddress(t *testing.T) {
	for _, tt := range []struct{ endpoint, want string }{
		{"https://c:1/", "https://c:1/v1/traces"}, {"https://c:1/v1/traces", "https://c:1/v1/traces"}, {"https://c/otlp", "https://c/otlp/v1/traces"},
	} {
		c := &collector{}
		tr := tracer(c, func(cfg *Config) {
			cfg.Endpoint = tt.endpoint
			cfg.Header = func() (string, string, error) { return "Api-Key", "k", nil }
		})
		one(tr, "t")
		if err := tr.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := c.seen[0]; r.URL.String() != tt.want || r.Header.Get("Api-Key") != "k" {
			t.Errorf("%s: sent to %s with %v", tt.endpoint, r.URL, r.Header)
		}
	}
}

// Long texts are cut at a character.
func TestCut(t *testing.T) {
	long := strings.Repeat("é", maxText)
	got := cut("a" + long)
	if len(got) > maxText+len("…") || !strings.HasSuffix(got, "é…") || !bytes.HasPrefix([]byte(long), []byte("é")) {
		t.Errorf("cut to %d bytes, ends with %q", len(got), got[len(got)-6:])
	}
	if got := cut("short"); got != "short" {
		t.Errorf("short became %q", got)
	}
}

func TestTracer_Together(t *testing.T) {
	c := &collector{}
	tr := tracer(c, func(cfg *Config) {
		cfg.Random = reader(func(p []byte) { copy(p, fmt.Sprintf("%016x", time.Now().UnixNano())) })
	})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 100 {
				one(tr, domain.TurnID(fmt.Sprintf("%d-%d", i, j)))
			}
		})
	}
	group.Wait()
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(c.spans) != 800 {
		t.Errorf("%d spans", len(c.spans))
	}
}
