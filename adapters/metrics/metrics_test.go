package metrics

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/memory"
	"github.com/berth-dev/berth/core/domain"
)

var (
	one   = domain.ModelRef{Provider: "p", Model: "one"}
	two   = domain.ModelRef{Provider: "q", Model: "two"}
	began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func fixed() time.Time { return began }

// What each event adds, as a scrape shows it. Only the lines named are
// compared; a histogram by its sum, its count and one of its buckets.
func TestObserve(t *testing.T) {
	cost := domain.MicroUSD(1_500_000)
	cases := []struct {
		name   string
		events []domain.Event
		want   map[string]float64
	}{
		{"a turn", []domain.Event{
			domain.TurnBegan{Session: "s", Turn: "t"},
			domain.TurnDone{Stop: domain.StopEndTurn, Agent: "a", Duration: 2 * time.Second, Waited: time.Second, FirstText: 300 * time.Millisecond},
		}, map[string]float64{
			`berth_turns_total{agent="a",outcome="end_turn"}`: 1, `berth_turn_duration_seconds_sum`: 2, `berth_turn_duration_seconds_count`: 1,
			`berth_turn_duration_seconds_bucket{le="1"}`: 0, `berth_turn_duration_seconds_bucket{le="2.5"}`: 1, `berth_turn_duration_seconds_bucket{le="+Inf"}`: 1,
			`berth_turn_wait_seconds_sum`: 1, `berth_turn_first_text_seconds_sum`: 0.3,
		}},
		{"a value on a bound falls below it", []domain.Event{domain.TurnDone{Stop: domain.StopEndTurn, Duration: time.Second}},
			map[string]float64{`berth_turn_duration_seconds_bucket{le="0.5"}`: 0, `berth_turn_duration_seconds_bucket{le="1"}`: 1}},
		{"a value above all bounds", []domain.Event{domain.TurnDone{Stop: domain.StopEndTurn, Duration: time.Hour}},
			map[string]float64{`berth_turn_duration_seconds_bucket{le="1800"}`: 0, `berth_turn_duration_seconds_bucket{le="+Inf"}`: 1}},
		{"a clock that was set back", []domain.Event{domain.TurnDone{Stop: domain.StopEndTurn, Duration: -time.Hour}},
			map[string]float64{`berth_turn_duration_seconds_sum`: 0, `berth_turn_duration_seconds_bucket{le="0.1"}`: 1}},
		{"a turn without text has no first one", []domain.Event{domain.TurnDone{Stop: domain.StopEndTurn}},
			map[string]float64{`berth_turn_first_text_seconds_count`: 0}},
		{"a failed turn", []domain.Event{
			domain.TurnDone{Err: domain.Errorf(domain.RateLimited, "wait")}, domain.TurnDone{Err: errors.New("?"), Agent: "a"},
		}, map[string]float64{
			`berth_turns_total{agent="none",outcome="failed"}`: 1, `berth_turns_total{agent="a",outcome="failed"}`: 1,
			`berth_turn_failures_total{code="rate_limited"}`: 1, `berth_turn_failures_total{code="internal"}`: 1,
		}},
		{"cancelled turns", []domain.Event{
			domain.TurnDone{Stop: domain.StopCancelled, Cause: domain.CancelledByClient},
			domain.TurnDone{Stop: domain.StopCancelled, Cause: fmt.Errorf("so: %w", domain.Disconnected)},
			domain.TurnDone{Stop: domain.StopCancelled, Cause: errors.New("?")},
		}, map[string]float64{
			`berth_turns_cancelled_total{cause="client"}`: 1, `berth_turns_cancelled_total{cause="disconnected"}`: 1, `berth_turns_cancelled_total{cause="other"}`: 1,
		}},
		{"a model request", []domain.Event{domain.StepDone{
			Agent: "a", Model: one, Asked: one, Duration: 3 * time.Second, FirstText: time.Second, Retries: 2, Cost: &cost,
			Usage: domain.Usage{Input: 10, Output: 5, Thought: 2, CachedRead: 4, CachedWrite: 1},
		}}, map[string]float64{
			`berth_model_requests_total{model="p/one",outcome="ok"}`: 1, `berth_model_request_duration_seconds_sum{model="p/one"}`: 3,
			`berth_model_first_text_seconds_sum{model="p/one"}`: 1, `berth_model_retries_total{model="p/one"}`: 2,
			`berth_model_cost_dollars_total{agent="a",model="p/one"}`: 1.5,
			`berth_model_tokens_total{model="p/one",type="input"}`:    10, `berth_model_tokens_total{model="p/one",type="output"}`: 5,
			`berth_model_tokens_total{model="p/one",type="thought"}`: 2, `berth_model_tokens_total{model="p/one",type="cached_read"}`: 4,
			`berth_model_tokens_total{model="p/one",type="cached_write"}`: 1, `berth_model_fallbacks_total`: math.NaN(),
		}},
		{"a fallback", []domain.Event{domain.StepDone{Model: two, Asked: one}},
			map[string]float64{`berth_model_fallbacks_total{from="p/one",to="q/two"}`: 1, `berth_model_requests_total{model="q/two",outcome="ok"}`: 1}},
		{"requests that ended otherwise", []domain.Event{
			domain.StepDone{Model: one, Err: domain.CancelledByClient}, domain.StepDone{Model: one, Err: domain.WrapError(domain.Unavailable, nil, "gone")},
		}, map[string]float64{
			`berth_model_requests_total{model="p/one",outcome="cancelled"}`: 1, `berth_model_requests_total{model="p/one",outcome="unavailable"}`: 1,
		}},
		{"tool calls", []domain.Event{
			domain.CallDone{Tool: "shell", Status: domain.CallCompleted, Duration: time.Second}, domain.CallDone{Tool: "shell", Status: domain.CallFailed},
			domain.CallDone{Tool: "made_up_1", Unknown: true, Status: domain.CallFailed}, domain.CallDone{Tool: "made_up_2", Unknown: true, Status: domain.CallFailed},
		}, map[string]float64{
			`berth_tool_calls_total{tool="shell",status="completed"}`: 1, `berth_tool_calls_total{tool="shell",status="failed"}`: 1,
			`berth_tool_call_duration_seconds_count{tool="shell"}`: 2, `berth_tool_calls_total{tool="unknown",status="failed"}`: 2,
		}},
		{"permissions", []domain.Event{
			domain.PermissionDone{Verdict: domain.Allow}, domain.PermissionDone{Verdict: domain.Refuse},
			domain.PermissionDone{Verdict: domain.Ask, Asked: true, Outcome: domain.Selected, Option: "allow-always", Duration: 4 * time.Second},
			domain.PermissionDone{Verdict: domain.Ask, Asked: true, Outcome: domain.Selected, Option: "reject-once"},
			domain.PermissionDone{Verdict: domain.Ask, Asked: true, Outcome: domain.Withdrawn}, domain.PermissionDone{Verdict: domain.Ask, Asked: true},
		}, map[string]float64{
			`berth_permissions_total{outcome="allowed_by_policy"}`: 1, `berth_permissions_total{outcome="refused_by_policy"}`: 1,
			`berth_permissions_total{outcome="allowed"}`: 1, `berth_permissions_total{outcome="rejected"}`: 1, `berth_permissions_total{outcome="cancelled"}`: 1,
			`berth_permissions_total{outcome="unanswered"}`: 1, `berth_permission_wait_seconds_count`: 4, `berth_permission_wait_seconds_sum`: 4,
		}},
		{"sessions and the rest", []domain.Event{
			domain.SessionOpened{How: "load"}, domain.SessionReleased{How: "idle"}, domain.Trouble{Where: "x"}, domain.Trouble{}, domain.Escalated{Urgency: "high"},
		}, map[string]float64{
			`berth_sessions_opened_total{how="load"}`: 1, `berth_sessions_released_total{how="idle"}`: 1, `berth_troubles_total`: 2, `berth_escalations_total{urgency="high"}`: 1,
		}},
		{"connections", []domain.Event{
			domain.PeerConnected{Transport: "websocket"}, domain.PeerConnected{Transport: "websocket"}, domain.PeerConnected{Transport: "http"},
			domain.PeerGone{Transport: "websocket", Duration: time.Minute}, domain.PeerRefused{Status: 403, Why: "origin"},
		}, map[string]float64{
			`berth_gateway_connections{transport="websocket"}`: 1, `berth_gateway_connections{transport="http"}`: 1, `berth_gateway_connections_total{transport="websocket"}`: 2,
			`berth_gateway_connection_duration_seconds_sum{transport="websocket"}`: 60, `berth_gateway_refused_total{status="403",reason="origin"}`: 1,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := New(Config{Version: "1"})
			for _, ev := range c.events {
				m.Observe(t.Context(), ev)
			}
			check(t, scrape(t, m), c.want)
		})
	}
}

// check compares some samples; NaN means that there is none of that metric.
func check(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		have, ok := got[name]
		switch {
		case math.IsNaN(value) && ok:
			t.Errorf("%s is %v and should not be there", name, have)
		case !math.IsNaN(value) && (!ok || have != value):
			t.Errorf("%s is %v (there: %v), want %v", name, have, ok, value)
		}
	}
}

// scrape reads a scrape as strictly as the format is written down.
func scrape(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	var (
		comment = regexp.MustCompile(`^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$`)
		sample  = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)*\})? (\S+)$`)
	)
	got, types, family := map[string]float64{}, map[string]string{}, ""
	text := string(m.Text())
	if !strings.HasSuffix(text, "\n") {
		t.Fatal("the last line has no end")
	}
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if c := comment.FindStringSubmatch(line); c != nil {
			if c[1] == "HELP" {
				family = c[2]
				continue
			}
			if types[c[2]] != "" || c[2] != family {
				t.Errorf("%q stands in the wrong place", line)
			}
			types[c[2]] = c[3]
			continue
		}
		s := sample.FindStringSubmatch(line)
		if s == nil {
			t.Fatalf("%q is no sample", line)
		}
		base := s[1]
		if types[family] == "histogram" {
			base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, "_bucket"), "_sum"), "_count")
		}
		if base != family {
			t.Errorf("%q stands below %s", line, family)
		}
		value, err := strconv.ParseFloat(s[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[s[1]+s[2]]; twice {
			t.Errorf("%q is there twice", s[1]+s[2])
		}
		got[s[1]+s[2]] = value
	}
	return got
}

// A metric never has more series than it may, whatever a model or a client
// makes up: the sum stays right, the rest is "other".
func TestObserve_BoundsItsSeries(t *testing.T) {
	m := New(Config{})
	const n = 5000
	for i := range n {
		m.Observe(t.Context(), domain.StepDone{Model: domain.ModelRef{Provider: "p", Model: fmt.Sprintf("made-up-%d", i)}})
	}
	var series, sum, rest float64
	for name, value := range scrape(t, m) {
		if strings.HasPrefix(name, "berth_model_requests_total{") {
			series++
			sum += value
			if strings.Contains(name, `model="other",outcome="other"`) {
				rest = value
			}
		}
	}
	if series != maxSeries+1 || sum != n || rest != n-maxSeries {
		t.Errorf("%v series with %v requests, %v of them other", series, sum, rest)
	}
}

// Whatever text a label gets, the scrape can be read.
func TestObserve_AnyLabel(t *testing.T) {
	for _, s := range []string{"", "a\"b\\c\nd", "\xff\xfe", "a\xffb", strings.Repeat("é", 1000), "{}=,", "x\x00y"} {
		m := New(Config{Version: s})
		m.Observe(t.Context(), domain.TurnDone{Agent: s, Stop: domain.StopEndTurn})
		m.Observe(t.Context(), domain.CallDone{Tool: s, Status: domain.CallStatus(s)})
		for name := range scrape(t, m) {
			if len(name) > 1000 {
				t.Errorf("%q gave a name of %d bytes", s[:10], len(name))
			}
		}
	}
}

// Many may report while others scrape.
func TestMetrics_Together(t *testing.T) {
	m := New(Config{State: func() State { return State{Sessions: map[string]int{"busy": 1}} }})
	var group sync.WaitGroup
	const reporters, each = 8, 500
	for range reporters {
		group.Go(func() {
			for range each {
				m.Observe(t.Context(), domain.TurnDone{Agent: "a", Stop: domain.StopEndTurn, Duration: time.Second})
			}
		})
		group.Go(func() {
			for range 20 {
				m.Text()
			}
		})
	}
	group.Wait()
	check(t, scrape(t, m), map[string]float64{`berth_turns_total{agent="a",outcome="end_turn"}`: reporters * each, `berth_turn_duration_seconds_count`: reporters * each})
}

func TestText_State(t *testing.T) {
	now := State{
		Sessions: map[string]int{"busy": 2, "detached": 1}, Running: 2, Queued: 3, Asking: 1,
		Draining: true,
	}
	m := New(Config{Version: "1.2", Clock: fixed, State: func() State { return now }})
	runtime.GC() // so that there was one
	got := scrape(t, m)
	check(t, got, map[string]float64{
		`berth_sessions{state="busy"}`: 2, `berth_sessions{state="detached"}`: 1, `berth_turns_running`: 2, `berth_prompts_queued`: 3, `berth_permissions_pending`: 1,
		`berth_gateway_draining`: 1, `process_start_time_seconds`: unix(began),
		`berth_build_info{version="1.2",go_version="` + runtime.Version() + `"}`: 1,
		`berth_config_last_reload_success_timestamp_seconds`:                     math.NaN(),
	})
	if got["go_goroutines"] < 1 || got["go_gc_heap_live_bytes"] < 1000 || got["go_memstats_heap_alloc_bytes"] < 1000 || got["go_memstats_sys_bytes"] < got["go_memstats_heap_alloc_bytes"] {
		t.Errorf("the runtime shows %v", got)
	}
	if runtime.GOOS == "linux" && (got["process_resident_memory_bytes"] < 1<<20 || got["process_open_fds"] < 3) {
		t.Errorf("the system shows %v bytes and %v descriptors", got["process_resident_memory_bytes"], got["process_open_fds"])
	}
	now = State{Sessions: map[string]int{"idle": 1}}
	check(t, scrape(t, m), map[string]float64{
		`berth_sessions{state="busy"}`: 0, `berth_sessions{state="detached"}`: 0, `berth_sessions{state="idle"}`: 1,
		`berth_gateway_draining`: 0, `berth_turns_running`: 0,
	})
	check(t, scrape(t, New(Config{})), map[string]float64{`berth_gateway_draining`: math.NaN(), `berth_turns_running`: math.NaN(), `berth_troubles_total`: 0})
}

func TestMetrics_Counts(t *testing.T) {
	m := New(Config{Clock: fixed})
	m.Reloaded(nil)
	m.Reloaded(errors.New("no"))
	m.Spans("dropped", 3)
	check(t, scrape(t, m), map[string]float64{
		`berth_config_reloads_total{outcome="applied"}`: 1, `berth_config_reloads_total{outcome="refused"}`: 1,
		`berth_config_last_reload_success_timestamp_seconds`: unix(began), `berth_trace_spans_total{outcome="dropped"}`: 3,
	})
}

func TestStore_TimesAppends(t *testing.T) {
	m := New(Config{})
	s := m.Store(memory.New(time.Now))
	if err := s.Create(t.Context(), domain.Session{ID: "s", Key: "k", Agent: "a", Cwd: "/", CreatedAt: began, UpdatedAt: began}); err != nil {
		t.Fatal(err)
	}
	if pos, err := s.Append(t.Context(), "s", 0, domain.TitleSet{Title: "t"}); err != nil || pos != 1 {
		t.Fatalf("position %d, %v", pos, err)
	}
	if _, err := s.Append(t.Context(), "s", 0, domain.TitleSet{Title: "t"}); !domain.HasCode(err, domain.Conflict) {
		t.Fatalf("error %v", err)
	}
	check(t, scrape(t, m), map[string]float64{
		`berth_store_appends_total{outcome="ok"}`: 1, `berth_store_appends_total{outcome="conflict"}`: 1, `berth_store_append_duration_seconds_count`: 2,
	})
}

func TestServeHTTP(t *testing.T) {
	m := New(Config{})
	cases := []struct {
		method string
		status int
		body   bool
	}{{"GET", 200, true}, {"HEAD", 200, false}, {"POST", 405, true}}
	for _, c := range cases {
		t.Run(c.method, func(t *testing.T) {
			rec := httptest.NewRecorder()
			m.ServeHTTP(rec, httptest.NewRequest(c.method, "/metrics", nil))
			if rec.Code != c.status || (rec.Body.Len() > 0) != c.body {
				t.Fatalf("status %d with %d bytes", rec.Code, rec.Body.Len())
			}
			if c.status != http.StatusOK {
				if rec.Header().Get("Allow") != "GET, HEAD" {
					t.Errorf("Allow is %q", rec.Header().Get("Allow"))
				}
				return
			}
			want := http.Header{"Content-Type": {contentType}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"}}
			got := rec.Header().Clone()
			length := got.Get("Content-Length")
			got.Del("Content-Length")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if c.body && length != strconv.Itoa(rec.Body.Len()) {
				t.Errorf("Content-Length %s of %d", length, rec.Body.Len())
			}
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	m := New(Config{})
	ev := domain.StepDone{Agent: "a", Model: one, Asked: one, Duration: time.Second, Usage: domain.Usage{Input: 1, Output: 1}}
	for b.Loop() {
		m.Observe(b.Context(), ev)
	}
}
