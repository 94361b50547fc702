package anthropic

import (
	"bytes"
	"encoding/json"

	"github.com/berth-dev/berth/adapters/llm"
)

// reply is one answer as far as it has come.
type reply struct {
	model *Model
	x     *llm.Exchange
	emit  llm.Emit
	sent  *plan

	text    llm.Joiner
	thought llm.Joiner
	saying  *part // the block that grew last
	scratch []byte
	parts   parts
	usage   usage
	stop    string // the stop reason, "" until it came
	shown   bool   // something of it was passed on
}

// receive reads one answer, a stream or a single object, and reports whether
// something of it was passed on.
func (m *Model) receive(x *llm.Exchange, sent *plan, emit llm.Emit) (shown bool, err error) {
	defer x.Close()
	r := &reply{model: m, x: x, sent: sent, emit: emit}
	if err = r.read(); err != nil {
		r.costs()
	}
	return r.shown, err
}

func (r *reply) read() error {
	events := llm.NewEvents(r.x, r.x.Alive)
	first, err := events.First()
	if err != nil {
		return r.x.Cut(err)
	}
	switch first {
	case '<':
		return r.x.NotAnAPI("a web page")
	case '{', '[':
		body, err := events.Rest()
		if err != nil {
			return r.x.Cut(err)
		}
		return r.whole(body)
	}
	for {
		ev, err := events.Next()
		if err != nil {
			return r.x.Cut(err)
		}
		done, err := r.event(ev)
		if err != nil {
			return err
		}
		if done {
			r.x.Drain()
			return r.end()
		}
	}
}

// event takes in one event of the stream and reports whether it was the
// closing one.
func (r *reply) event(ev llm.Event) (done bool, err error) {
	if string(ev.Name) == "error" {
		if refusal, ok := llm.ParseRefusal(ev.Data); ok {
			return false, r.x.Refused(refusal)
		}
		return false, r.x.Refused(llm.Refusal{Message: string(ev.Data), After: -1})
	}
	if d, ok := scan(ev.Data); ok {
		r.scratch = llm.Unescape(r.scratch[:0], d.text)
		if d.think {
			return false, r.think(d.index, r.scratch)
		}
		return false, r.say(d.index, r.scratch)
	}
	if string(bytes.TrimSpace(ev.Data)) == "[DONE]" {
		return false, nil // an end mark of another wire; it closes nothing here
	}
	var e event
	if err := json.Unmarshal(ev.Data, &e); err != nil {
		if refusal, ok := llm.ParseRefusal(ev.Data); ok {
			return false, r.x.Refused(refusal)
		}
		return false, r.x.Broken("it holds an event that is no JSON of the expected form")
	}
	if e.Type == "error" || llm.Present(e.Error) {
		refusal, _ := llm.ParseRefusal(ev.Data)
		return false, r.x.Refused(refusal)
	}
	if e.Type == "" {
		e.Type = string(ev.Name)
	}
	return e.Type == "message_stop", r.take(&e)
}

// take takes in an event that was decoded in full. Types that are not known,
// ping among them, say nothing.
func (r *reply) take(e *event) error {
	index := noIndex
	if e.Index != nil {
		index = *e.Index
	}
	switch e.Type {
	case "message_start":
		if e.Message != nil {
			r.usage.replace(e.Message.Usage)
		}
	case "content_block_start":
		if e.Block != nil {
			return r.begin(index, e.Block)
		}
	case "content_block_delta":
		if e.Delta != nil {
			return r.grow(index, e.Delta)
		}
	case "message_delta":
		if e.Delta != nil && e.Delta.Stop != "" {
			r.stopped(e.Delta.Stop)
		}
		r.usage.replace(e.Usage)
	}
	return nil
}

// whole takes in an answer that is no stream.
func (r *reply) whole(body []byte) error {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil || a.Type == "error" || a.Content == nil && a.Stop == "" {
		if refusal, ok := llm.ParseRefusal(body); ok {
			return r.x.Refused(refusal)
		}
		return r.x.Broken("it is no JSON of the expected form")
	}
	r.usage.replace(a.Usage)
	for i, b := range a.Content {
		if b == nil {
			continue
		}
		if err := r.begin(i, b); err != nil {
			return err
		}
	}
	r.stop = a.Stop
	return r.end()
}

// begin takes in the beginning of a block, which may hold all of it.
func (r *reply) begin(index int, b *piece) error {
	switch b.Type {
	case "text":
		r.parts.add(isText, index)
		return r.raw(b.Text, index, r.say)
	case "thinking":
		p := r.parts.add(isThought, index)
		p.signature = b.Signature
		return r.raw(b.Thinking, index, r.think)
	case "redacted_thinking":
		r.parts.add(isRedacted, index).data = b.Data
	case "tool_use":
		p := r.parts.add(isCall, index)
		p.id, p.name, p.input = b.ID, b.Name, bytes.Clone(b.Input)
		return r.hold(len(b.Input))
	default:
		r.parts.add(foreign, index)
	}
	return nil
}

// grow takes in what is added to a block.
func (r *reply) grow(index int, d *piece) error {
	switch d.Type {
	case "text_delta":
		return r.raw(d.Text, index, r.say)
	case "thinking_delta":
		return r.raw(d.Thinking, index, r.think)
	case "signature_delta":
		if p := r.parts.at(index); p != nil && p.kind == isThought && d.Signature != "" {
			p.signature = d.Signature
			return r.hold(len(d.Signature))
		}
	case "input_json_delta":
		args, err := llm.AppendText(nil, d.Partial)
		if err != nil {
			return r.x.Broken(err.Error())
		}
		p := r.parts.at(index)
		if p == nil {
			return r.x.Broken("it holds arguments of a tool call that never began")
		}
		if p.kind == isCall {
			p.args = append(p.args, args...)
			return r.hold(len(args))
		}
	}
	return nil
}

func (r *reply) raw(raw rawMessage, index int, to func(int, []byte) error) error {
	text, err := llm.AppendText(nil, raw)
	if err != nil {
		return r.x.Broken(err.Error())
	}
	return to(index, text)
}

func (r *reply) hold(n int) error {
	if !r.parts.grow(n) {
		return r.x.Cut(llm.ErrTooLong)
	}
	return nil
}

func (r *reply) say(index int, piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	p := r.parts.of(isText, index)
	if p.kind == foreign {
		return nil
	}
	if err := r.turnTo(p); err != nil {
		return err
	}
	return r.tell(p, r.text.Add(piece))
}

func (r *reply) think(index int, piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	p := r.parts.of(isThought, index)
	if p.kind == foreign {
		return nil
	}
	if err := r.turnTo(p); err != nil {
		return err
	}
	if err := r.hold(len(piece)); err != nil {
		return err
	}
	return r.tell(p, r.thought.Add(piece))
}

// turnTo goes on to a block. What the one before left of a character never
// will be one.
func (r *reply) turnTo(p *part) error {
	if p == r.saying {
		return nil
	}
	before := r.saying
	r.saying = p
	if before == nil {
		return nil
	}
	if before.kind == isThought {
		return r.tell(before, r.thought.End())
	}
	return r.tell(before, r.text.End())
}

// tell passes a piece of a block on.
func (r *reply) tell(p *part, s string) error {
	if s == "" {
		return nil
	}
	r.shown = true
	if p.kind == isThought {
		p.thought = append(p.thought, s...)
	} else {
		p.text += len(s)
	}
	return r.emit.Text(s, p.kind == isThought)
}
