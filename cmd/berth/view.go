package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/berth-dev/berth/adapters/acpclient"
)

// view shows a session's updates as a person reads them. Its methods may be
// called from several goroutines.
type view struct {
	out    io.Writer
	screen bool // it is a terminal
	color  bool

	mu    sync.Mutex
	open  string              // what the current line belongs to: "", "text", "thought"
	title map[string]string   // by tool call
	live  map[string][]string // by tool call: the lines shown while it runs
	known map[string][]string // by tool call: the texts it was announced with
}

func newView(out io.Writer) *view {
	v := &view{out: out, title: map[string]string{}, live: map[string][]string{}, known: map[string][]string{}}
	if f, ok := out.(*os.File); ok {
		v.screen = term.IsTerminal(int(f.Fd()))
		v.color = v.screen && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return v
}

// Styles of a terminal.
const (
	dim   = "2"
	bold  = "1"
	red   = "31"
	green = "32"
)

func (v *view) paint(style, s string) string {
	if !v.color || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// plain makes text from an agent safe for a terminal: no control characters
// but newline and tab.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// line ends what is being streamed and writes a line of its own.
func (v *view) line(style, format string, args ...any) {
	v.breakLine()
	fmt.Fprintln(v.out, v.paint(style, plain(fmt.Sprintf(format, args...))))
}

func (v *view) breakLine() {
	if v.open != "" {
		fmt.Fprintln(v.out)
		v.open = ""
	}
}

func (v *view) stream(kind, style, text string) {
	if v.open != kind {
		v.breakLine()
		v.open = kind
	}
	fmt.Fprint(v.out, v.paint(style, plain(text)))
}

// end closes the line a turn may have left open.
func (v *view) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.breakLine()
}

// note writes a line of the client's own.
func (v *view) note(s string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line(dim, "· %s", s)
}

// update shows one update.
func (v *view) update(u acpclient.Update) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch u.Kind {
	case "agent_message_chunk":
		v.stream("text", "", u.Text)
	case "agent_thought_chunk":
		v.stream("thought", dim, u.Text)
	case "user_message_chunk":
		v.line(bold, "> %s", u.Text)
	case "tool_call":
		v.title[u.ToolCallID] = u.Title
		v.line(bold, "→ %s", u.Title)
		v.contents(u.Content)
		v.known[u.ToolCallID] = texts(u.Content)
	case "tool_call_update":
		v.changed(u)
	case "plan":
		v.line(bold, "plan")
		for _, e := range u.Entries {
			mark := map[string]string{"completed": "x", "in_progress": "~"}[e.Status]
			if mark == "" {
				mark = " "
			}
			v.line("", "  [%s] %s", mark, e.Content)
		}
	case "session_info_update": // of a history; a failure was told in words
		if u.Ended != "" {
			v.breakLine()
		}
		if u.StopReason != "" {
			v.line(dim, "· stopped: %s", u.StopReason)
		}
	case "notice":
		if u.Detail != "" {
			u.Title += ": "
		}
		v.line(bold, "! %s", u.Title+u.Detail)
	}
}

func (v *view) changed(u acpclient.Update) {
	title := v.title[u.ToolCallID]
	switch u.Status {
	case "completed":
		v.line(green, "✓ %s", title)
	case "failed":
		v.line(red, "✗ %s", title)
	default:
		v.running(u)
		return
	}
	shown := v.live[u.ToolCallID]
	delete(v.live, u.ToolCallID)
	delete(v.known, u.ToolCallID)
	for _, c := range u.Content {
		if c.Type == "content" {
			v.lines(ended(shown, outputLines(c.Text())))
		}
	}
}

// running shows what a call has put out since it was last told of.
func (v *view) running(u acpclient.Update) {
	for _, c := range u.Content {
		if c.Type != "content" {
			continue
		}
		lines := outputLines(c.Text())
		for _, l := range news(v.live[u.ToolCallID], lines) {
			v.line(dim, "  %s", l)
		}
		v.live[u.ToolCallID] = lines
	}
}

// outputLines are the lines of an output without the fence around it.
func outputLines(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if n := len(lines); n > 1 && strings.HasPrefix(lines[0], "```") && strings.HasPrefix(lines[n-1], "```") {
		return lines[1 : n-1]
	}
	return lines
}

// news are the lines of an output that were not among those shown before. A
// last line that has grown is new, and of an output so long that it lost its
// beginning what follows the last shown line.
func news(shown, lines []string) []string {
	n := 0
	for n < len(shown) && n < len(lines) && shown[n] == lines[n] {
		n++
	}
	if last := len(shown) - 1; n == len(shown) || n == last && n < len(lines) && strings.HasPrefix(lines[n], shown[n]) {
		return lines[n:]
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] == shown[len(shown)-1] {
			return lines[i+1:]
		}
	}
	return lines
}

// ended are the lines of a final output that were not shown while it came.
// It may begin with a line about it that was not in what came.
func ended(shown, lines []string) []string {
	if len(shown) > 0 && len(lines) > 0 && lines[0] != shown[0] && strings.HasPrefix(lines[0], "[") {
		return append([]string{lines[0]}, news(shown, lines[1:])...)
	}
	return news(shown, lines)
}

// contents shows diffs and text of a tool call.
func (v *view) contents(items []acpclient.ToolContent) {
	for _, c := range items {
		switch c.Type {
		case "diff":
			v.diff(c)
		case "content":
			v.excerpt(c.Text())
		}
	}
}

// excerptLines is how much of a tool's output is shown.
const excerptLines = 8

func (v *view) excerpt(text string) {
	v.lines(strings.Split(strings.TrimRight(text, "\n"), "\n"))
}

func (v *view) lines(lines []string) {
	for i, l := range lines {
		if n := len(lines) - i; i >= excerptLines && n > 1 {
			v.line(dim, "  … %d more lines", n)
			return
		}
		v.line(dim, "  %s", l)
	}
}

// textLines are the lines of a text; one without content has none.
func textLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimRight(text, "\n"), "\n")
}

// diff shows the lines that differ between the common beginning and end.
func (v *view) diff(c acpclient.ToolContent) {
	var before []string
	if c.OldText != nil {
		before = textLines(*c.OldText)
	}
	after := textLines(c.NewText)
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	v.line(dim, "  %s", c.Path)
	for _, l := range before[head : len(before)-tail] {
		v.line(red, "  - %s", l)
	}
	for _, l := range after[head : len(after)-tail] {
		v.line(green, "  + %s", l)
	}
}

// permission shows what is asked, and what the request says beyond the call,
// such as why it asks.
func (v *view) permission(req acpclient.PermissionRequest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.line(bold, "? %s", req.ToolCall.Title)
	for _, text := range texts(req.ToolCall.Content) {
		if !slices.Contains(v.known[req.ToolCall.ToolCallID], text) {
			v.lines(textLines(text))
		}
	}
}

// texts are the texts among contents.
func texts(items []acpclient.ToolContent) []string {
	var list []string
	for _, c := range items {
		if c.Type == "content" && c.Text() != "" {
			list = append(list, c.Text())
		}
	}
	return list
}
