// Package responsestest is a fake server of the Responses wire, as strict as
// the real one and in the forms that servers of it have.
package responsestest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/adapters/llm/responses"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// model is the one model the server has.
const model = "fake-1"

// Form is how a server writes its events.
type Form struct {
	Newline  string // "" is LF
	Comments bool   // keep-alives between the events
	Unnamed  bool   // no event field
	Done     bool   // "[DONE]" in the end, as proxies add it
	Shifty   bool   // other item ids in every event, as some gateways send them
	NoIndex  bool   // no output_index
	NoItems  bool   // the closing event lists no items
	NoDeltas bool   // arguments come whole
	Bare     bool   // no events that announce items and parts
	Spoken   bool   // reasoning is text and not a summary
	Extra    bool   // events and fields that nobody knows
}

// Dialect is the wire as OpenAI speaks it.
func Dialect() llmtest.Dialect { return With(Form{}) }

// With is the wire as other servers speak it.
func With(f Form) llmtest.Dialect {
	return llmtest.Dialect{
		Name: "OpenAI Responses", Type: "openai-responses", Path: "/v1", Model: model,
		Opener: responses.Opener(),
		New: func() *llmtest.Server {
			s := &server{form: f}
			return &llmtest.Server{Check: check, Look: s.look, Play: s.play, Probe: probe}
		},
	}
}

// probe answers the list of models.
func probe(w http.ResponseWriter, req *http.Request) bool {
	if req.Method != http.MethodGet {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case req.URL.Path != "/v1/models":
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"error":{"message":"Invalid URL","type":"invalid_request_error","param":null,"code":null}}`)
	case req.Header.Get("Authorization") != "Bearer "+llmtest.Canary:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`)
	default:
		_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model","created":1700000000,"owned_by":"test"}]}`, model)
	}
	return true
}

func js(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// play writes an answer.
func (s *server) play(w *llmtest.Writer, r porttest.Reply, _ []byte) {
	if r.Refusal != nil {
		w.Refuse(*r.Refusal, `{"error":`+errorObject(*r.Refusal)+`}`)
		return
	}
	p := &player{w: w, form: s.form, nth: s.next()}
	w.Begin("text/event-stream; charset=utf-8")
	if r.End == porttest.EndSilent && len(r.Parts) == 0 {
		w.Hang()
		return
	}
	p.event("response.created", `"response":`+p.response("in_progress", "", domain.Usage{}))
	p.event("response.in_progress", `"response":`+p.response("in_progress", "", domain.Usage{}))
	for _, part := range r.Parts {
		if wait, ok := part.(porttest.Wait); ok {
			w.Wait(wait)
			continue
		}
		p.part(part, r.Signed)
	}
	if r.End == porttest.EndComplete || r.End == porttest.EndLength || r.End == porttest.EndRefusal {
		p.close()
		s.sign(p.items)
	}
	p.end(r)
}

// ending is the status and the reason of an end, "" for one that is none.
func ending(end porttest.ReplyEnd) (status, reason string) {
	switch end {
	case porttest.EndComplete:
		return "completed", ""
	case porttest.EndLength:
		return "incomplete", "max_output_tokens"
	case porttest.EndRefusal:
		return "incomplete", "content_filter"
	}
	return "", ""
}

func (p *player) end(r porttest.Reply) {
	switch r.End {
	case porttest.EndComplete, porttest.EndLength, porttest.EndRefusal:
		status, reason := ending(r.End)
		p.event("response."+status, `"response":`+p.response(status, reason, r.Usage))
		if p.form.Done {
			p.w.Send("data: [DONE]\n\n")
		}
	case porttest.EndCut:
	case porttest.EndBroken:
		p.w.Break()
	case porttest.EndSilent:
		p.w.Hang()
	case porttest.EndMalformed:
		p.raw("response.output_text.delta", `{"type":"response.output_text.delta","delta":"lost`)
	case porttest.EndError:
		p.fault(r.Fault)
	}
}

// fault is an error inside an answer: of the request in the event "error", of
// the engine in a response that failed.
func (p *player) fault(f porttest.Refusal) {
	if f.Kind < porttest.LimitedRate {
		kind, code := errorKind(f.Kind)
		p.event("error", `"error":`+js(map[string]any{"type": kind, "code": code, "message": f.Words, "param": nil}))
		return
	}
	resp := p.response("failed", "", domain.Usage{})
	_, code := errorKind(f.Kind)
	resp = strings.Replace(resp, `"error":null`, `"error":`+js(map[string]any{"code": code, "message": f.Words}), 1)
	p.event("response.failed", `"response":`+resp)
}

// errorKind is how the wire names a refusal.
func errorKind(k porttest.RefusalKind) (kind, code string) {
	switch k {
	case porttest.KeyRefused:
		return "invalid_request_error", "invalid_api_key"
	case porttest.Forbidden:
		return "permission_error", "permission_denied"
	case porttest.NoSuchModel:
		return "invalid_request_error", "model_not_found"
	case porttest.TooLong:
		return "invalid_request_error", "context_length_exceeded"
	case porttest.BadRequest, porttest.TooManyTokens:
		return "invalid_request_error", "invalid_prompt"
	case porttest.LimitedRate:
		return "tokens", "rate_limit_exceeded"
	case porttest.SpentQuota:
		return "insufficient_quota", "insufficient_quota"
	}
	return "server_error", "server_error"
}

func errorObject(r porttest.Refusal) string {
	kind, code := errorKind(r.Kind)
	return js(map[string]any{"message": r.Words, "type": kind, "param": nil, "code": code})
}
