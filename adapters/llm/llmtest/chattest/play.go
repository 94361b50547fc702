package chattest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// player writes the events of one answer.
type player struct {
	w     *llmtest.Writer
	brand brand
	form  Form
	nth   int // which answer of the server it is

	thoughts string
	calls    int
	sign     signed
}

// play writes an answer.
func (s *server) play(w *llmtest.Writer, r porttest.Reply, body []byte) {
	if r.Refusal != nil {
		w.Refuse(*r.Refusal, `{"error":`+s.brand.errorObject(*r.Refusal)+`}`)
		return
	}
	p := &player{w: w, brand: s.brand, form: s.form, nth: s.next(), sign: signed{fields: map[string]string{}}}
	w.Begin("text/event-stream")
	if p.form.BOM {
		w.Send("\uFEFF")
	}
	if r.End != porttest.EndSilent || len(r.Parts) > 0 {
		p.open()
	}
	for _, part := range r.Parts {
		p.part(part, r.Signed)
	}
	if r.Signed {
		p.seal()
		s.mu.Lock()
		s.signed = append(s.signed, p.sign)
		s.mu.Unlock()
	}
	var in struct {
		Options struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
		Usage struct {
			Include bool `json:"include"`
		} `json:"usage"`
	}
	usage := json.Unmarshal(body, &in) == nil && (in.Options.Usage || in.Usage.Include)
	p.end(r, usage)
}

// open sends what comes before anything of a reply.
func (p *player) open() {
	if p.brand.azure {
		p.event(`{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,` +
			`"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}`)
	}
	p.choice(`{"role":"assistant","content":""}`, "")
}

// event writes one event with the line ends of the form.
func (p *player) event(data string) {
	nl, field := "\n", "data: "
	if p.form.Newline != "" {
		nl = p.form.Newline
	}
	if p.form.Tight {
		field = "data:"
	}
	var b strings.Builder
	switch {
	case p.form.Comments && p.brand.router:
		b.WriteString(": OPENROUTER PROCESSING" + nl + nl)
	case p.form.Comments:
		b.WriteString(": keep-alive" + nl + nl + "event: message" + nl + "id: 7" + nl + "retry: 10" + nl)
	}
	if p.form.Pretty {
		data = strings.ReplaceAll(data, `,"choices"`, ",\n \"choices\"")
	}
	for line := range strings.SplitSeq(data, "\n") {
		b.WriteString(field + line + nl)
	}
	if !p.form.LastBare || data != "[DONE]" {
		b.WriteString(nl)
	}
	p.w.Send(b.String())
}

func (p *player) head() string {
	s := fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion.chunk","created":1700000000,"model":%q`, p.nth, p.brand.model)
	if !p.brand.router {
		s += `,"system_fingerprint":null`
	}
	if p.form.Extra {
		s += `,"provider":"x","prompt_filter_results":[{"a":{"b":[1,2.5e3,true,null]}}],"usage":null`
	}
	return s
}

// choice writes an event with a delta.
func (p *player) choice(delta, finish string) {
	reason := "null"
	if finish != "" {
		reason = js(finish)
	}
	more := ""
	if p.form.Extra {
		more = `,"logprobs":null,"native_finish_reason":null,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}`
	}
	p.event(p.head() + `,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + more + `}]}`)
}

// thoughtField is the field that thoughts come under.
func (p *player) thoughtField() string {
	if p.form.Reasoning != "" {
		return p.form.Reasoning
	}
	return "reasoning_content"
}

func (p *player) part(part porttest.ReplyPart, signed bool) {
	switch part := part.(type) {
	case porttest.SendText:
		p.choice(`{"content":`+js(string(part))+`}`, "")
	case porttest.SendThought:
		p.thoughts += string(part)
		more := ""
		if p.brand.router {
			more = `,"reasoning_details":[{"type":"reasoning.text","text":` + js(string(part)) + `,"format":"anthropic-claude-v1","index":0}]`
		}
		p.choice(`{"content":null,"`+p.thoughtField()+`":`+js(string(part))+more+`}`, "")
	case porttest.Wait:
		p.w.Wait(part)
	case porttest.SendCall:
		p.call(part, signed)
		p.calls++
	}
}

// signature is a value of a shape that writers like to change.
func (p *player) signature(of string) string { return fmt.Sprintf("<%s/%d>+é&==", of, p.nth) }

// call writes a call as fragments. Pieces are cut between characters, as
// servers do that cut decoded text.
func (p *player) call(c porttest.SendCall, signed bool) {
	for i, piece := range llmtest.Pieces(c.Args, c.Pieces) {
		f := map[string]any{"function": map[string]any{"arguments": piece}}
		switch {
		case i == 0:
			f["type"], f["function"] = "function", map[string]any{"name": c.Name, "arguments": piece}
			if c.ID != "" {
				f["id"] = c.ID
			}
			if p.calls == 0 && signed {
				p.sign.args = c.Args
				if !p.brand.router && !p.brand.azure {
					extra := map[string]any{"google": map[string]any{"thought_signature": p.signature("call")}}
					f["extra_content"], p.sign.fields["call"] = extra, js(extra)
				}
			}
		case p.form.EmptyIDs:
			f["id"], f["function"] = "", map[string]any{"name": "", "arguments": piece}
		case p.form.NoIndex && c.ID != "":
			f["id"] = c.ID
		}
		if !p.form.NoIndex {
			f["index"] = p.calls
		}
		p.choice(`{"tool_calls":[`+js(f)+`]}`, "")
	}
}

// seal sends what is wanted back with the reply.
func (p *player) seal() {
	if !p.brand.router {
		p.sign.fields[p.thoughtField()] = p.thoughts
		return
	}
	signature := map[string]any{"type": "reasoning.text", "signature": p.signature("thought"), "format": "anthropic-claude-v1", "index": 0}
	hidden := map[string]any{"type": "reasoning.encrypted", "data": p.signature("hidden"), "id": nil, "format": "anthropic-claude-v1", "index": 1}
	p.choice(`{"reasoning_details":[`+js(signature)+`]}`, "")
	p.choice(`{"reasoning_details":[`+js(hidden)+`]}`, "")
	signature["text"] = p.thoughts
	p.sign.fields["reasoning_details"] = js([]any{signature, hidden})
}

func (p *player) end(r porttest.Reply, usage bool) {
	switch r.End {
	case porttest.EndComplete:
		reason := "stop"
		if p.calls > 0 {
			reason = "tool_calls"
		}
		p.close(reason, r.Usage, usage)
	case porttest.EndLength:
		p.close("length", r.Usage, usage)
	case porttest.EndRefusal:
		p.close("content_filter", r.Usage, usage)
	case porttest.EndCut:
	case porttest.EndBroken:
		p.w.Break()
	case porttest.EndSilent:
		p.w.Hang()
	case porttest.EndMalformed:
		p.event(`{"choices":[{"delta":{"content":"lost`)
	case porttest.EndError:
		if p.brand.router {
			p.event(p.head() + `,"error":` + p.brand.errorObject(r.Fault) + `,"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`)
			return
		}
		more := ""
		if p.form.Extra {
			more = `,"choices":[]`
		}
		p.event(`{"error":` + p.brand.errorObject(r.Fault) + more + `}`)
	}
}

func (p *player) close(reason string, u domain.Usage, usage bool) {
	p.choice(`{}`, reason)
	if usage && u != (domain.Usage{}) {
		cost := ""
		if p.brand.router {
			cost = fmt.Sprintf(`,"cost":%g,"is_byok":false,"cost_details":{"upstream_inference_cost":null,`+
				`"upstream_inference_prompt_cost":0,"upstream_inference_completions_cost":0}`, float64(u.Input+u.Output)/1e6)
		}
		p.event(fmt.Sprintf(`%s,"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
			`"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}%s}}`,
			strings.Replace(p.head(), `,"usage":null`, "", 1), u.Input, u.Output, u.Input+u.Output, u.CachedRead, u.CachedWrite, u.Thought, cost))
	}
	if !p.form.NoDone {
		p.event("[DONE]")
	}
}

// routerType is OpenRouter's own word for a refusal.
func routerType(k porttest.RefusalKind) string {
	kinds := map[porttest.RefusalKind]string{
		porttest.KeyRefused: "authentication", porttest.Forbidden: "permission_denied", porttest.BadRequest: "invalid_request",
		porttest.NoSuchModel: "not_found", porttest.TooManyTokens: "payload_too_large", porttest.LimitedRate: "rate_limit_exceeded",
		porttest.ServerError: "server", porttest.BadGateway: "provider_unavailable", porttest.NotAvailable: "provider_unavailable",
		porttest.GatewayTimeout: "timeout", porttest.Overloaded: "provider_overloaded",
	}
	return kinds[k]
}

// errorObject is a refusal in the words of the brand.
func (b brand) errorObject(r porttest.Refusal) string {
	if b.router {
		switch r.Kind {
		case porttest.SpentQuota:
			return js(map[string]any{"message": "Insufficient credits: " + r.Words, "code": 402})
		case porttest.TooLong:
			return js(map[string]any{
				"message": "Provider returned error: " + r.Words, "code": 400, "metadata": map[string]any{"error_type": "context_length_exceeded"},
			})
		}
		return js(map[string]any{"message": r.Words, "code": r.Kind.Status(), "metadata": map[string]any{"provider_name": "x", "error_type": routerType(r.Kind)}})
	}
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
	if b.azure && kind[1] == "" {
		object["code"] = fmt.Sprint(r.Kind.Status())
	}
	return js(object)
}
