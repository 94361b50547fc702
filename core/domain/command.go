package domain

import "strings"

// CompactCommand is the slash command that makes the conversation shorter.
const CompactCommand = "compact"

// Commands are the slash commands that the host answers itself.
func Commands() []Command {
	return []Command{{
		Name:        CompactCommand,
		Description: "Summarise the conversation so far, so that the model has room again",
		Hint:        "what to keep in mind (optional)",
	}}
}

// Command returns the slash command that a prompt is, and what follows it:
// a single text that begins with its name. Every other prompt is the model's.
func (p Prompt) Command() (name, words string, ok bool) {
	if len(p.Blocks) != 1 {
		return "", "", false
	}
	text, isText := p.Blocks[0].(Text)
	if !isText {
		return "", "", false
	}
	line, slash := strings.CutPrefix(strings.TrimSpace(text.Text), "/")
	if !slash {
		return "", "", false
	}
	name = line
	if i := strings.IndexAny(line, " \t\r\n"); i >= 0 {
		name, words = line[:i], line[i:]
	}
	for _, c := range Commands() {
		if c.Name == name {
			return name, strings.TrimSpace(words), true
		}
	}
	return "", "", false
}
