package openai

import (
	"bytes"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// reply is one answer as far as it has come.
type reply struct {
	model *Model
	x     *llm.Exchange
	emit  llm.Emit

	text    llm.Joiner
	thought llm.Joiner
	scratch []byte
	calls   calls
	usage   *usage
	refused bool   // the model said so in a refusal field
	finish  string // the finish reason, "" until it came
	early   bool   // more of the reply came after it
	said    bool   // something of a message has come
	shown   bool   // something of it was passed on
	keep    keepsake
}

func newReply(m *Model, x *llm.Exchange, emit llm.Emit) *reply {
	return &reply{model: m, x: x, emit: emit, keep: keepsake{Model: m.info.Ref.Model}}
}

// event takes in one event of the stream and reports whether it was the end
// mark.
func (r *reply) event(ev llm.Event) (done bool, err error) {
	if d, ok := scan(ev.Data); ok && len(ev.Name) == 0 {
		return false, r.delta(d)
	}
	if string(bytes.TrimSpace(ev.Data)) == "[DONE]" {
		return true, nil
	}
	if string(ev.Name) == "error" {
		if refusal, ok := llm.ParseRefusal(ev.Data); ok {
			return false, r.x.Refused(refusal)
		}
		return false, r.x.Refused(llm.Refusal{Message: string(ev.Data), After: -1})
	}
	c, err := decode(ev.Data)
	if err != nil {
		if refusal, ok := llm.ParseRefusal(ev.Data); ok {
			return false, r.x.Refused(refusal)
		}
		return false, r.x.Broken("it holds an event that is no JSON of the expected form")
	}
	return false, r.chunk(c, ev.Data)
}

// whole takes in an answer that is no stream.
func (r *reply) whole(body []byte) error {
	c, err := decode(body)
	if err != nil || len(c.Choices) == 0 {
		if refusal, ok := llm.ParseRefusal(body); ok {
			return r.x.Refused(refusal)
		}
		return r.x.Broken("it is no JSON of the expected form")
	}
	return r.chunk(c, body)
}

// costs passes the counts of a reply on that failed after some of it was
// shown: it was paid for all the same.
func (r *reply) costs() {
	if r.shown && r.usage != nil {
		r.emit(r.counts())
	}
}

// counts is what the server counted.
func (r *reply) counts() domain.UsageReported {
	out := domain.UsageReported{Usage: r.usage.domain()}
	if r.model.variant == openRouter {
		out.Cost = r.usage.cost()
	}
	return out
}

// delta takes in the usual event.
func (r *reply) delta(d delta) error {
	if len(d.reasoning) > 0 {
		r.scratch = llm.Unescape(r.scratch[:0], d.reasoning)
		r.keep.Field = d.field
		if err := r.think(r.scratch); err != nil {
			return err
		}
	}
	if len(d.content) > 0 {
		r.scratch = llm.Unescape(r.scratch[:0], d.content)
		if err := r.say(r.scratch); err != nil {
			return err
		}
	}
	if len(d.finish) > 0 {
		r.finished(string(llm.Unescape(nil, d.finish)))
	}
	return nil
}

// chunk takes in any other event; data is the event itself.
func (r *reply) chunk(c *chunk, data []byte) error {
	if len(c.Error) > 0 && string(c.Error) != "null" {
		refusal, _ := llm.ParseRefusal(data)
		return r.x.Refused(refusal)
	}
	if u := c.usages(); u != nil {
		r.usage = u
	}
	k := c.first()
	if k == nil {
		return nil
	}
	if len(k.Error) > 0 && string(k.Error) != "null" {
		refusal, _ := llm.ParseRefusal([]byte(`{"error":` + string(k.Error) + `}`))
		return r.x.Refused(refusal)
	}
	m := k.said()
	if m != nil && (k.Delta != nil || !r.said) {
		if err := r.message(m); err != nil {
			return err
		}
	}
	if k.Finish != "" {
		r.finished(k.Finish)
	}
	return nil
}

func (r *reply) message(m *message) error {
	field, raw := "reasoning_content", m.ReasoningContent
	if thought, _, err := textOf(raw); err != nil || len(thought) == 0 {
		field, raw = "reasoning", m.Reasoning
	}
	reasoning, _, err := textOf(raw)
	if err != nil {
		return r.x.Broken(err.Error())
	}
	content, inner, err := textOf(m.Content)
	if err != nil {
		return r.x.Broken(err.Error())
	}
	refusal, _, err := textOf(m.Refusal)
	if err != nil {
		return r.x.Broken(err.Error())
	}
	if len(reasoning) > 0 {
		r.keep.Field = field
	}
	if len(refusal) > 0 {
		r.refused = true
	}
	if err := r.think(append(reasoning, inner...)); err != nil {
		return err
	}
	if err := r.say(append(content, refusal...)); err != nil {
		return err
	}
	r.keep.add(m)
	fragments := m.Calls
	if m.Function != nil {
		fragments = append(fragments, fragment{Function: *m.Function})
	}
	for _, f := range fragments {
		r.more()
		if !r.calls.add(f) {
			return r.x.Cut(llm.ErrTooLong)
		}
	}
	return nil
}

func (r *reply) say(piece []byte) error { return r.pass(&r.text, piece, false) }

func (r *reply) think(piece []byte) error { return r.pass(&r.thought, piece, true) }

func (r *reply) pass(to *llm.Joiner, piece []byte, thought bool) error {
	if len(piece) > 0 {
		r.more()
	}
	s := to.Add(piece)
	r.shown = r.shown || s != ""
	return r.emit.Text(s, thought)
}

// more notes that something of a message has come. After a finish reason it
// shows that the reason was not the end.
func (r *reply) more() {
	r.said = true
	r.early = r.finish != ""
}

// finished notes the finish reason. From now on only counts and the end mark
// should come, and they are not waited for as long as for text.
func (r *reply) finished(reason string) {
	if r.finish == "" || r.early {
		r.x.Within(afterFinish)
	}
	r.early = false
	if r.finish == "" || !llm.Lasting(reasonOf(r.finish)) {
		r.finish = reason
	}
}

// end closes the reply when the answer has ended, with why it did if that was
// no end mark. A reply with a finish reason is complete, unless more of it came
// after that: then another reason or the end mark must close it.
func (r *reply) end(err error) error {
	if r.finish == "" || r.early && err != nil {
		return r.x.Cut(err)
	}
	reason, known := reasonOf(r.finish)
	if !known {
		return r.x.Broken("it ended with the finish reason \"" + llm.PlainWord(r.finish) + "\"")
	}
	if r.refused {
		reason = domain.FinishRefusal
	}
	calls, whole := r.calls.done()
	reason, calls, why := llm.Ending(reason, calls, whole)
	if why != "" {
		return r.x.Broken(why)
	}
	return r.close(reason, calls)
}

func (r *reply) close(reason domain.FinishReason, requested []domain.ModelCall) error {
	if err := r.emit.Text(r.thought.End(), true); err != nil {
		return err
	}
	if err := r.emit.Text(r.text.End(), false); err != nil {
		return err
	}
	var counts domain.UsageReported
	if r.usage != nil {
		counts = r.counts()
	}
	return r.emit.Close(counts, requested, domain.Finish{
		Reason: reason, Opaque: r.keep.opaque(r.model.info.Ref.Provider, r.calls.list, requested),
	})
}

// reasonOf maps a finish reason. The second result is false for one that is
// no good end: an error of the server, or a reason nobody knows.
func reasonOf(s string) (domain.FinishReason, bool) {
	switch strings.ToLower(s) {
	case "stop", "end_turn", "eos", "eos_token", "stop_sequence", "complete", "completed":
		return domain.FinishStop, true
	case "tool_calls", "function_call", "tool_use", "tool_call":
		return domain.FinishCalls, true
	case "length", "max_tokens", "model_length", "max_length":
		return domain.FinishLength, true
	case "content_filter", "refusal", "safety", "moderation", "prohibited_content", "recitation", "blocklist", "sensitive":
		return domain.FinishRefusal, true
	}
	if strings.HasPrefix(strings.ToLower(s), "content_filter") {
		return domain.FinishRefusal, true
	}
	return "", false
}
