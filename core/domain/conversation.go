package domain

import (
	"maps"
	"slices"
	"strings"
)

// InterruptedText is what the model reads as the result of a call whose
// outcome was never stored.
const InterruptedText = "Interrupted: the agent stopped before the result of this call was stored. " +
	"It may or may not have taken effect; check before you repeat it."

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
	turns    int

	open      TurnID // the turn that has no TurnFinished yet
	openAt    int    // len(messages) when it began
	openCalls map[CallID]bool
	said      map[CallID]ModelCall // calls of the newest reply without an answer in messages
	order     []CallID
}

// Add folds in the next record.
func (c *Conversation) Add(e Entry) {
	c.seq = e.Seq
	switch r := e.Record.(type) {
	case UserSaid:
		c.open, c.openAt, c.turns = r.Turn, len(c.messages), c.turns+1
		c.openCalls = nil
		c.messages = append(c.messages, UserInput{Blocks: c.input(r.Blocks)})
	case AssistantSaid:
		c.addReply(r)
	case CallBegan:
		if c.openCalls == nil {
			c.openCalls = make(map[CallID]bool)
		}
		c.openCalls[r.Call.ID] = true
	case CallFinished:
		delete(c.openCalls, r.Call)
		c.answer(r.Call, r.Text, r.Failed || r.Interrupted)
	case PermissionGiven:
		if r.Rule != nil {
			c.remember(*r.Rule)
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
	c.messages = append(c.messages, ModelReply{
		Text: text.String(), Thought: thought.String(), Calls: r.Calls, Opaque: r.Opaque,
	})
	c.said, c.order = make(map[CallID]ModelCall, len(r.Calls)), nil
	for _, call := range r.Calls {
		c.said[call.ID] = call
		c.order = append(c.order, call.ID)
	}
}

// answer adds the output of one call, once.
func (c *Conversation) answer(id CallID, text string, failed bool) {
	call, ok := c.said[id]
	if !ok {
		return
	}
	delete(c.said, id)
	c.messages = append(c.messages, ToolOutput{Call: call, Text: text, Failed: failed})
}

// remember adds a rule in place of an older one for the same thing.
func (c *Conversation) remember(r Rule) {
	c.rules = slices.DeleteFunc(c.rules, func(o Rule) bool { return o.Tool == r.Tool && o.Scope == r.Scope })
	c.rules = append(c.rules, r)
}

func (c *Conversation) finish(r TurnFinished) {
	c.closeCalls()
	switch {
	case r.Stop == StopRefusal:
		// A refused turn is dropped from the model's context (ACP "refusal").
		c.messages = slices.Clip(c.messages[:min(c.openAt, len(c.messages))])
	case r.Stop == StopCancelled:
		c.notes = append(c.notes, "[The previous turn was cancelled before it ended.]")
	case r.Interrupted:
		c.notes = append(c.notes, "[The previous turn was interrupted: the agent stopped before it ended.]")
	}
	c.open, c.openCalls = "", nil
}

// closeCalls answers what the newest reply asked for and never got, so that
// no provider sees a call without an output.
func (c *Conversation) closeCalls() {
	for _, id := range c.order {
		c.answer(id, InterruptedText, true)
	}
	c.order = nil
}

// Messages returns the conversation for a model. Every call in it has an
// output. The slice is a copy; the messages are shared and must not change.
func (c *Conversation) Messages() []ModelMessage {
	out := slices.Clone(c.messages)
	for _, id := range c.order {
		if call, waiting := c.said[id]; waiting {
			out = append(out, ToolOutput{Call: call, Text: InterruptedText, Failed: true})
		}
	}
	return out
}

// Settle returns the records that close a turn which was interrupted, in
// order; none when no turn is open. Append them once, before anything else.
func (c *Conversation) Settle() []Record {
	if c.open == "" {
		return nil
	}
	var recs []Record
	for _, id := range slices.Sorted(maps.Keys(c.openCalls)) {
		recs = append(recs, CallFinished{Turn: c.open, Call: id, Failed: true, Interrupted: true, Text: InterruptedText})
	}
	return append(recs, TurnFinished{Turn: c.open, Interrupted: true})
}

// Rules returns the remembered permission rules.
func (c *Conversation) Rules() []Rule { return slices.Clone(c.rules) }

// Plan returns the newest plan.
func (c *Conversation) Plan() []PlanEntry { return c.plan }

// Title returns the session's title, "" when it has none yet.
func (c *Conversation) Title() string { return c.title }

// Seq returns the position of the newest record.
func (c *Conversation) Seq() Seq { return c.seq }

// Turns returns how many turns were begun.
func (c *Conversation) Turns() int { return c.turns }

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

// PromptText renders the blocks of a user's message for a model that takes
// text: parts in order, joined by a blank line, with uri and type of
// resources kept visible.
func PromptText(blocks []Block) string {
	var parts []string
	for _, b := range blocks {
		if s := blockText(b); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "\n\n")
}

func blockText(b Block) string {
	switch b := b.(type) {
	case Text:
		return b.Text
	case Resource:
		if b.Binary {
			return "[Resource: " + b.URI + " " + b.MIME + "]"
		}
		return "<resource uri=\"" + b.URI + "\" type=\"" + b.MIME + "\">\n" + b.Text + "\n</resource>"
	case Link:
		return "[Link: " + b.Name + "] " + b.URI
	case Attachment:
		if strings.HasPrefix(b.MIME, "image/") {
			return "[IMAGE: " + b.Path + "]"
		}
		return "[Document: " + b.Name + "] " + b.Path
	case Image:
		return "[Image: " + b.MIME + "]"
	case Audio:
		return "[Audio: " + b.MIME + "]"
	}
	return ""
}

// NewConversation returns an empty conversation that begins after position
// start.
func NewConversation(start Seq) *Conversation { return &Conversation{seq: start} }
