package offline

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

func fields(s string) []string { return strings.Fields(s) }

// typed is what the user typed: without the host's notes that come before
// it, and with attached files as quoted names where they were attached.
func typed(prompt string) string {
	var out []string
	paragraphs := strings.Split(prompt, "\n\n")
	for i, p := range paragraphs {
		switch {
		case attached(p) != "":
			file := "\"" + attached(p) + "\""
			if len(out) > 0 && !strings.Contains(out[len(out)-1], "\n") {
				out[len(out)-1] = strings.TrimRight(out[len(out)-1], " ") + " " + file
			} else {
				out = append(out, file)
			}
		case len(out) == 0 && i < len(paragraphs)-1 && strings.HasPrefix(p, "["):
			// A note of the host, such as that the last turn was cancelled.
		default:
			out = append(out, p)
		}
	}
	return strings.TrimSpace(strings.Join(out, "\n\n"))
}

// attached returns the path of a file, or the address of a page, that a
// paragraph stands for; "" when it is ordinary text.
func attached(p string) string {
	uri := ""
	switch {
	case strings.HasPrefix(p, "[Link: "):
		_, uri, _ = strings.Cut(p, "] ")
	case strings.HasPrefix(p, "[Document: "):
		_, path, _ := strings.Cut(p, "] ")
		return path
	case strings.HasPrefix(p, "[IMAGE: "):
		return strings.TrimSuffix(strings.TrimPrefix(p, "[IMAGE: "), "]")
	case strings.HasPrefix(p, `<resource uri="`):
		uri, _, _ = strings.Cut(strings.TrimPrefix(p, `<resource uri="`), `"`)
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return ""
	case u.Scheme == "http" || u.Scheme == "https":
		return uri
	case u.Scheme != "file":
		return ""
	}
	return filepath.FromSlash(u.Path)
}

// bare takes quotes off.
func bare(s string) string {
	s = strings.TrimSpace(s)
	for _, q := range []string{`""`, `''`, "``", "“”"} {
		runes := []rune(q)
		open, closing := string(runes[0]), string(runes[1])
		if inner, ok := strings.CutPrefix(s, open); ok {
			if inner, ok = strings.CutSuffix(inner, closing); ok {
				return inner
			}
		}
	}
	return s
}

// fileName is a bare name without the full stop, or the question mark, of the
// sentence it ends.
func fileName(s string) string {
	s = strings.TrimSpace(s)
	if quoted := bare(s); quoted != s {
		return quoted
	}
	s = strings.TrimRight(s, "!?,;")
	if cut, ok := strings.CutSuffix(s, "."); ok {
		if last, _ := utf8.DecodeLastRuneInString(cut); unicode.IsLetter(last) || unicode.IsDigit(last) {
			s = cut
		}
	}
	return bare(s)
}

// code renders s as inline code.
func code(s string) string {
	if strings.ContainsAny(s, "`\n") {
		return `"` + shorten(s, 200) + `"`
	}
	return "`" + s + "`"
}

// How much of an output is quoted.
const (
	quotedLines = 12
	quotedRunes = 200 // of a line
)

// report says what came of a call.
func report(a action, outputs []domain.ToolOutput) string {
	var parts []string
	for _, o := range outputs {
		switch {
		case refused(o) != "":
			parts = append(parts, "That was not allowed: "+refused(o))
		case o.Failed && a.failure != nil:
			parts = append(parts, a.failure(o))
		case o.Failed:
			parts = append(parts, "That did not work: "+shorten(o.Text, 500))
		case a.report != nil:
			parts = append(parts, a.report(o))
		default:
			parts = append(parts, quote(o.Text))
		}
	}
	return join(parts)
}

// refused returns why a call was not allowed to run, "" when it was. What the
// host says to a model that might try it another way is left out.
func refused(o domain.ToolOutput) string {
	why, ok := strings.CutPrefix(o.Text, "Not allowed: ")
	if !ok || !o.Failed {
		return ""
	}
	if before, _, found := strings.Cut(why, ". Do not "); found {
		why = before + "."
	}
	return shorten(why, 500)
}

func silentReport(domain.ToolOutput) string { return "" }

// firstLine reports the first line of an output.
func firstLine(o domain.ToolOutput) string {
	line, _, _ := strings.Cut(strings.TrimSpace(o.Text), "\n")
	return shorten(line, quotedRunes)
}

// quote shows the first lines of an output. A first line in square brackets
// is the tool's own and stands before the quotation.
func quote(text string) string {
	head, body := heading(text)
	if strings.TrimSpace(body) == "" {
		return join([]string{head, "There is nothing in it."})
	}
	return join([]string{head, excerpt(body, quotedLines, 0)})
}

// found quotes what was looked for, and says first in words how much it was.
func found(o domain.ToolOutput) string {
	head, body := heading(o.Text)
	if head == "" {
		return quote(o.Text)
	}
	return join([]string{sentence(head), excerpt(body, quotedLines, 0)})
}

// sentence is a line in square brackets as a sentence.
func sentence(head string) string {
	head = strings.TrimSuffix(strings.TrimPrefix(head, "["), "]")
	first, n := utf8.DecodeRuneInString(head)
	head = string(unicode.ToUpper(first)) + head[n:]
	if !strings.HasSuffix(head, ".") {
		head += "."
	}
	return head
}

// excerpt quotes the first and the last lines of a text, "" when there is
// nothing in it.
func excerpt(text string, first, last int) string {
	if strings.TrimSpace(text) == "" {
		return ""
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	fence := "```"
	for i, l := range lines {
		for strings.Contains(l, fence) {
			fence += "`"
		}
		if utf8.RuneCountInString(l) > quotedRunes {
			lines[i] = string([]rune(l)[:quotedRunes]) + "…"
		}
	}
	quoted := func(lines []string) string {
		if len(lines) == 0 {
			return ""
		}
		return fence + "\n" + strings.Join(lines, "\n") + "\n" + fence
	}
	left := len(lines) - first - last
	if left <= 0 {
		return quoted(lines)
	}
	return join([]string{quoted(lines[:first]), fmt.Sprintf("… and %s more.", countOf(left, "line")), quoted(lines[len(lines)-last:])})
}

func heading(text string) (head, body string) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(first, "[") && strings.HasSuffix(first, "]") {
		return first, rest
	}
	return "", text
}

// explain reads a file and says what fixed rules can see of it.
func explain(m []string, tools toolbox) action {
	path := fileName(m[1])
	return action{
		say:    "I am not a language model, so I cannot explain what it means, but I can look at " + code(path) + ".",
		call:   tools.call("read_file", role{paths, path}),
		report: func(o domain.ToolOutput) string { return facts(path, o.Text) },
	}
}

// facts describes a text by counting.
func facts(path, text string) string {
	_, body := heading(text)
	lines := strings.Split(strings.TrimRight(body, "\n"), "\n")
	if strings.TrimSpace(body) == "" {
		return code(path) + " is empty."
	}
	var headings []string
	isHeading := regexp.MustCompile(`^#{1,3} +\S|^(?:func|type|class|def|fn|pub fn|export|interface|struct) +\w`)
	for _, l := range lines {
		if isHeading.MatchString(l) {
			headings = append(headings, "- "+code(shorten(l, 80)))
		}
	}
	out := []string{fmt.Sprintf("%s has %s and %s. It begins with %s",
		code(path), countOf(len(lines), "line"), countOf(len(strings.Fields(body)), "word"), code(shorten(firstText(lines), 80)))}
	if len(headings) > 0 {
		more := ""
		if n := len(headings) - quotedLines; n > 0 {
			headings, more = headings[:quotedLines], fmt.Sprintf("\n\n… and %d more.", n)
		}
		out = append(out, "What stands out in it:\n\n"+strings.Join(headings, "\n")+more)
	}
	return join(out)
}

func firstText(lines []string) string {
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			return l
		}
	}
	return ""
}
