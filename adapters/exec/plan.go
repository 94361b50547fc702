package exec

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

const (
	maxTitle   = 200      // characters
	maxReason  = 300      // characters
	maxPreview = 16 << 10 // bytes of the command that are shown
	manyBlanks = 8        // blanks in a row that are told by their number
)

// title is one line about the command: the command itself when it is short
// and does one thing, else its worst part first.
func (c *prepared) title() string {
	line := oneLine(c.request.line)
	worst := oneLine(c.analysis.Decisive)
	long := utf8.RuneCountInString(line) > maxTitle/2
	if worst != "" && worst != line && (long || c.access.Class != domain.AccessRead && c.access.Class != domain.AccessRun || c.access.Forbidden != "") {
		if utf8.RuneCountInString(worst) > maxTitle*2/3 {
			worst = cutRunes(worst, maxTitle*2/3)
		}
		line = worst + "  (in: " + line + ")"
	}
	for _, w := range oddWords(c.access.Commands) {
		line = strings.ReplaceAll(line, w, ascii(w))
	}
	return cutRunes(line, maxTitle)
}

// oneLine makes one line of a command: nothing in it hides, and long runs of
// blanks are told by their number.
func oneLine(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxPreview {
		s = cutAt(s, maxPreview)
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		n := 0
		for i+n < len(s) && (s[i+n] == ' ' || s[i+n] == '\t' || s[i+n] == '\n') {
			n++
		}
		switch {
		case n >= manyBlanks:
			fmt.Fprintf(&b, " [%d blanks] ", n)
			i += n
		case n > 0:
			b.WriteString(visible(s[i:i+n], false))
			i += n
		default:
			end := strings.IndexAny(s[i:], " \t\n")
			if end < 0 {
				end = len(s) - i
			}
			b.WriteString(visible(s[i:i+end], false))
			i += end
		}
	}
	return b.String()
}

// cutRunes shortens s to at most n characters, the last of them dots.
func cutRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}

// oddWords returns the command words that hold something else than ASCII: a
// letter that only looks like another.
func oddWords(commands []domain.SimpleCommand) []string {
	var list []string
	for _, c := range commands {
		if len(c.Words) > 0 && ascii(c.Words[0]) != c.Words[0] {
			list = append(list, c.Words[0])
		}
	}
	return list
}

// preview is what the person is shown before the command runs: all of it,
// where it runs and what holds it. Why it is asked comes with the question.
func (c *prepared) preview(posture domain.Posture) []domain.CallContent {
	whole := cutAt(c.request.line, maxPreview)
	shown := visible(whole, true)
	odd := oddWords(c.access.Commands)
	for _, w := range odd {
		shown = strings.ReplaceAll(shown, w, ascii(w))
	}
	var b strings.Builder
	b.WriteString(domain.Fenced("sh", shown))
	b.WriteByte('\n')
	if n := len(c.request.line); n > len(whole) {
		fmt.Fprintf(&b, "\nThese are the first %d of %d bytes.\n", len(whole), n)
	}
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(&b, "\n%s: %s\n", what, visible(text, false))
		}
	}
	line("Said to be for", oneLine(cutAt(c.request.description, 200)))
	for _, w := range odd {
		line("A command word with unusual letters", ascii(w))
	}
	line("Directory", c.dir.path)
	line("Sandbox", c.held(posture))
	if c.request.background {
		line("Background", fmt.Sprintf("it goes on after the answer, for up to %s or until the session ends", c.request.wall))
	}
	for _, s := range c.scripts {
		line("Runs the file", s.path+" (SHA-256 "+hex.EncodeToString(s.sum[:6])+"…; not run if it changes)")
	}
	return []domain.CallContent{domain.ContentBlock{Block: domain.Text{Text: b.String()}}}
}

// held says in words what holds the command.
func (c *prepared) held(p domain.Posture) string {
	switch p.Word {
	case domain.PostureStrong, domain.PosturePartial:
		words := "writes only in the session's directories"
		if c.readOnly {
			words = "writes nothing"
		}
		if c.access.Network {
			words += ", with the network and the services of this machine"
		} else {
			words += ", no network"
		}
		if p.Word == domain.PosturePartial && len(p.Lacks) > 0 {
			words += "; open: " + strings.Join(p.Lacks, ", ")
		}
		return words + " (" + p.Backend + ")"
	case domain.PostureOff:
		return "none, by the operator's choice"
	}
	return joined("none", p.Reason)
}
