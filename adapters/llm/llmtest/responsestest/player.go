package responsestest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/adapters/llm/llmtest"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// phase is that of the messages of signed replies.
const phase = "commentary"

// player writes the events of one answer.
type player struct {
	w    *llmtest.Writer
	form Form
	nth  int // which answer of the server it is
	seq  int

	items  []map[string]any // the finished items, as the closing event lists them
	kind   string           // of the item under way, "" when there is none
	text   string           // of it, so far
	signed bool             // it carries what has to come back
}

// raw writes an event as it stands.
func (p *player) raw(name, data string) {
	nl := "\n"
	if p.form.Newline != "" {
		nl = p.form.Newline
	}
	var b strings.Builder
	if p.form.Comments {
		b.WriteString(": keep-alive" + nl + nl)
	}
	if !p.form.Unnamed {
		b.WriteString("event: " + name + nl)
	}
	b.WriteString("data: " + data + nl + nl)
	p.w.Send(b.String())
}

func (p *player) event(name, fields string) {
	p.seq++
	more := ""
	if p.form.Extra {
		more = `,"obfuscation":"xQ","safety":{"a":[1,null,{"delta":"no"}]}`
	}
	p.raw(name, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s%s}`, name, p.seq, fields, more))
	if p.form.Extra && name == "response.in_progress" {
		p.raw("response.weather_call.searching", `{"type":"response.weather_call.searching","output_index":0,"delta":"no"}`)
		p.raw("ping", `{}`)
	}
}

// at is where an event of the item under way belongs.
func (p *player) at() string {
	id := p.id()
	if p.form.Shifty {
		id = fmt.Sprintf("shifty_%d", p.seq)
	}
	if p.form.NoIndex {
		return fmt.Sprintf(`"item_id":%q,`, id)
	}
	return fmt.Sprintf(`"item_id":%q,"output_index":%d,`, id, len(p.items))
}

// id is the id of the item under way.
func (p *player) id() string {
	return map[string]string{"message": "msg", "reasoning": "rs", "function_call": "fc"}[p.kind] + fmt.Sprintf("_%d_%d", p.nth, len(p.items))
}

func (p *player) itemEvent(name string, item map[string]any) {
	if p.form.Shifty {
		item["id"] = fmt.Sprintf("shifty_%d", p.seq)
	}
	place := ""
	if !p.form.NoIndex {
		place = fmt.Sprintf(`"output_index":%d,`, len(p.items))
	}
	p.event(name, place+`"item":`+js(item))
}

// begin opens an item of a kind, closing the one before.
func (p *player) begin(kind string, item map[string]any, signed bool) {
	p.close()
	p.kind, p.text, p.signed = kind, "", signed
	item["id"], item["type"] = p.id(), kind
	if !p.form.Bare {
		p.itemEvent("response.output_item.added", item)
	}
}

func (p *player) part(part porttest.ReplyPart, signed bool) {
	switch part := part.(type) {
	case porttest.SendText:
		p.say(string(part), signed)
	case porttest.SendThought:
		p.think(string(part), signed)
	case porttest.SendCall:
		p.call(part)
	}
}

func (p *player) delta(name, where, piece string) {
	p.event(name, p.at()+where+`"delta":`+js(piece))
}

func (p *player) say(s string, signed bool) {
	if p.kind != "message" {
		item := map[string]any{"status": "in_progress", "role": "assistant", "content": []any{}}
		if signed {
			item["phase"] = phase
		}
		p.begin("message", item, signed)
		if !p.form.Bare {
			p.event("response.content_part.added", p.at()+`"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
		}
	}
	p.text += s
	p.delta("response.output_text.delta", `"content_index":0,"logprobs":[],`, s)
}

func (p *player) think(s string, signed bool) {
	if p.kind != "reasoning" {
		p.begin("reasoning", map[string]any{"summary": []any{}}, signed)
		if !p.form.Bare {
			p.partEvent("added", "")
		}
	}
	p.text += s
	if p.form.Spoken {
		p.delta("response.reasoning_text.delta", `"content_index":0,`, s)
		return
	}
	p.delta("response.reasoning_summary_text.delta", `"summary_index":0,`, s)
}

// partEvent tells of the one part of the reasoning under way.
func (p *player) partEvent(what, text string) {
	if p.form.Spoken {
		p.event("response.content_part."+what, p.at()+`"content_index":0,"part":{"type":"reasoning_text","text":`+js(text)+`}`)
		return
	}
	p.event("response.reasoning_summary_part."+what, p.at()+`"summary_index":0,"part":{"type":"summary_text","text":`+js(text)+`}`)
}

func (p *player) call(c porttest.SendCall) {
	item := map[string]any{"status": "in_progress", "name": c.Name, "arguments": ""}
	if c.ID != "" {
		item["call_id"] = c.ID
	}
	p.begin("function_call", item, false)
	for _, piece := range llmtest.Pieces(c.Args, c.Pieces) {
		if p.form.NoDeltas {
			break
		}
		p.delta("response.function_call_arguments.delta", "", piece)
	}
	if !p.form.Bare {
		p.event("response.function_call_arguments.done", p.at()+`"name":`+js(c.Name)+`,"arguments":`+js(c.Args))
	}
	item["status"], item["arguments"] = "completed", c.Args
	p.finish(item)
}

// close ends the item under way.
func (p *player) close() {
	switch p.kind {
	case "message":
		text := map[string]any{"type": "output_text", "annotations": []any{}, "text": p.text}
		if !p.form.Bare {
			p.event("response.output_text.done", p.at()+`"content_index":0,"logprobs":[],"text":`+js(p.text))
			p.event("response.content_part.done", p.at()+`"content_index":0,"part":`+js(text))
		}
		item := map[string]any{"id": p.id(), "type": p.kind, "status": "completed", "role": "assistant", "content": []any{text}}
		if p.signed {
			item["phase"] = phase
		}
		p.finish(item)
	case "reasoning":
		switch {
		case p.form.Bare:
		case p.form.Spoken:
			p.event("response.reasoning_text.done", p.at()+`"content_index":0,"text":`+js(p.text))
			p.partEvent("done", p.text)
		default:
			p.event("response.reasoning_summary_text.done", p.at()+`"summary_index":0,"text":`+js(p.text))
			p.partEvent("done", p.text)
		}
		item := map[string]any{"id": p.id(), "type": p.kind, "summary": []any{}, "encrypted_content": nil}
		if p.form.Spoken {
			item["content"] = []any{map[string]any{"type": "reasoning_text", "text": p.text}}
		} else {
			item["summary"] = []any{map[string]any{"type": "summary_text", "text": p.text}}
		}
		if p.signed {
			item["encrypted_content"] = fmt.Sprintf("gAAAAAB<%d.%d>&==", p.nth, len(p.items))
		}
		p.finish(item)
	}
}

func (p *player) finish(item map[string]any) {
	p.itemEvent("response.output_item.done", item)
	p.items = append(p.items, item)
	p.kind = ""
}

// response is the response as it stands.
func (p *player) response(status, reason string, u domain.Usage) string {
	r := map[string]any{
		"id": fmt.Sprintf("resp_%d", p.nth), "object": "response", "created_at": 1700000000, "status": status,
		"error": nil, "incomplete_details": nil, "model": model, "output": []any{}, "parallel_tool_calls": true,
		"store": false, "tool_choice": "auto", "tools": []any{}, "usage": nil,
	}
	if reason != "" {
		r["incomplete_details"] = map[string]any{"reason": reason}
	}
	if status != "in_progress" && !p.form.NoItems && len(p.items) > 0 {
		r["output"] = p.items
	}
	if u != (domain.Usage{}) {
		r["usage"] = json.RawMessage(fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"output_tokens":%d,`+
			`"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`, u.Input, u.CachedRead, u.CachedWrite, u.Output, u.Thought, u.Input+u.Output))
	}
	return js(r)
}
