package traces

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// Kinds of spans, as OTLP numbers them.
const (
	kindInternal = 1
	kindServer   = 2
	kindClient   = 3
)

// statusError is a span's status when what it stands for failed.
const statusError = 2

// span is one finished span, as OTLP writes it in JSON.
type span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	ParentID   string      `json:"parentSpanId,omitempty"`
	State      string      `json:"traceState,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      uint64      `json:"startTimeUnixNano,string"`
	End        uint64      `json:"endTimeUnixNano,string"`
	Attributes []attribute `json:"attributes,omitempty"`
	Status     *status     `json:"status,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type attribute struct {
	Key   string `json:"key"`
	Value value  `json:"value"`
}

// value has one field set.
type value struct {
	String *string  `json:"stringValue,omitempty"`
	Int    *int64   `json:"intValue,string,omitempty"`
	Double *float64 `json:"doubleValue,omitempty"`
	Array  *array   `json:"arrayValue,omitempty"`
}

type array struct {
	Values []value `json:"values"`
}

// text adds a text, unless there is none.
func (s *span) text(key, v string) {
	if v != "" {
		s.Attributes = append(s.Attributes, attribute{key, value{String: &v}})
	}
}

// number adds a count, unless it is zero.
func (s *span) number(key string, v int64) {
	if v != 0 {
		s.Attributes = append(s.Attributes, attribute{key, value{Int: &v}})
	}
}

// seconds adds a duration, unless it is zero.
func (s *span) seconds(key string, d time.Duration) {
	if v := d.Seconds(); v > 0 {
		s.Attributes = append(s.Attributes, attribute{key, value{Double: &v}})
	}
}

// fails sets what went wrong: its code, and the message that clients are told.
// The detail of what nobody foresaw stays in the log.
func (s *span) fails(err error) {
	if err == nil {
		return
	}
	var cause *domain.Cause
	if errors.As(err, &cause) {
		s.text("error.type", "cancelled")
		return // somebody wanted it
	}
	s.text("error.type", strings.ReplaceAll(domain.CodeOf(err).String(), " ", "_"))
	s.Status = &status{Code: statusError}
	var coded *domain.Error
	if errors.As(err, &coded) {
		s.Status.Message = cut(coded.Msg)
	}
}

// turn is a turn: what the client asked an agent for.
func (t *Tracer) turn(tr *trace, ev domain.TurnDone) span {
	s := t.span(tr, tr.span, tr.parent, kindServer, ev.Duration)
	s.Start = nanos(tr.start)
	s.Name = strings.TrimSpace("invoke_agent " + ev.Agent)
	s.text("gen_ai.operation.name", "invoke_agent")
	s.text("gen_ai.agent.name", ev.Agent)
	s.text("gen_ai.conversation.id", string(ev.Session))
	s.text("berth.turn.id", string(ev.Turn))
	s.text("berth.stop_reason", ev.Stop.String())
	s.usage(ev.Usage)
	s.number("berth.model_requests", int64(ev.Requests))
	s.number("berth.tool_calls", int64(ev.Calls))
	s.seconds("berth.queued_seconds", ev.Waited)
	s.seconds("berth.first_text_seconds", ev.FirstText)
	s.fails(ev.Err)
	if ev.Stop == domain.StopCancelled && ev.Cause != nil {
		s.fails(ev.Cause)
	}
	if t.cfg.Content {
		s.text("gen_ai.input.messages", message("user", domain.PromptText(tr.prompt), ""))
		s.text("gen_ai.output.messages", message("assistant", ev.Text, ev.Stop.String()))
	}
	return s
}

// step is one request to a model.
func (t *Tracer) step(tr *trace, ev domain.StepDone) span {
	var id [8]byte
	t.random(id[:])
	s := t.span(tr, id, tr.span, kindClient, ev.Duration)
	asked := ev.Asked
	if asked == (domain.ModelRef{}) {
		asked = ev.Model
	}
	s.Name = strings.TrimSpace("chat " + asked.Model)
	s.text("gen_ai.operation.name", "chat")
	if t.cfg.Provider != nil {
		s.text("gen_ai.provider.name", t.cfg.Provider(ev.Model.Provider))
	}
	s.text("gen_ai.request.model", asked.Model)
	s.text("gen_ai.response.model", ev.Model.Model)
	s.text("gen_ai.conversation.id", string(ev.Session))
	s.text("gen_ai.agent.name", ev.Agent)
	s.text("berth.provider", ev.Model.Provider)
	if ev.Model != asked {
		s.text("berth.fallback_of", asked.String())
	}
	if ev.Finish != "" {
		reason := finish(ev.Finish)
		s.Attributes = append(s.Attributes, attribute{"gen_ai.response.finish_reasons", value{Array: &array{[]value{{String: &reason}}}}})
	}
	s.usage(ev.Usage)
	s.number("berth.retries", int64(ev.Retries))
	if ev.Cost != nil && *ev.Cost > 0 {
		dollars := float64(*ev.Cost) / 1e6
		s.Attributes = append(s.Attributes, attribute{"berth.cost_dollars", value{Double: &dollars}})
	}
	s.seconds("gen_ai.response.time_to_first_chunk", ev.FirstText)
	if ev.Summary {
		s.text("berth.purpose", "compaction")
	}
	s.fails(ev.Err)
	return s
}

// call is one tool call.
func (t *Tracer) call(tr *trace, ev domain.CallDone) span {
	s := t.span(tr, t.callSpan(tr, ev.Call), tr.span, kindInternal, ev.Duration)
	delete(tr.calls, ev.Call)
	tool := ev.Tool
	if ev.Unknown {
		tool = "unknown" // the name is what a model wrote
	}
	s.Name = "execute_tool " + tool
	s.text("gen_ai.operation.name", "execute_tool")
	s.text("gen_ai.tool.name", tool)
	s.text("gen_ai.tool.call.id", string(ev.Call))
	s.text("gen_ai.tool.type", "function")
	s.text("gen_ai.conversation.id", string(ev.Session))
	s.text("berth.status", string(ev.Status))
	if ev.Status == domain.CallFailed {
		s.text("error.type", "tool_failed")
		s.Status = &status{Code: statusError}
	}
	if t.cfg.Content {
		s.text("gen_ai.tool.call.arguments", cut(string(ev.Args)))
		s.text("gen_ai.tool.call.result", cut(ev.Result))
	}
	return s
}

// permission is a question to the person, inside of the call it is about.
func (t *Tracer) permission(tr *trace, ev domain.PermissionDone) span {
	var id [8]byte
	t.random(id[:])
	s := t.span(tr, id, t.callSpan(tr, ev.Call), kindInternal, ev.Duration)
	s.Name = "ask_permission " + ev.Tool
	s.text("gen_ai.tool.name", ev.Tool)
	s.text("gen_ai.tool.call.id", string(ev.Call))
	s.text("gen_ai.conversation.id", string(ev.Session))
	s.text("berth.permission.option", ev.Option)
	s.text("berth.permission.outcome", map[domain.Outcome]string{
		domain.Selected: "selected", domain.Withdrawn: "cancelled", domain.Unanswered: "unanswered",
	}[ev.Outcome])
	return s
}

// span begins a span that ends now.
func (t *Tracer) span(tr *trace, id, parent [8]byte, kind int, took time.Duration) span {
	now := t.cfg.Clock()
	s := span{
		TraceID: hexed(tr.id[:]), SpanID: hexed(id[:]), State: tr.state, Kind: kind,
		Start: nanos(now.Add(-max(took, 0))), End: nanos(now),
	}
	if parent != [8]byte{} {
		s.ParentID = hexed(parent[:])
	}
	return s
}

// usage adds what a provider counted.
func (s *span) usage(u domain.Usage) {
	s.number("gen_ai.usage.input_tokens", u.Input)
	s.number("gen_ai.usage.output_tokens", u.Output)
	s.number("gen_ai.usage.cache_read.input_tokens", u.CachedRead)
	s.number("gen_ai.usage.cache_creation.input_tokens", u.CachedWrite)
	s.number("gen_ai.usage.reasoning.output_tokens", u.Thought)
}

// finish is a finish reason in the words of the conventions.
func finish(r domain.FinishReason) string {
	switch r {
	case domain.FinishCalls:
		return "tool_calls"
	case domain.FinishRefusal:
		return "content_filter"
	case domain.FinishStop, domain.FinishLength:
	}
	return string(r)
}

// message writes one message of a conversation; "" when it says nothing.
func message(role, text, reason string) string {
	if text == "" {
		return ""
	}
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	list := []struct {
		Role   string `json:"role"`
		Parts  []part `json:"parts"`
		Finish string `json:"finish_reason,omitempty"`
	}{{role, []part{{"text", cut(text)}}, reason}}
	out, err := json.Marshal(list)
	if err != nil {
		return ""
	}
	return string(out)
}

// maxText bounds what is sent of a text.
const maxText = 16 << 10

// cut shortens a text at a character.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func nanos(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }
