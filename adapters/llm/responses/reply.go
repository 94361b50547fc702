package responses

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
	"github.com/berth-dev/berth/core/domain"
)

// reply is one answer as far as it has come.
type reply struct {
	model *Model
	x     *llm.Exchange
	emit  llm.Emit

	text     llm.Joiner
	thought  llm.Joiner
	scratch  []byte
	items    []*item
	bytes    int   // of all items
	speaking *item // whose text came last
	thinking *item // whose thoughts came last
	usage    *usage
	refused  bool // the model said so
	begun    bool // something of the reply has come
	shown    bool // something was passed on
	finish   domain.FinishReason
}

func (r *reply) malformed() error {
	return r.x.Broken("it holds an event that is no JSON of the expected form")
}

func (r *reply) notText() error { return r.x.Broken(llm.ErrNotText.Error()) }

// event takes in one event of the stream and reports whether it closed the
// response.
func (r *reply) event(ev llm.Event) (closed bool, err error) {
	if string(bytes.TrimSpace(ev.Data)) == "[DONE]" {
		return false, nil // some servers send it; it proves nothing
	}
	var e event
	if err := json.Unmarshal(ev.Data, &e); err != nil {
		if refusal, ok := llm.ParseRefusal(ev.Data); ok {
			return false, r.x.Refused(refusal)
		}
		return false, r.malformed()
	}
	if e.Type == "" {
		e.Type = string(ev.Name)
	}
	r.begun = r.begun || !isPrelude(e.Type)
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		r.refused = r.refused || e.Type == "response.refusal.delta"
		return false, r.textDelta(&e)
	case "response.reasoning_summary_text.delta":
		return false, r.thoughtDelta(&e, e.Summary)
	case "response.reasoning_text.delta":
		return false, r.thoughtDelta(&e, e.Content)
	case "response.function_call_arguments.delta":
		return false, r.argsDelta(&e)
	case "response.function_call_arguments.done":
		return false, r.wholeArgs(r.piece(kindCall, &e), e.Args)
	case "response.output_item.added":
		return false, r.added(&e)
	case "response.output_item.done":
		return false, r.finished(e.Item, indexOf(&e), nil)
	case "response.completed", "response.incomplete", "response.failed":
		return true, r.closing(&e)
	case "error":
		return false, r.failed(ev.Data)
	}
	if llm.Present(e.Error) {
		return false, r.failed(ev.Data)
	}
	return false, nil
}

// isPrelude reports whether an event tells no more than that the request has
// arrived.
func isPrelude(kind string) bool {
	return kind == "response.created" || kind == "response.in_progress" || kind == "response.queued" || kind == "keepalive"
}

// alive notes a sign of life. Until something of the reply has come, the
// provider may be as silent as before its first sign: the request is
// acknowledged at once, and then a model may think for long.
func (r *reply) alive() {
	if r.begun {
		r.x.Alive()
		return
	}
	r.x.Within(max(r.model.provider.FirstByte(), llm.DefaultIdle))
}

// failed is the failure of an error object.
func (r *reply) failed(data []byte) error {
	refusal, ok := llm.ParseRefusal(data)
	if !ok {
		refusal = llm.Refusal{Message: string(data), After: -1}
	}
	return r.x.Refused(refusal)
}

func (r *reply) textDelta(e *event) error {
	var err error
	if r.scratch, err = llm.AppendText(r.scratch[:0], e.Delta); err != nil {
		return r.notText()
	}
	return r.say(r.piece(kindMessage, e), r.scratch)
}

func (r *reply) thoughtDelta(e *event, part int) error {
	var err error
	if r.scratch, err = llm.AppendText(r.scratch[:0], e.Delta); err != nil {
		return r.notText()
	}
	return r.think(r.piece(kindReasoning, e), part, r.scratch)
}

func (r *reply) argsDelta(e *event) error {
	var err error
	if r.scratch, err = llm.AppendText(r.scratch[:0], e.Delta); err != nil {
		return r.notText()
	}
	return r.keep(r.piece(kindCall, e), r.scratch)
}

// keep adds a piece to what has come of an item.
func (r *reply) keep(it *item, piece []byte) error {
	it.got = append(it.got, piece...)
	if r.grow(len(piece)); r.bytes > llm.MaxEvent {
		return r.x.Cut(llm.ErrTooLong)
	}
	return nil
}

func (r *reply) grow(n int) { r.bytes += n }

// say passes a piece of a message on. Messages are parted by a blank line.
func (r *reply) say(it *item, piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	if err := r.keep(it, piece); err != nil {
		return err
	}
	if r.speaking != it {
		if r.speaking != nil {
			if err := r.endText(between); err != nil {
				return err
			}
		}
		r.speaking = it
	}
	s := r.text.Add(piece)
	it.said += len(s)
	return r.show(domain.TextDelta{Text: s}, s)
}

// endText passes on what is left of the message that spoke last, and what
// follows it.
func (r *reply) endText(more string) error {
	left := r.text.End()
	if r.speaking != nil {
		r.speaking.said += len(left)
	}
	return r.show(domain.TextDelta{Text: left + more}, left+more)
}

// think passes a piece of reasoning on. Parts of it are parted by a blank
// line, whichever item they are of.
func (r *reply) think(it *item, part int, piece []byte) error {
	if len(piece) == 0 {
		return nil
	}
	if err := r.keep(it, piece); err != nil {
		return err
	}
	if r.thinking != nil && (r.thinking != it || it.part != part) {
		s := r.thought.End() + between
		if err := r.show(domain.ThoughtDelta{Text: s}, s); err != nil {
			return err
		}
	}
	r.thinking, it.part = it, part
	s := r.thought.Add(piece)
	return r.show(domain.ThoughtDelta{Text: s}, s)
}

// show passes an event on unless its text is empty.
func (r *reply) show(ev domain.ModelEvent, text string) error {
	if text == "" {
		return nil
	}
	r.shown = true
	if !r.emit(ev) {
		return llm.ErrLeft
	}
	return nil
}

// costs passes the counts of a reply on that failed after some of it was
// shown: it was paid for all the same.
func (r *reply) costs() {
	if r.shown && r.usage != nil {
		r.emit(domain.UsageReported{Usage: r.usage.domain()})
	}
}

// closing takes in the event that closes a response.
func (r *reply) closing(e *event) error {
	var resp response
	if llm.Present(e.Response) && json.Unmarshal(e.Response, &resp) != nil {
		return r.malformed()
	}
	switch resp.Status {
	case "completed", "incomplete", "failed", "cancelled":
	default:
		resp.Status = strings.TrimPrefix(e.Type, "response.")
	}
	return r.closed(&resp, e.Response)
}

// whole takes in an answer that is no stream.
func (r *reply) whole(body []byte) error {
	var resp response
	if err := json.Unmarshal(body, &resp); err != nil || (resp.Object != "response" && resp.Output == nil) {
		if refusal, ok := llm.ParseRefusal(body); ok {
			return r.x.Refused(refusal)
		}
		return r.x.Broken("it is no JSON of the expected form")
	}
	return r.closed(&resp, body)
}

// closed decides what a response that has ended is worth; data is the
// response itself.
func (r *reply) closed(resp *response, data []byte) error {
	if resp.Usage != nil {
		r.usage = resp.Usage
	}
	if llm.Present(resp.Error) {
		return r.failed(data)
	}
	reason := ""
	if resp.Incomplete != nil {
		reason = resp.Incomplete.Reason
	}
	switch {
	case resp.Status == "completed":
		r.finish = domain.FinishStop
	case resp.Status == "incomplete" && reason == "max_output_tokens":
		r.finish = domain.FinishLength
	case resp.Status == "incomplete" && reason == "content_filter":
		r.finish = domain.FinishRefusal
	case resp.Status == "failed":
		return r.x.Refused(llm.Refusal{Message: "the response failed", After: -1})
	default:
		return r.x.Broken("it ended with the status \"" + llm.PlainWord(resp.Status) + "\" and the reason \"" + llm.PlainWord(reason) + "\"")
	}
	return r.absorb(resp.Output)
}

// end closes the reply after its closing event.
func (r *reply) end() error {
	if r.refused {
		r.finish = domain.FinishRefusal
	}
	calls, whole := r.calls()
	reason, calls, why := llm.Ending(r.finish, calls, whole)
	if why != "" {
		return r.x.Broken(why)
	}
	r.finish = reason
	if err := r.emit.Text(r.thought.End(), true); err != nil {
		return err
	}
	if err := r.endText(""); err != nil {
		return err
	}
	var counts domain.UsageReported
	if r.usage != nil {
		counts.Usage = r.usage.domain()
	}
	return r.emit.Close(counts, calls, domain.Finish{Reason: r.finish, Opaque: r.opaque()})
}

// calls returns the calls of the reply. It reports false when one of them is
// not whole, has no name, or arguments that are no JSON object.
func (r *reply) calls() (calls []domain.ModelCall, whole bool) {
	for _, it := range r.ofKind(kindCall) {
		args, ok := llm.Arguments(it.got)
		if it.name == "" || it.half || !ok {
			return nil, false
		}
		calls = append(calls, domain.ModelCall{ProviderID: it.callID, Name: it.name, Args: args})
	}
	return calls, true
}
