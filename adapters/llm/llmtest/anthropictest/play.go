package anthropictest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

func js(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// player writes the events of one answer.
type player struct {
	*llmtest.Writer
	style  Style
	signed bool
	reply  said

	open    string // the type of the block that is open, "" when none is
	blocks  int
	thought strings.Builder
	text    strings.Builder
}

// play writes an answer.
func (f *fake) play(w *llmtest.Writer, r porttest.Reply, body []byte) {
	if r.Refusal != nil {
		w.Refuse(*r.Refusal, refusal(*r.Refusal))
		return
	}
	p := &player{Writer: w, style: f.style, signed: r.Signed}
	w.Begin("text/event-stream; charset=utf-8")
	if r.End == porttest.EndSilent && len(r.Parts) == 0 {
		w.Hang()
		return
	}
	p.begin(r.Usage)
	called := false
	for _, part := range r.Parts {
		switch part := part.(type) {
		case porttest.SendText:
			p.block("text", `{"type":"text","text":""}`)
			p.delta(`{"type":"text_delta","text":` + js(string(part)) + `}`)
			p.text.WriteString(string(part))
		case porttest.SendThought:
			p.block("thinking", `{"type":"thinking","thinking":"","signature":""}`)
			p.delta(`{"type":"thinking_delta","thinking":` + js(string(part)) + `}`)
			p.thought.WriteString(string(part))
		case porttest.SendCall:
			p.call(part, r.End)
			called = true
		case porttest.Wait:
			w.Wait(part)
		}
	}
	p.end(r, called)
	if r.Signed {
		f.remember(p.reply, body)
	}
}

// event writes one event.
func (p *player) event(name, data string) {
	nl := "\n"
	if p.style.Newline != "" {
		nl = p.style.Newline
	}
	var b strings.Builder
	if p.style.Pings {
		b.WriteString(": keep-alive" + nl + nl + "event: ping" + nl + `data: {"type": "ping"}` + nl + nl)
	}
	if !p.style.Loose {
		b.WriteString("event: " + name + nl)
	}
	if p.style.Extra && strings.HasSuffix(data, "}") {
		data = strings.Replace(data, `,"index":`, `, "index" : `, 1)
		data = data[:len(data)-1] + strings.Repeat(" ", len(data)%9) + "}"
	}
	b.WriteString("data: " + data + nl + nl)
	p.Send(b.String())
}

// begin writes the beginning of the message.
func (p *player) begin(u domain.Usage) {
	if p.style.Extra {
		p.event("status", `{"type":"status","note":"in a moment"}`)
	}
	if p.style.Loose {
		return
	}
	usage := ""
	if u != (domain.Usage{}) {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":1}`,
			u.Input-u.CachedRead-u.CachedWrite, u.CachedWrite, u.CachedRead)
	}
	p.event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":`+js(p.style.Name)+
		`,"content":[],"stop_reason":null,"stop_sequence":null`+usage+`}}`)
}

// index is the index of the newest block.
func (p *player) index() int {
	if p.style.Loose {
		return 3*p.blocks + 1
	}
	return p.blocks - 1
}

// block goes on with a block of that type, or begins one.
func (p *player) block(kind, object string) {
	if p.open == kind && kind != "tool_use" {
		return
	}
	p.shut()
	p.open = kind
	p.blocks++
	p.event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, p.index(), object))
}

func (p *player) delta(object string) {
	p.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, p.index(), object))
	if p.style.Extra {
		p.event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"moon_delta","moon":"blue","text":"no"}}`, p.index()))
	}
}

// shut ends the open block.
func (p *player) shut() {
	kind := p.open
	if p.open = ""; kind == "" {
		return
	}
	if kind == "thinking" {
		text := p.thought.String()
		p.thought.Reset()
		if p.signed {
			p.delta(`{"type":"signature_delta","signature":` + js(signature(text)) + `}`)
			p.reply = append(p.reply, thoughtLine(text, signature(text)))
		}
	}
	if kind == "text" {
		p.reply = append(p.reply, textLine(p.text.String()))
		p.text.Reset()
	}
	if !p.style.Loose {
		p.event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, p.index()))
	}
	if kind == "thinking" && p.signed && p.style.Redacted {
		p.block("redacted_thinking", `{"type":"redacted_thinking","data":"EroB+/=="}`)
		p.reply = append(p.reply, thoughtLine("", "EroB+/=="))
	}
	if p.style.Extra && kind != "redacted_thinking" {
		p.block("moon", `{"type":"moon","id":"m","name":"moon","input":{},"text":"no"}`)
		p.delta(`{"type":"input_json_delta","partial_json":"{\"no"}`)
	}
}

// call writes a call, its arguments in pieces. One without an end is left open.
func (p *player) call(c porttest.SendCall, end porttest.ReplyEnd) {
	id := ""
	if c.ID != "" {
		id = `"id":` + js(c.ID) + `,`
	}
	caller := `,"caller":{"type":"direct"}`
	if p.style.Loose {
		caller = ""
	}
	p.block("tool_use", `{"type":"tool_use",`+id+`"name":`+js(c.Name)+`,"input":{}`+caller+`}`)
	if !p.style.Loose {
		p.delta(`{"type":"input_json_delta","partial_json":""}`)
	}
	for _, piece := range llmtest.Pieces(c.Args, c.Pieces) {
		p.delta(`{"type":"input_json_delta","partial_json":` + js(piece) + `}`)
	}
	p.reply = append(p.reply, callLine(c.Name, c.Args))
	if end == porttest.EndSilent {
		p.open = ""
	}
}

// end writes how the answer ends.
func (p *player) end(r porttest.Reply, called bool) {
	switch r.End {
	case porttest.EndComplete:
		if called {
			p.close("tool_use", r.Usage)
		} else {
			p.close("end_turn", r.Usage)
		}
	case porttest.EndLength:
		p.close("max_tokens", r.Usage)
	case porttest.EndRefusal:
		p.close("refusal", r.Usage)
	case porttest.EndCut:
	case porttest.EndBroken:
		p.Break()
	case porttest.EndSilent:
		p.Hang()
	case porttest.EndMalformed:
		p.event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lost`)
	case porttest.EndError:
		p.event("error", refusal(r.Fault))
	}
}

// close writes the closing events.
func (p *player) close(reason string, u domain.Usage) {
	p.shut()
	if p.open != "" { // what comes behind the last block is a block too
		p.open = ""
		p.event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, p.index()))
	}
	usage := ""
	if u != (domain.Usage{}) {
		usage = fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d,`+
			`"output_tokens_details":{"thinking_tokens":%d}}`, u.Input-u.CachedRead-u.CachedWrite, u.CachedWrite, u.CachedRead, u.Output, u.Thought)
		if p.style.Loose {
			usage = fmt.Sprintf(`,"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}`,
				u.Input-u.CachedRead, u.CachedRead, u.Output, u.Thought)
		}
	}
	details := "null"
	if reason == "refusal" {
		details = `{"type":"refusal","category":null,"explanation":null}`
	}
	p.event("message_delta", `{"type":"message_delta","delta":{"stop_reason":`+js(reason)+`,"stop_sequence":null,"stop_details":`+details+`}`+usage+`}`)
	p.event("message_stop", `{"type":"message_stop"}`)
}

func errorObject(kind, words string) string {
	return `{"type":"error","error":{"type":` + js(kind) + `,"message":` + js(words) + `},"request_id":"req_1"}`
}

// refusal is the error object of a refusal.
func refusal(r porttest.Refusal) string {
	words := r.Words
	if r.Kind == porttest.TooLong {
		words = "prompt is too long: 210000 tokens > 200000 maximum; " + words
	}
	kinds := map[porttest.RefusalKind]string{
		porttest.KeyRefused: "authentication_error", porttest.Forbidden: "permission_error", porttest.BadRequest: "invalid_request_error",
		porttest.NoSuchModel: "not_found_error", porttest.TooLong: "invalid_request_error", porttest.TooManyTokens: "request_too_large",
		porttest.LimitedRate: "rate_limit_error", porttest.SpentQuota: "billing_error", porttest.Overloaded: "overloaded_error",
		porttest.GatewayTimeout: "timeout_error",
	}
	kind, ok := kinds[r.Kind]
	if !ok {
		kind = "api_error"
	}
	return errorObject(kind, words)
}
