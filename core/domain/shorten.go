package domain

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// markRoom is more than the mark in a shortened text takes, in bytes.
const markRoom = 200

// Shorten returns the beginning and the end of a text that is longer than
// limit bytes, with a mark between them that says how much is left out and
// what to do about it. The result is not longer than limit, unless that is
// less than the mark takes. What is short enough, and what was shortened to
// the same limit before, comes back as it is. 0 is no limit.
func Shorten(text string, limit int64, hint string) string {
	if limit <= 0 || int64(len(text)) <= limit {
		return text
	}
	room := max(int(limit)-markRoom-len(hint), 0)
	head := text[:runeStart(text, room*2/3)]
	tail := text[runeEnd(text, len(text)-room/3):]
	mark := fmt.Sprintf("[… %d of %d bytes are left out here%s]", len(text)-len(head)-len(tail), len(text), hint)
	return head + newline(head) + mark + "\n" + tail
}

// newline separates what follows a text.
func newline(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return ""
	}
	return "\n"
}

// runeStart moves i back to the beginning of a character.
func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// runeEnd moves i on to the beginning of a character.
func runeEnd(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}

// The sizes that older parts of a conversation are trimmed to, in bytes.
const (
	trimmedOutput = 1000
	trimmedPrompt = 4000
)

// Hints in marks: what a model can do about what it is not shown.
const (
	againHint = "; it is shown in part because of its size. Ask for less at a time, such as a range of lines"
	oldHint   = " to save room; call the tool again if you need it"
)

// trimmed returns an older message as a conversation without room shows it.
// Replies are not touched: providers sign them.
func trimmed(m ModelMessage) ModelMessage {
	switch m := m.(type) {
	case ToolOutput:
		m.Text, m.Media = Shorten(m.Text, trimmedOutput, oldHint), nil
		return m
	case UserInput:
		blocks := make([]Block, len(m.Blocks))
		for i, b := range m.Blocks {
			blocks[i] = trimmedBlock(b)
		}
		return UserInput{Blocks: blocks}
	case ModelReply:
	}
	return m
}

func trimmedBlock(b Block) Block {
	switch b := b.(type) {
	case Text:
		return Text{Text: Shorten(b.Text, trimmedPrompt, " to save room")}
	case Resource:
		b.Text = Shorten(b.Text, trimmedPrompt, " to save room")
		return b
	case Image, Audio, Attachment:
		return Text{Text: blockText(b)}
	case Link:
	}
	return b
}
