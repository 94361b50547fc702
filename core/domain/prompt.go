package domain

import (
	"strings"
	"unicode/utf8"
)

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

// maxTitle is the longest title made from a prompt, in characters.
const maxTitle = 80

// TitleFrom names a session after a prompt: the first line of its first text
// that is not blank, white space collapsed, at most 80 characters; "" when
// there is no such text.
func TitleFrom(blocks []Block) string {
	for _, b := range blocks {
		text, ok := b.(Text)
		if !ok {
			continue
		}
		line, _, _ := strings.Cut(strings.TrimSpace(text.Text), "\n")
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		if utf8.RuneCountInString(line) > maxTitle {
			line = strings.TrimSpace(string([]rune(line)[:maxTitle-1])) + "…"
		}
		return line
	}
	return ""
}
