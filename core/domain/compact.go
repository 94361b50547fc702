package domain

import (
	"slices"
	"strconv"
	"strings"
)

// compact applies a Compacted. Whatever it says, what is left is valid: a call
// keeps its output, calls that wait keep their reply, and the newest prompt
// stays.
func (c *Conversation) compact(r Compacted) {
	c.cost, c.total = c.cost.Plus(r.Cost), c.total.Plus(r.Usage)
	if r.Cancelled || r.Through <= 0 && r.Trimmed <= 0 && r.Largest <= 0 {
		return
	}
	if c.open != "" && !c.command && r.Through >= c.openAt && c.before == nil {
		c.before = &shown{slices.Clip(c.messages[:c.openIndex()]), c.summary, c.asked}
	}
	prompt, held := c.newestPrompt(), c.heldReply()
	var kept []message
	gone := false // the newest reply so far is left out, and its outputs with it
	for i, m := range c.messages {
		out, isOutput := m.ModelMessage.(ToolOutput)
		switch {
		case isOutput:
		case m.summary:
			gone = r.Through > 0
		default:
			gone = m.at <= r.Through && i != prompt && i < held
		}
		if gone {
			c.takeAway(m)
			continue
		}
		if m.at <= r.Trimmed && i != prompt {
			m.ModelMessage = trimmed(m.ModelMessage)
		} else if isOutput && r.Largest > 0 && int64(len(out.Text)) > r.Largest {
			out.Text, out.Media = Shorten(out.Text, r.Largest, againHint), nil
			m.ModelMessage = out
		}
		kept = append(kept, m)
	}
	if r.Through > 0 {
		c.summary = r.Summary
		top := message{ModelMessage: UserInput{Blocks: []Block{Text{Text: c.recap()}}}, summary: true}
		kept = append([]message{top}, kept...)
	}
	c.messages = kept
	c.used = r.After
	if r.Window > 0 {
		c.window = r.Window
	}
}

// newestPrompt returns the index of what the user said last, -1 when nothing
// of it is there.
func (c *Conversation) newestPrompt() int {
	for i, m := range slices.Backward(c.messages) {
		if _, ok := m.ModelMessage.(UserInput); ok && !m.summary {
			return i
		}
	}
	return -1
}

// heldReply returns the index of the reply whose calls wait for outputs, or
// the number of messages.
func (c *Conversation) heldReply() int {
	if len(c.waiting) > 0 {
		for i, m := range slices.Backward(c.messages) {
			if _, ok := m.ModelMessage.(ModelReply); ok {
				return i
			}
		}
	}
	return len(c.messages)
}

// The most that is kept of what the user asked in what was taken away: the
// first request, which is often the goal, and the last ones.
const (
	maxAsked      = 12
	maxAskedBytes = 400
)

// takeAway remembers of a message what every summary has to hold.
func (c *Conversation) takeAway(m message) {
	in, ok := m.ModelMessage.(UserInput)
	if !ok || m.summary {
		return
	}
	var words []string
	for _, b := range in.Blocks[min(m.notes, len(in.Blocks)):] {
		if t, ok := b.(Text); ok {
			words = append(words, strings.TrimSpace(t.Text))
		}
	}
	text := strings.Join(strings.Fields(strings.Join(words, " ")), " ")
	if text == "" {
		return
	}
	c.asked = append(slices.Clip(c.asked), Shorten(text, maxAskedBytes, ""))
	if len(c.asked) > maxAsked {
		c.asked = slices.Delete(slices.Clone(c.asked), 1, 2)
	}
}

// recap is what the model reads in place of what was taken away.
func (c *Conversation) recap() string {
	var b strings.Builder
	b.WriteString("[The earlier part of this conversation was too long to keep. This is what it came to. " +
		"Files may have changed since: look again before you rely on a detail.]\n\n")
	b.WriteString(strings.TrimSpace(c.summary))
	if len(c.asked) > 0 {
		b.WriteString("\n\nWhat the user asked in it, in order:\n")
		for _, a := range c.asked {
			b.WriteString("- " + a + "\n")
		}
	}
	if len(c.plan) > 0 {
		b.WriteString("\n\nThe plan as it stood at the end of it:\n")
		for i, e := range c.plan {
			b.WriteString(strconv.Itoa(i+1) + ". [" + e.Status + "] " + e.Content + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// dropTurn takes the open turn out of the messages, with what a compaction did
// to its own part.
func (c *Conversation) dropTurn() {
	if c.before != nil {
		c.shown = *c.before
		return
	}
	c.messages = slices.Clip(c.messages[:c.openIndex()])
}

// openIndex returns where the messages of the open turn begin.
func (c *Conversation) openIndex() int {
	i := slices.IndexFunc(c.messages, func(m message) bool {
		_, output := m.ModelMessage.(ToolOutput) // of a call that the turn before left
		return !m.summary && !output && m.at >= c.openAt
	})
	if i < 0 {
		return len(c.messages)
	}
	return i
}
