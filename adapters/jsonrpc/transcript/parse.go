package transcript

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// Parse reads a script. The error names the line.
func Parse(text string) (*Script, error) {
	p := parser{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	if text == "" {
		p.lines = nil
	}
	lines, err := p.block(0)
	if err == nil {
		s := &Script{Lines: lines}
		if err = s.resolve(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// Error is a mistake in a script.
type Error struct {
	Line int
	Msg  string
}

// Error names the line and the mistake.
func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

type parser struct {
	lines []string
	next  int // index of the next line
}

// block reads lines up to the closing brace of an any (depth 1), of a group
// inside it (depth 2), or the end (depth 0).
func (p *parser) block(depth int) ([]Line, error) {
	var out []Line
	start := p.next
	for p.next < len(p.lines) {
		text := strings.TrimRight(p.lines[p.next], "\r")
		p.next++
		n := p.next
		trimmed := strings.TrimSpace(text)
		if trimmed == "}" && depth > 0 {
			return out, nil
		}
		l, err := p.line(n, trimmed, depth)
		if err != nil {
			return nil, err
		}
		if depth > 0 && !allowedIn(depth, l.Op) {
			return nil, &Error{n, fmt.Sprintf("%q has no place inside any", trimmed)}
		}
		out = append(out, l)
	}
	if depth > 0 {
		return nil, &Error{start, "the block is not closed"}
	}
	return out, nil
}

func allowedIn(depth int, op Op) bool {
	return op == Blank || op == Comment || op.expects() || depth == 1 && op == Group || depth == 2 && op.sends()
}

var (
	methodName = regexp.MustCompile(`^[^\s@#{}\[\]"]+$`)
	labelName  = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)
)

// line reads one statement that starts with text.
func (p *parser) line(n int, text string, depth int) (Line, error) {
	l := Line{N: n}
	fail := func(format string, args ...any) (Line, error) {
		return l, &Error{n, fmt.Sprintf(format, args...)}
	}
	switch {
	case text == "":
		return l, nil
	case text[0] == '#':
		l.Op, l.Text = Comment, text[1:]
		return l, nil
	case text == "{" && depth == 1:
		l.Op = Group
		body, err := p.block(2)
		l.Body = body
		return l, err
	}
	word, rest, _ := strings.Cut(text, " ")
	known := false
	for op, w := range words {
		if w == word {
			l.Op, known = op, true
		}
	}
	if !known {
		return fail("%q is no statement", word)
	}
	raw := rest // for Send, where every byte counts
	rest = strings.TrimSpace(rest)
	var err error
	switch l.Op {
	case Request, Notify, Answer, Response, Update, Ask, Skip:
		return p.message(l, rest)
	case Send:
		l.Text = raw
	case Raw, Says, Thinks:
		if l.Text, err = strconv.Unquote(rest); err != nil || rest[0] != '"' {
			return fail("%s needs a quoted string", word)
		}
	case Any:
		if rest != "{" || depth > 0 {
			return fail(`write "any {" and close it with "}" on a line of its own`)
		}
		l.Body, err = p.block(1)
		return l, err
	case Exit:
		code, err := strconv.Atoi(rest)
		if l.Text = strconv.Itoa(code); err != nil {
			return fail("exit needs a status")
		}
	case Client:
		if l.Text = rest; !labelName.MatchString(rest) {
			return fail("client needs a name")
		}
	case After:
		d, err := time.ParseDuration(rest)
		if l.Text = d.String(); err != nil || d <= 0 {
			return fail("after needs a duration such as 90s")
		}
	default:
		if rest != "" {
			return fail("%q does not belong behind %s", rest, word)
		}
	}
	return l, nil
}

// message reads what stands behind the sigil of a message.
func (p *parser) message(l Line, rest string) (Line, error) {
	fail := func(format string, args ...any) (Line, error) {
		return l, &Error{l.N, fmt.Sprintf(format, args...)}
	}
	word := func() string {
		w, r, _ := strings.Cut(rest, " ")
		rest = strings.TrimSpace(r)
		return w
	}
	if l.Op != Answer && l.Op != Response {
		if l.Method = word(); !methodName.MatchString(l.Method) {
			return fail("%q is no method", l.Method)
		}
	}
	if l.Op != Notify && l.Op != Update && l.Op != Skip && rest != "" {
		switch rest[0] {
		case '@':
			if l.Label = word()[1:]; !labelName.MatchString(l.Label) {
				return fail("%q is no label", l.Label)
			}
		case '#':
			d := json.NewDecoder(strings.NewReader(rest[1:]))
			if err := d.Decode(&l.ID); err != nil {
				return fail("behind # stands no id")
			}
			rest = strings.TrimSpace(rest[1+d.InputOffset():])
		}
	}
	if (l.Op == Answer || l.Op == Response) && (rest == "error" || strings.HasPrefix(rest, "error ")) {
		l.Error = true
		word()
	}
	if rest == "" {
		return l, nil
	}
	value, err := p.json(rest)
	if err != nil {
		return fail("%v", err)
	}
	l.Value = value
	return l, nil
}

// json reads a JSON text that starts with first and may go on over the
// following lines, and puts it on one line.
func (p *parser) json(first string) (json.RawMessage, error) {
	text := first
	for !jsonrpc.Valid([]byte(text)) {
		if !unfinished(text) || p.next >= len(p.lines) {
			return nil, fmt.Errorf("%.80s is not valid JSON", text)
		}
		text += "\n" + strings.TrimRight(p.lines[p.next], "\r")
		p.next++
	}
	return compact([]byte(text))
}

// unfinished reports whether text has brackets that are still open.
func unfinished(text string) bool {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return depth > 0 && !inString
}
