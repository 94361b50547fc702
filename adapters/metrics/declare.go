package metrics

import "strings"

// Kind is how a metric behaves.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"   // only grows, until the process ends
	Gauge     Kind = "gauge"     // how something stands now
	Histogram Kind = "histogram" // how often values fell below each of a few bounds
)

// Family is one metric as it is declared.
type Family struct {
	Name    string
	Kind    Kind
	Help    string   // one sentence, without a full stop
	Labels  []string // in the order of their values
	Buckets []float64
}

// declared are the metrics that are set from the code.
type declared struct {
	turns, turnCauses, turnFailures, turnSeconds, turnWait, turnFirst  *vec
	requests, requestSeconds, requestFirst, tokens, cost               *vec
	retries, fallbacks                                                 *vec
	calls, callSeconds, permissions, permissionWait, escalations       *vec
	opened, released, troubles                                         *vec
	appends, appendSeconds                                             *vec
	sessions, running, queued, asking, draining                        *vec
	connections, connected, connectedSeconds, refused, certificate     *vec
	reloads, reloadedAt, spans, buildInfo                              *vec
	startTime, cpu, resident, fds, goroutines, heap, live, memory, gcs *vec
}

// The bounds of histograms, in seconds.
func longBounds() []float64 {
	return []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
}

func shortBounds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}
}

func waitBounds() []float64 { return []float64{1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600} }

// declare makes every metric, in the order of a scrape.
func (m *Metrics) declare() {
	m.declareTurns()
	m.declareModels()
	m.declareTools()
	m.declareSessions()
	m.declareGateway()
	m.declareProcess()
}

func (m *Metrics) declareTurns() {
	m.turns = m.counter("berth_turns_total", "Turns that ended, by agent and outcome: a stop reason of ACP, or failed", "agent", "outcome")
	m.turnCauses = m.counter("berth_turns_cancelled_total", "Cancelled turns by who cancelled them: client, request, disconnected, session_closed, shutdown", "cause")
	m.turnFailures = m.counter("berth_turn_failures_total", "Failed turns by the code of their error", "code")
	m.turnSeconds = m.histogram("berth_turn_duration_seconds", "From a turn's start to its end, waiting included", longBounds())
	m.turnWait = m.histogram("berth_turn_wait_seconds", "How long a prompt waited behind other turns of its session", longBounds())
	m.turnFirst = m.histogram("berth_turn_first_text_seconds", "From a turn's start to the first text of its answer", longBounds())
	m.running = m.gauge("berth_turns_running", "Turns at work")
	m.queued = m.gauge("berth_prompts_queued", "Prompts that wait behind a turn of their session")
}

func (m *Metrics) declareModels() {
	m.requests = m.counter("berth_model_requests_total", "Requests to models by the model that answered and outcome: ok, cancelled, or the code of the error", "model", "outcome")
	m.requestSeconds = m.histogram("berth_model_request_duration_seconds", "From a request to the end of its reply, repeated attempts included", longBounds(), "model")
	m.requestFirst = m.histogram("berth_model_first_text_seconds", "From a request to the first text of its reply", longBounds(), "model")
	m.tokens = m.counter("berth_model_tokens_total",
		"Tokens as providers counted them, by type: input, output, and of these cached_read, cached_write (parts of input) and thought (part of output)", "model", "type")
	m.cost = m.counter("berth_model_cost_dollars_total", "What requests cost in US dollars, as far as prices are known", "agent", "model")
	m.retries = m.counter("berth_model_retries_total", "Attempts that were repeated because nothing of a reply had come", "model")
	m.fallbacks = m.counter("berth_model_fallbacks_total", "Requests that another model answered than was asked", "from", "to")
}

func (m *Metrics) declareTools() {
	m.calls = m.counter("berth_tool_calls_total", "Tool calls by tool and status; a tool that there is not is unknown", "tool", "status")
	m.callSeconds = m.histogram("berth_tool_call_duration_seconds", "From a call's announcement to its end, the wait for a permission included", shortAndLong(), "tool")
	m.permissions = m.counter("berth_permissions_total",
		"Permission decisions by outcome: allowed_by_policy and refused_by_policy ask nobody; allowed and rejected were answered, cancelled with their turn, and unanswered in time or at all", "outcome")
	m.permissionWait = m.histogram("berth_permission_wait_seconds", "How long a permission request waited for its answer", waitBounds())
	m.asking = m.gauge("berth_permissions_pending", "Permission requests without an answer")
	m.escalations = m.counter("berth_escalations_total", "Calls for a human by urgency", "urgency")
}

func (m *Metrics) declareSessions() {
	m.sessions = m.gauge("berth_sessions", "Sessions with a place here by state: busy with a turn, idle, detached from a lost client, or set_aside from memory until their next turn", "state")
	m.opened = m.counter("berth_sessions_opened_total", "Sessions that entered memory: new, load, resume, reset, restore", "how")
	m.released = m.counter("berth_sessions_released_total", "Sessions that left memory: close, stop, idle, disconnect, delete, shutdown", "how")
	m.appends = m.counter("berth_store_appends_total", "Appends to journals by outcome: ok, or the code of the error", "outcome")
	m.appendSeconds = m.histogram("berth_store_append_duration_seconds", "How long an append took until it was durable", shortBounds())
	m.troubles = m.counter("berth_troubles_total", "Things that went wrong and were dealt with; each is an error in the log")
}

func (m *Metrics) declareGateway() {
	m.connections = m.gauge("berth_gateway_connections", "Open connections by transport: websocket, http", "transport")
	m.connected = m.counter("berth_gateway_connections_total", "Connections that were opened", "transport")
	m.connectedSeconds = m.histogram("berth_gateway_connection_duration_seconds", "How long connections lasted that have ended", longBounds(), "transport")
	m.refused = m.counter("berth_gateway_refused_total", "Requests that were turned away, by the status of the answer and the reason", "status", "reason")
	m.certificate = m.gauge("berth_gateway_certificate_expiry_timestamp_seconds", "When the gateway's certificate stops to be good; absent without TLS")
	m.draining = m.gauge("berth_gateway_draining", "1 while the process finishes its turns to end, else 0")
	m.reloads = m.counter("berth_config_reloads_total", "Reloads of the configuration: applied, or refused because it was not valid", "outcome")
	m.reloadedAt = m.gauge("berth_config_last_reload_success_timestamp_seconds", "When the configuration was last reloaded; absent before the first time")
	m.spans = m.counter("berth_trace_spans_total", "Spans of traces: exported, or dropped because the collector did not take them in time", "outcome")
	m.buildInfo = m.gauge("berth_build_info", "Always 1; the labels tell what runs", "version", "go_version")
}

func (m *Metrics) declareProcess() {
	m.goroutines = m.gauge("go_goroutines", "Goroutines")
	m.heap = m.gauge("go_memstats_heap_alloc_bytes", "Bytes of objects on the heap")
	m.live = m.gauge("go_gc_heap_live_bytes", "Bytes of objects that the last collection of garbage found in use")
	m.memory = m.gauge("go_memstats_sys_bytes", "Bytes that the runtime got from the system")
	m.gcs = m.counter("go_gc_cycles_total", "Collections of garbage")
	m.startTime = m.gauge("process_start_time_seconds", "When the process started")
	m.cpu = m.counter("process_cpu_seconds_total", "User and system time of the processor; Linux alone")
	m.resident = m.gauge("process_resident_memory_bytes", "Resident memory; Linux alone")
	m.fds = m.gauge("process_open_fds", "Open descriptors; Linux alone")
}

// shortAndLong are bounds for what takes a millisecond or half an hour.
func shortAndLong() []float64 {
	return []float64{0.005, 0.025, 0.1, 0.5, 1, 5, 30, 120, 600, 3600}
}

func (m *Metrics) counter(name, help string, labels ...string) *vec {
	return m.family(Family{Name: name, Kind: Counter, Help: help, Labels: labels})
}

func (m *Metrics) gauge(name, help string, labels ...string) *vec {
	return m.family(Family{Name: name, Kind: Gauge, Help: help, Labels: labels})
}

func (m *Metrics) histogram(name, help string, bounds []float64, labels ...string) *vec {
	return m.family(Family{Name: name, Kind: Histogram, Help: help, Labels: labels, Buckets: bounds})
}

func (m *Metrics) family(f Family) *vec {
	v := &vec{Family: f, series: map[string]*series{}}
	if len(f.Labels) == 0 && f.Kind != Gauge {
		v.series[""] = v.empty(nil) // what has not happened yet is 0, not absent
	}
	m.vecs = append(m.vecs, v)
	return v
}

// key joins the values of labels.
func key(labels []string) string { return strings.Join(labels, "\xff") }
