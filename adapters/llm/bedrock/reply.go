package bedrock

import (
	"encoding/json"
	"time"

	"github.com/berth-dev/berth/adapters/llm"
)

// afterStop is how long to wait for the counts once a reply is complete.
const afterStop = 3 * time.Second

// reply is one answer as far as it has come.
type reply struct {
	model *Model
	x     *llm.Exchange
	emit  llm.Emit

	ev      event // the one at hand, kept for its memory
	scratch []byte
	begun   bool
	blocks  blocks
	usage   *usage
	stop    string // why the reply ended, "" until that came
	shown   bool   // something of it was passed on
}

func newReply(m *Model, x *llm.Exchange, emit llm.Emit) *reply {
	return &reply{model: m, x: x, emit: emit}
}

// read takes in one answer to its end.
func (r *reply) read() error {
	in := newFrames(r.x, func() {
		if r.stop == "" {
			r.x.Alive()
		}
	})
	first, err := in.First()
	if err != nil {
		return r.x.Cut(err)
	}
	switch first {
	case '<':
		return r.x.NotAnAPI("a web page")
	case '{', '[':
		return r.document(in)
	}
	for {
		f, err := in.Next()
		if err != nil {
			return r.end(err)
		}
		done, err := r.frame(f)
		if err != nil {
			return err
		}
		if done {
			r.x.Drain()
			return r.end(nil)
		}
	}
}

// maxDocument is how much is read of an answer that is no event stream.
const maxDocument = 64 << 10

// document takes in an answer that is JSON: at best an error object.
func (r *reply) document(in *frames) error {
	body, err := in.Rest(maxDocument)
	if err != nil {
		return r.x.Cut(err)
	}
	if refusal, ok := llm.ParseRefusal(body); ok {
		return r.x.Refused(refusal)
	}
	return r.x.Broken("it is no event stream")
}

// frame takes in one frame and reports whether nothing can follow it.
func (r *reply) frame(f frame) (done bool, err error) {
	switch string(f.message) {
	case "event":
	case "exception", "error":
		if r.stop != "" {
			return true, nil // the reply is complete whatever comes after
		}
		return false, r.x.Refused(f.refusal())
	default:
		return false, r.broken("a frame of an unknown kind")
	}
	switch string(f.event) {
	case "contentBlockDelta", "contentBlockStart", "contentBlockStop", "messageStart":
		if r.stop != "" {
			return false, r.broken("content behind its end")
		}
	case "messageStop", "metadata":
	default:
		return false, nil // of a kind that came after this was written
	}
	r.ev = event{}
	if err := json.Unmarshal(f.payload, &r.ev); err != nil {
		if r.stop != "" {
			return true, nil
		}
		return false, r.broken("an event that is no JSON of the expected form")
	}
	return r.event(string(f.event))
}

// broken is the failure of a wrong frame or event.
func (r *reply) broken(what string) error { return r.x.Broken("it holds " + what) }

func (r *reply) event(name string) (done bool, err error) {
	switch name {
	case "messageStart":
		if r.begun {
			return false, r.broken("two beginnings")
		}
		r.begun = true
	case "contentBlockStart":
		return false, r.start()
	case "contentBlockDelta":
		return false, r.delta()
	case "contentBlockStop":
		return false, r.close()
	case "messageStop":
		if r.stop != "" || r.ev.Stop == "" {
			return false, r.broken("an end without a reason, or two of them")
		}
		r.stop = r.ev.Stop
		r.x.Within(afterStop)
	case "metadata":
		if r.ev.Usage != nil {
			r.usage = r.ev.Usage
		}
		return r.stop != "", nil
	}
	return false, nil
}

// start begins a block that is announced.
func (r *reply) start() error {
	if c := r.ev.Start.Call; c != nil {
		if r.blocks.find(r.ev.Index, callBlock) != nil {
			return r.broken("a tool call that begins twice")
		}
		next := r.blocks.begin(r.ev.Index, callBlock)
		next.id, next.name = c.ID, c.Name
		return r.grow(len(c.ID) + len(c.Name))
	}
	return nil
}

// delta takes in a piece of a block.
func (r *reply) delta() error {
	d := &r.ev.Delta
	if len(d.Text) > 0 {
		if err := r.say(textBlock, d.Text); err != nil {
			return err
		}
	}
	if d.Thought != nil {
		if err := r.think(); err != nil {
			return err
		}
	}
	if d.Call == nil {
		return nil
	}
	k := r.blocks.find(r.ev.Index, callBlock)
	if k == nil {
		return r.broken("arguments of a tool call that has not begun")
	}
	before := len(k.args)
	var err error
	if k.args, err = llm.AppendText(k.args, d.Call.Input); err != nil {
		return r.broken(err.Error())
	}
	return r.grow(len(k.args) - before)
}

// think takes in a piece of a thought: text, signature or what cannot be
// read.
func (r *reply) think() error {
	t := r.ev.Delta.Thought
	if len(t.Text) > 0 {
		if err := r.say(thoughtBlock, t.Text); err != nil {
			return err
		}
	}
	if len(t.Signature) > 0 {
		k := r.blocks.open(r.ev.Index, thoughtBlock)
		before := len(k.signature)
		var err error
		if k.signature, err = llm.AppendText(k.signature, t.Signature); err != nil {
			return r.broken(err.Error())
		}
		return r.grow(len(k.signature) - before)
	}
	if len(t.Redacted) > 0 {
		k := r.blocks.open(r.ev.Index, redactedBlock)
		k.redacted = append(k.redacted, t.Redacted...)
		return r.grow(len(t.Redacted))
	}
	return nil
}

func (r *reply) grow(n int) error {
	if !r.blocks.grow(n) {
		return r.x.Cut(llm.ErrTooLong)
	}
	return nil
}

// say passes a piece of text or thought on.
func (r *reply) say(k kind, raw json.RawMessage) error {
	var err error
	if r.scratch, err = llm.AppendText(r.scratch[:0], raw); err != nil {
		return r.broken(err.Error())
	}
	if len(r.scratch) == 0 && k == textBlock {
		return nil
	}
	b := r.blocks.open(r.ev.Index, k)
	return r.pass(b, b.join.Add(r.scratch))
}

func (r *reply) pass(b *block, s string) error {
	if s == "" {
		return nil
	}
	b.size += len(s)
	r.shown = true
	return r.emit.Text(s, b.kind == thoughtBlock)
}

// close ends all blocks of an index.
func (r *reply) close() error {
	for _, b := range r.blocks.list {
		if b.index == r.ev.Index && !b.closed {
			b.closed = true
			if err := r.pass(b, b.join.End()); err != nil {
				return err
			}
		}
	}
	return nil
}
