package domain

import (
	"slices"
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
	rules  []Rule
	plan   []PlanEntry
	title  string
	events []ClientEvent // for the model with the next prompt
	notes  []string      // for the model with the next prompt
	used   int64
	window int64
	total  Usage
	cost   *MicroUSD
	gauges map[ModelRef]Gauge
	seq    Seq

	open    TurnID    // the turn that has no TurnFinished yet
	openAt  Seq       // where it began
	command bool      // it is answered by the host
	replied bool      // the model has said something in it
	partial streamed  // in it, of a reply that has not followed
	begun   []begun   // calls with a CallBegan and no CallFinished, in order, of any turn
	waiting []waiting // calls of the newest reply without an output in messages, in order

	shown               // what the model is shown of the turns
	ended  TurnFinished // of the newest turn that has one
	before *shown       // that before the open turn, when a compaction reached into it
}

// shown is what a model is shown of a conversation.
type shown struct {
	messages []message
	summary  string   // of what a compaction took away; "" when none did
	asked    []string // what the user asked in what was taken away
}

// message is one message and the record that made it.
type message struct {
	ModelMessage
	at      Seq
	notes   int  // how many blocks of a prompt precede the user's own
	summary bool // it stands for what a compaction took away
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
		c.open, c.openAt, c.command, c.replied, c.before = r.Turn, e.Seq, r.Command != "", false, nil
		c.partial = streamed{}
		if !c.command {
			blocks := c.input(r.Blocks)
			c.say(UserInput{Blocks: blocks})
			c.messages[len(c.messages)-1].notes = len(blocks) - len(r.Blocks)
		}
	case Streamed:
		c.stream(r)
	case AssistantSaid:
		c.partial = streamed{}
		c.addReply(r)
	case CallBegan:
		c.begun = append(c.begun, begun{turn: r.Turn, call: r.Call.ID})
		if i := c.waitingAt(r.Call.ID); i >= 0 {
			c.waiting[i].started = true
		}
	case CallFinished:
		c.begun = slices.DeleteFunc(c.begun, func(b begun) bool { return b.call == r.Call })
		if i := c.waitingAt(r.Call); i >= 0 {
			c.say(ToolOutput{
				Call: c.waiting[i].call, Text: Shorten(r.Text, r.Limit, againHint),
				Failed: r.Failed || r.Interrupted, Media: pictures(r.Content),
			})
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
	case Compacted:
		c.compact(r)
	case TurnFinished:
		c.finish(r)
	case Unknown:
	}
}

// say adds a message of the record that is folded in.
func (c *Conversation) say(m ModelMessage) {
	c.messages = append(c.messages, message{ModelMessage: m, at: c.seq})
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
	c.cost = c.cost.Plus(r.Cost)
	if r.Usage != (Usage{}) {
		c.used, c.total = r.Usage.Context(), c.total.Plus(r.Usage)
		c.learn(r.Model, r.Estimate, r.Usage.Input)
	}
	if r.Window != 0 {
		c.window = r.Window
	}
	if c.command {
		return // the host's words
	}
	text, thought := r.join(false), r.join(true)
	if text == "" && thought == "" && len(r.Calls) == 0 && r.Opaque == nil {
		return
	}
	c.answerRest()
	c.replied = true
	c.say(ModelReply{
		Text: text, Thought: thought, Calls: r.Calls, Opaque: r.Opaque,
	})
	for _, call := range r.Calls {
		c.waiting = append(c.waiting, waiting{call: call})
	}
}

// stream keeps what was shown of a reply, in case it never follows.
func (c *Conversation) stream(r Streamed) {
	if r.Turn == "" || r.Turn != c.open {
		return
	}
	c.partial.add(r)
}

// waitingAt returns the place of an unanswered call, -1 when there is none.
func (c *Conversation) waitingAt(id CallID) int {
	return slices.IndexFunc(c.waiting, func(w waiting) bool { return w.call.ID == id })
}

// answerRest answers what the newest reply asked for and never got, so that
// no provider sees a call without an output directly behind its reply.
func (c *Conversation) answerRest() {
	for _, w := range c.waiting {
		c.say(w.unanswered())
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
	c.ended = r
	switch {
	case c.command:
	case r.Stop == StopRefusal:
		// A refused turn is dropped from the model's context (ACP "refusal").
		c.dropTurn()
	case r.Failure != nil && r.Failure.Code == ContextTooLong && !c.replied:
		c.dropTurn() // or the next one would fail for the same reason
		c.notes = append(c.notes, "[The previous prompt was left out: it was too long.]")
	case r.Stop == StopMaxTokens:
		c.notes = append(c.notes, "[Your previous reply was cut off at the limit of its length. Tool calls in it were not run.]")
	case r.Stop == StopCancelled:
		c.notes = append(c.notes, "[The previous turn was cancelled before it ended.]")
	case r.Interrupted:
		c.notes = append(c.notes, "[The previous turn was interrupted: the agent stopped before it ended.]")
	}
	c.open, c.command, c.before, c.partial = "", false, nil, streamed{}
}

// Messages returns the conversation for a model. Every call in it has an
// output. The slice is a copy; the messages are shared and must not change.
func (c *Conversation) Messages() []ModelMessage {
	out := make([]ModelMessage, 0, len(c.messages)+len(c.waiting))
	for _, m := range c.messages {
		out = append(out, m.ModelMessage)
	}
	for _, w := range c.waiting {
		out = append(out, w.unanswered())
	}
	return out
}

// Settle returns the records that close what nobody works on any more: every
// call that began and has no end, wherever in the journal it stands, the reply
// that was streamed and never journalled, and the turn that has no end; nothing
// when all is closed. Append them together, once,
// before anything else.
func (c *Conversation) Settle() []Record {
	var recs []Record
	for _, b := range c.begun {
		recs = append(recs, CallFinished{Turn: b.turn, Call: b.call, Failed: true, Interrupted: true, Text: InterruptedText})
	}
	if said := c.partial.reply(); len(said.Parts) > 0 {
		recs = append(recs, said)
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

// Ended returns how the newest turn that has ended did; false when none has.
func (c *Conversation) Ended() (TurnFinished, bool) { return c.ended, c.ended.Turn != "" }

// Rules returns the remembered permission rules.
func (c *Conversation) Rules() []Rule { return slices.Clone(c.rules) }

// Seq returns the position of the newest record.
func (c *Conversation) Seq() Seq { return c.seq }

// State returns the updates that describe the session as of now, for the end
// of a load: plan, usage and title, as far as there are any.
func (c *Conversation) State() []Update {
	var ups []Update
	if len(c.plan) > 0 {
		ups = append(ups, PlanChanged{Entries: c.plan})
	}
	if c.window > 0 && c.used > 0 {
		ups = append(ups, UsageChanged{Used: c.used, Size: c.window, Cost: c.cost.Cost()})
	}
	if c.title != "" {
		ups = append(ups, InfoChanged{Title: c.title})
	}
	return ups
}
