package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/berth-dev/berth/adapters/llm"
)

// The kinds of items that mean something here. Others, such as searches that
// the provider ran itself, are passed over.
const (
	kindMessage   = "message"
	kindReasoning = "reasoning"
	kindCall      = "function_call"
)

// item is one item of a reply as far as it has come.
type item struct {
	kind   string
	id     string
	index  int // -1 when the server gives none
	callID string
	name   string
	phase  string
	got    []byte // what came in pieces: text, thoughts or arguments
	said   int    // bytes of it that the reply's text holds
	part   int    // of thoughts: which one came last
	raw    json.RawMessage
	done   bool // its closing event came
	half   bool // and said that it is not whole
}

// noIndex is the index of events without one.
const noIndex = -1

func indexOf(ev *event) int {
	if ev.Index == nil {
		return noIndex
	}
	return *ev.Index
}

// open returns the item of a kind that an event is about: the one with its id,
// else the call with its call id, else the one at its index, else, for an
// event without an index, the newest. Some servers change ids between events,
// others count all items as the first; an item that is done takes nothing more.
func (r *reply) open(kind, id, callID string, index int) *item {
	for _, fits := range []func(*item) bool{
		func(it *item) bool { return id != "" && it.id == id },
		func(it *item) bool { return callID != "" && it.callID == callID },
		func(it *item) bool { return callID == "" || it.callID == "" || it.callID == callID },
	} {
		for _, it := range slices.Backward(r.items) {
			if it.kind == kind && !it.done && fits(it) && (id != "" && it.id == id || index == noIndex || it.index == noIndex || it.index == index) {
				return it
			}
		}
	}
	return nil
}

// piece returns the item that a delta belongs to. One that was not announced
// begins with it.
func (r *reply) piece(kind string, ev *event) *item {
	if it := r.open(kind, ev.ItemID, "", indexOf(ev)); it != nil {
		return it
	}
	return r.begin(kind, ev.ItemID, indexOf(ev))
}

func (r *reply) begin(kind, id string, index int) *item {
	it := &item{kind: kind, id: id, index: index}
	r.items = append(r.items, it)
	return it
}

// added takes in an item that begins.
func (r *reply) added(ev *event) error {
	var o output
	if err := json.Unmarshal(ev.Item, &o); err != nil {
		return r.malformed()
	}
	if !known(o.Type) {
		return nil
	}
	it := r.begin(o.Type, o.ID, indexOf(ev))
	it.callID, it.name, it.phase = o.CallID, o.Name, o.Phase
	return nil
}

func known(kind string) bool { return kind == kindMessage || kind == kindReasoning || kind == kindCall }

// finished takes in a whole item: what its closing event says, or what stands
// in the response itself. Of, when not nil, is the item it is known to be.
func (r *reply) finished(raw json.RawMessage, index int, of *item) error {
	var o output
	if err := json.Unmarshal(raw, &o); err != nil {
		return r.malformed()
	}
	if !known(o.Type) {
		return nil
	}
	it := of
	if it == nil {
		if r.repeats(o) {
			return nil
		}
		it = r.open(o.Type, o.ID, o.CallID, index)
	}
	if it == nil {
		it = r.begin(o.Type, o.ID, index)
	}
	it.done = true
	it.half = o.Status == "incomplete" || o.Status == "in_progress"
	if o.Phase != "" {
		it.phase = o.Phase
	}
	switch o.Type {
	case kindMessage:
		return r.wholeMessage(it, o)
	case kindReasoning:
		return r.wholeReasoning(it, o, raw)
	}
	return r.wholeCall(it, o)
}

// repeats reports whether an item has been closed already.
func (r *reply) repeats(o output) bool {
	return o.ID != "" && slices.ContainsFunc(r.items, func(it *item) bool {
		return it.done && it.kind == o.Type && it.id == o.ID && it.callID == o.CallID
	})
}

// wholeMessage compares a message with its pieces, and passes on what of it
// was not streamed.
func (r *reply) wholeMessage(it *item, o output) error {
	var text []byte
	for _, c := range o.Content {
		field := c.Text
		if c.Type == "refusal" {
			r.refused, field = true, c.Refusal
		}
		var err error
		if text, err = llm.AppendText(text, field); err != nil {
			return r.notText()
		}
	}
	if o.Content == nil {
		return nil
	}
	came, all := llm.Whole(it.got), llm.Whole(text)
	rest, ok := strings.CutPrefix(all, came)
	if !ok {
		return r.x.Broken("the text of a message is not the one that came in pieces")
	}
	return r.say(it, []byte(rest))
}

// wholeReasoning keeps reasoning to be given back. One without its encrypted
// form or its own text cannot be read by a server that has not stored it.
func (r *reply) wholeReasoning(it *item, o output, raw json.RawMessage) error {
	if llm.Present(o.Encrypted) && string(o.Encrypted) != `""` || len(o.Content) > 0 {
		it.raw = raw
		if r.grow(len(raw)); r.bytes > llm.MaxEvent {
			return r.x.Cut(llm.ErrTooLong)
		}
	}
	if len(it.got) > 0 {
		return nil
	}
	parts := o.Summary
	if len(parts) == 0 {
		parts = o.Content
	}
	for i, c := range parts {
		text, err := llm.AppendText(nil, c.Text)
		if err != nil {
			return r.notText()
		}
		if err := r.think(it, i, text); err != nil {
			return err
		}
	}
	return nil
}

// wholeCall takes what the closing event of a call says, which must be what
// came in pieces.
func (r *reply) wholeCall(it *item, o output) error {
	if it.name != "" && o.Name != "" && it.name != o.Name {
		return r.x.Broken("a tool call has changed its name")
	}
	if o.Name != "" {
		it.name = o.Name
	}
	if o.CallID != "" {
		it.callID = o.CallID
	}
	return r.wholeArgs(it, o.Args)
}

func (r *reply) wholeArgs(it *item, raw json.RawMessage) error {
	if !llm.Present(raw) {
		return nil
	}
	args := llm.AppendArguments(nil, raw)
	if len(it.got) > 0 && !sameArgs(it.got, args) {
		return r.x.Broken("the arguments of a tool call are not those that came in pieces")
	}
	if r.grow(len(args) - len(it.got)); r.bytes > llm.MaxEvent {
		return r.x.Cut(llm.ErrTooLong)
	}
	it.got = args
	return nil
}

// ofKind returns the items of a kind, in order.
func (r *reply) ofKind(kind string) []*item {
	var out []*item
	for _, it := range r.items {
		if it.kind == kind {
			out = append(out, it)
		}
	}
	return out
}

// absorb compares the items of the closing event with those that came before
// it, and takes in the ones that did not.
func (r *reply) absorb(items []json.RawMessage) error {
	listed := map[string][]json.RawMessage{}
	fresh := len(r.items) == 0
	for i, raw := range items {
		var o struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(raw, &o) != nil {
			return r.malformed()
		}
		if fresh {
			if err := r.finished(raw, i, nil); err != nil {
				return err
			}
		}
		listed[o.Type] = append(listed[o.Type], raw)
	}
	if fresh || len(items) == 0 {
		return nil
	}
	for _, kind := range []string{kindReasoning, kindMessage, kindCall} {
		if err := r.settle(listed[kind], r.ofKind(kind), kind); err != nil {
			return err
		}
	}
	return nil
}

// settle closes what came of a kind with what is listed of it.
func (r *reply) settle(listed []json.RawMessage, came []*item, kind string) error {
	switch {
	case len(came) == len(listed):
		for i, it := range came {
			if !it.done {
				if err := r.finished(listed[i], it.index, it); err != nil {
					return err
				}
			}
		}
	case len(came) == 0:
		for _, raw := range listed {
			if err := r.finished(raw, noIndex, nil); err != nil {
				return err
			}
		}
	case kind == kindCall:
		return r.x.Broken("its closing event lists other tool calls than came before it")
	}
	return nil
}
