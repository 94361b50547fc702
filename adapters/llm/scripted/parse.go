package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// Parse reads a script. An error names the line and what is wrong with it.
func Parse(text string) (Script, error) {
	var s Script
	var steps []Step
	open := false // a step has begun, by a separator or a move
	for i, raw := range strings.Split(text, "\n") {
		line := strings.TrimSpace(raw)
		if line == "" || line[0] == '#' {
			continue
		}
		fail := func(format string, args ...any) (Script, error) {
			return Script{}, domain.Errorf(domain.InvalidArgument, "script line %d: %s", i+1, fmt.Sprintf(format, args...))
		}
		if !utf8.ValidString(line) {
			return fail("is not UTF-8")
		}
		if rest, ok := separator(line); ok {
			guard, err := parseGuard(rest)
			if err != nil {
				return fail("%v", err)
			}
			steps, open = append(steps, Step{Guard: guard}), true
			continue
		}
		if !open {
			steps, open = append(steps, Step{}), true
		}
		step := &steps[len(steps)-1]
		if n := len(step.Moves); n > 0 && ends(step.Moves[n-1]) {
			return fail("follows %q, which ends its step; begin the next one with \"--- next\"", step.Moves[n-1].line())
		}
		moves, err := parseMove(line)
		if err != nil {
			return fail("%v", err)
		}
		step.Moves = append(step.Moves, moves...)
	}
	s.Steps = steps
	return s, nil
}

func separator(line string) (guard string, ok bool) {
	rest, ok := strings.CutPrefix(line, "--- next")
	return rest, ok && (rest == "" || rest[0] == ' ')
}

func parseGuard(text string) (Guard, error) {
	var g Guard
	a := args{rest: text}
	for !a.empty() {
		switch word := a.word(); word {
		case "session":
			g.Session = a.count()
		case "when":
			if g.When = a.str(); g.When == "" && a.err == nil {
				a.failf("\"when\" wants a text")
			}
		case "always":
			g.Always = true
		default:
			a.failf("unknown guard %q; guards are session N, when \"text\", always", word)
		}
		if a.err != nil {
			return Guard{}, a.err
		}
	}
	return g, nil
}

// parseMove reads one line; "refuse" makes two moves.
func parseMove(line string) ([]Move, error) {
	a := args{rest: line}
	word := a.word()
	var m Move
	switch word {
	case "text":
		m = Say{Text: a.text()}
	case "thought":
		m = Think{Text: a.text()}
	case "chunks":
		m = a.chunks()
	case "call":
		m = a.call()
	case "usage":
		m = a.usage()
	case "fingerprint":
		m = Fingerprint{}
	case "delay":
		m = Delay{For: a.duration()}
	case "stall":
		m = Stall{For: a.duration()}
	case "retrying":
		m = Retry{Attempt: a.count(), Wait: a.duration(), Reason: a.str()}
	case "opaque":
		m = Keep{Data: a.str()}
	case "expect", "refute":
		m = Expect{Text: a.text(), Not: word == "refute"}
	case "finish":
		m = a.finish()
	case "length":
		m = Finish{Reason: domain.FinishLength}
	case "cut":
		m = Fail{Code: domain.Unavailable, Msg: cutMessage}
	case "hang":
		m = Hang{}
	case "error":
		m = a.fail()
	case "refuse":
		var moves []Move
		if !a.empty() {
			moves = append(moves, Say{Text: a.text()})
		}
		return append(moves, Finish{Reason: domain.FinishRefusal}), a.end()
	default:
		return nil, fmt.Errorf("unknown move %q", word)
	}
	return []Move{m}, a.end()
}

// args reads the words of a line. The first error stays.
type args struct {
	rest string
	err  error
}

func (a *args) failf(format string, v ...any) {
	if a.err == nil {
		a.err = fmt.Errorf(format, v...)
	}
}

func (a *args) empty() bool {
	a.rest = strings.TrimLeft(a.rest, " \t")
	return a.rest == ""
}

func (a *args) end() error {
	if a.err == nil && !a.empty() {
		a.failf("%q is too much", a.rest)
	}
	return a.err
}

func (a *args) word() string {
	if a.empty() {
		a.failf("a word is missing at the end")
		return ""
	}
	i := strings.IndexAny(a.rest, " \t")
	if i < 0 {
		i = len(a.rest)
	}
	word := a.rest[:i]
	a.rest = a.rest[i:]
	return word
}

// value reads one JSON value of any kind.
func (a *args) value() json.RawMessage {
	if a.empty() {
		a.failf("a value is missing at the end")
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(a.rest))
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		a.failf("%q does not begin with JSON: %v", a.rest, err)
		return nil
	}
	a.rest = a.rest[dec.InputOffset():]
	return raw
}

func (a *args) str() string {
	var s string
	raw := a.value()
	if a.err == nil && json.Unmarshal(raw, &s) != nil {
		a.failf("%s is not a JSON string", raw)
	}
	return s
}

// text is a string that is not empty.
func (a *args) text() string {
	s := a.str()
	if s == "" {
		a.failf("the text is empty")
	}
	return s
}

func (a *args) count() int {
	word := a.word()
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > 10_000_000 {
		a.failf("%q is not a number from 1 to 10000000", word)
	}
	return n
}

func (a *args) duration() time.Duration {
	word := a.word()
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		a.failf("%q is not a duration such as 50ms", word)
	}
	return d
}

func (a *args) chunks() Move {
	m := Chunks{Count: a.count(), Text: a.text()}
	if !a.empty() {
		if word := a.word(); word != "every" {
			a.failf("%q should be \"every\"", word)
		}
		m.Every = a.duration()
	}
	return m
}

func (a *args) call() Move {
	var m Invoke
	m.Name = a.word()
	if id, ok := strings.CutPrefix(m.Name, "@"); ok {
		m.ID, m.Name = id, a.word()
		if id == "" {
			a.failf("the id after @ is missing")
		}
	}
	if strings.HasPrefix(m.Name, "{") || strings.HasPrefix(m.Name, "@") {
		a.failf("%q is not the name of a tool", m.Name)
	}
	m.Args = "{}"
	if a.empty() || a.err != nil {
		return m
	}
	raw := a.value()
	if a.err == nil && raw[0] != '{' {
		a.failf("the arguments are not a JSON object")
	}
	var compact bytes.Buffer
	if a.err == nil && json.Compact(&compact, raw) == nil {
		m.Args = compact.String()
	}
	return m
}

func (a *args) usage() Move {
	var m Report
	for !a.empty() && a.err == nil {
		word := a.word()
		name, value, _ := strings.Cut(word, "=")
		if name == "cost" {
			dollars, err := strconv.ParseFloat(value, 64)
			if err != nil || dollars < 0 || dollars > 1e9 {
				a.failf("%q is not an amount of US dollars", word)
			}
			cost := domain.Dollars(dollars)
			m.Cost = &cost
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		known := false
		for _, f := range usageFields(&m.Usage) {
			if f.name == name {
				*f.count, known = n, true
			}
		}
		if err != nil || n < 0 || !known {
			a.failf("%q is not one of input=N, output=N, thought=N, cached_read=N, cached_write=N, cost=N", word)
		}
	}
	return m
}

func (a *args) finish() Move {
	word := a.word()
	switch r := domain.FinishReason(word); r {
	case domain.FinishStop, domain.FinishCalls, domain.FinishLength, domain.FinishRefusal:
		return Finish{Reason: r}
	}
	a.failf("%q is not one of stop, calls, length, refusal", word)
	return Finish{}
}

func (a *args) fail() Move {
	var m Fail
	word := a.word()
	known := false
	for _, c := range domain.Codes() {
		if codeWord(c) == word {
			m.Code, known = c, true
		}
	}
	if !known {
		a.failf("%q is not an error code such as rate_limited or unavailable", word)
	}
	if m.Msg = "the scripted model failed as told"; !a.empty() {
		m.Msg = a.text()
	}
	if !a.empty() {
		m.After = a.duration()
	}
	return m
}

// quote renders a JSON string without escaping what HTML would.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A string always encodes.
	_ = enc.Encode(s)
	return strings.TrimSuffix(b.String(), "\n")
}
