package domain

import (
	"slices"
	"strings"
)

// InterruptedText is what the model reads as the result of a call whose
// outcome was never stored.
const InterruptedText = "Interrupted: the agent stopped before the result of this call was stored. " +
	"It may or may not have taken effect; check before you repeat it."

// NotRunText is what the model reads as the result of a call that its turn
// ended without starting.
const NotRunText = "Not run: the turn ended before this call was started."

// Conversation is a journal folded into what the next turn needs. Add records
// in order; any prefix of a journal gives a valid conversation. The zero
// value is an empty one. It is not safe for concurrent use.
type Conversation struct {
	messages []ModelMessage
	rules    []Rule
	plan     []PlanEntry
	title    string
	events   []ClientEvent // for the model with the next prompt
	notes    []string      // for the model with the next prompt
	used     int64
	window   int64
	total    Usage
	seq      Seq

	open    TurnID    // the turn that has no TurnFinished yet
	openAt  int       // len(messages) when it began
	begun   []begun   // calls with a CallBegan and no CallFinished, in order, of any turn
	waiting []waiting // calls of the newest reply without an output in messages, in order
}

// begun is a call that a client knows and that has no end yet.
type begun struct {
	turn TurnID
	call CallID
}

// waiting is a call that the model asked for and has no answer to yet.
type waiting struct {
	call    ModelCall
	started bool // its intent was journalled, so it may have had effects
}

// unanswered is the output of a call that never got one of its own.
func (w waiting) unanswered() ToolOutput {
	if w.started {
		return ToolOutput{Call: w.call, Text: InterruptedText, Failed: true}
	}
	return ToolOutput{Call: w.call, Text: NotRunText, Failed: true}
}

// NewConversation returns an empty conversation that begins after position
// start.
func NewConversation(start Seq) *Conversation { return &Conversation{seq: start} }

// Add folds in the next record.
func (c *Conversation) Add(e Entry) {
	c.seq = e.Seq
	switch r := e.Record.(type) {
	case UserSaid:
		c.answerRest() // of a turn that never ended
		c.open, c.openAt = r.Turn, len(c.messages)
		c.messages = append(c.messages, UserInput{Blocks: c.input(r.Blocks)})
	case AssistantSaid:
		c.addReply(r)
	case CallBegan:
		c.begun = append(c.begun, begun{turn: r.Turn, call: r.Call.ID})
		if i := c.waitingAt(r.Call.ID); i >= 0 {
			c.waiting[i].started = true
		}
	case CallFinished:
		c.begun = slices.DeleteFunc(c.begun, func(b begun) bool { return b.call == r.Call })
		if i := c.waitingAt(r.Call); i >= 0 {
			c.messages = append(c.messages, ToolOutput{Call: c.waiting[i].call, Text: r.Text, Failed: r.Failed || r.Interrupted, Media: pictures(r.Content)})
			c.waiting = slices.Delete(c.waiting, i, i+1)
		}
	case PermissionGiven:
		for _, rule := range r.Rules {
			c.remember(rule)
		}
	case PlanSet:
		c.plan = r.Entries
	case TitleSet:
		c.title = r.Title
	case ClientEvent:
		if r.ForModel {
			c.events = append(c.events, r)
		}
	case TurnFinished:
		c.finish(r)
	case Unknown:
	}
}

// pictures are those of a call's content that a model may be shown: pictures
// that were read, not files that were delivered.
func pictures(list []CallContent) []Block {
	var out []Block
	for _, c := range list {
		if f, ok := c.(FileContent); ok && !f.Delivered && VisiblePicture(f.File.MIME) {
			out = append(out, f.File)
		}
	}
	return out
}

// input puts what the model has to be told before the user's own blocks.
func (c *Conversation) input(blocks []Block) []Block {
	var pre []Block
	for _, n := range c.notes {
		pre = append(pre, Text{Text: n})
	}
	for _, ev := range c.events {
		pre = append(pre, Text{Text: "[client event " + ev.Type + "] " + string(ev.Payload)})
	}
	c.notes, c.events = nil, nil
	return append(pre, blocks...)
}

func (c *Conversation) addReply(r AssistantSaid) {
	if r.Usage != (Usage{}) {
		c.used, c.total = r.Usage.Context(), c.total.Plus(r.Usage)
	}
	if r.Window != 0 {
		c.window = r.Window
	}
	var text, thought strings.Builder
	for _, p := range r.Parts {
		if p.Thought {
			thought.WriteString(p.Text)
		} else {
			text.WriteString(p.Text)
		}
	}
	if text.Len() == 0 && thought.Len() == 0 && len(r.Calls) == 0 && r.Opaque == nil {
		return
	}
	c.answerRest()
	c.messages = append(c.messages, ModelReply{
		Text: text.String(), Thought: thought.String(), Calls: r.Calls, Opaque: r.Opaque,
	})
	for _, call := range r.Calls {
		c.waiting = append(c.waiting, waiting{call: call})
	}
}

// waitingAt returns the place of an unanswered call, -1 when there is none.
func (c *Conversation) waitingAt(id CallID) int {
	return slices.IndexFunc(c.waiting, func(w waiting) bool { return w.call.ID == id })
}

// answerRest answers what the newest reply asked for and never got, so that
// no provider sees a call without an output directly behind its reply.
func (c *Conversation) answerRest() {
	for _, w := range c.waiting {
		c.messages = append(c.messages, w.unanswered())
	}
	c.waiting = nil
}

// remember adds a rule in place of an older one for the same thing.
func (c *Conversation) remember(r Rule) {
	c.rules = slices.DeleteFunc(c.rules, r.Same)
	c.rules = append(c.rules, r)
}

func (c *Conversation) finish(r TurnFinished) {
	if r.Turn != c.open {
		return // it ended before
	}
	c.answerRest()
	switch {
	case r.Stop == StopRefusal:
		// A refused turn is dropped from the model's context (ACP "refusal").
		c.messages = slices.Clip(c.messages[:min(c.openAt, len(c.messages))])
	case r.Stop == StopCancelled:
		c.notes = append(c.notes, "[The previous turn was cancelled before it ended.]")
	case r.Interrupted:
		c.notes = append(c.notes, "[The previous turn was interrupted: the agent stopped before it ended.]")
	}
	c.open = ""
}

// Messages returns the conversation for a model. Every call in it has an
// output. The slice is a copy; the messages are shared and must not change.
func (c *Conversation) Messages() []ModelMessage {
	out := slices.Grow(slices.Clone(c.messages), len(c.waiting))
	for _, w := range c.waiting {
		out = append(out, w.unanswered())
	}
	return out
}

// Settle returns the records that close what nobody works on any more: every
// call that began and has no end, wherever in the journal it stands, and the
// turn that has none; nothing when all is closed. Append them together, once,
// before anything else.
func (c *Conversation) Settle() []Record {
	var recs []Record
	for _, b := range c.begun {
		recs = append(recs, CallFinished{Turn: b.turn, Call: b.call, Failed: true, Interrupted: true, Text: InterruptedText})
	}
	if c.open != "" {
		recs = append(recs, TurnFinished{Turn: c.open, Interrupted: true})
	}
	return recs
}

// Open returns the turn that has not ended, "" when there is none, and the
// calls that began and have not ended, in order.
func (c *Conversation) Open() (TurnID, []CallID) {
	calls := make([]CallID, len(c.begun))
	for i, b := range c.begun {
		calls[i] = b.call
	}
	return c.open, calls
}

// Rules returns the remembered permission rules.
func (c *Conversation) Rules() []Rule { return slices.Clone(c.rules) }

// Seq returns the position of the newest record.
func (c *Conversation) Seq() Seq { return c.seq }

// Usage returns the tokens now in context, the model's window, and the sum
// over all requests. Window is 0 when unknown.
func (c *Conversation) Usage() (used, window int64, total Usage) { return c.used, c.window, c.total }

// State returns the updates that describe the session as of now, for the end
// of a load: plan, usage and title, as far as there are any.
func (c *Conversation) State() []Update {
	var ups []Update
	if len(c.plan) > 0 {
		ups = append(ups, PlanChanged{Entries: c.plan})
	}
	if c.window > 0 && c.used > 0 {
		ups = append(ups, UsageChanged{Used: c.used, Size: c.window})
	}
	if c.title != "" {
		ups = append(ups, InfoChanged{Title: c.title})
	}
	return ups
}
