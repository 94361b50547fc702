// Package scripted is a model that plays a script exactly: for demonstrations,
// acceptance tests and bug reports. It is not the "offline" model, which
// understands what it is asked.
//
// A script is text, one move a line; blank lines and lines that begin with #
// are ignored. A string is a JSON string. A step is one reply; steps are
// separated by a line that begins with "--- next".
//
//	text "Let me look."                 the next piece of the answer
//	thought "Hm."                       the next piece of reasoning
//	chunks 5000 "tick "                 that many pieces of the answer
//	chunks 10 "tick " every 20ms        the same with a delay before each
//	call shell {"command":"sleep 60"}   a tool call; {} when left out
//	call @id shell {}                   the same with the provider's own id
//	usage input=10 output=20            also thought=, cached_read=, cached_write=;
//	                                    cost=0.02, what it cost in US dollars
//	fingerprint                         says a hash of the request without the newest
//	                                    prompt: equal requests say the same
//	delay 50ms                          wait; ends when cancelled
//	stall 50ms                          wait and do not listen to a cancel
//	retrying 1 2s "rate limit"          tell of a failed attempt, then wait
//	opaque "data"                       comes with the finish
//	expect "text"                       fail unless the request holds it
//	refute "text"                       fail if the request holds it
//
// One of these ends a step; without one it ends with a finish, "calls" when
// there were calls and else "stop":
//
//	finish stop                         also calls, length, refusal
//	length                              short for finish length
//	refuse "I will not."                text, then finish refusal
//	error rate_limited "words" 20s      a coded error; the wait may be left out
//	cut                                 the stream ends before it is complete
//	hang                                nothing more until cancelled
//
// Calls are emitted directly before the finish, wherever they stand, and not
// at all by a step that is cut, refused or out of tokens.
//
// Steps are consumed by each session on its own: a request plays the first
// step its session has not played whose guards hold. Guards follow
// "--- next", which may also stand before the first step:
//
//	--- next session 2                  only the second session to ask
//	--- next when "weather"             only when the user's newest message holds it
//	--- next always                     never consumed; taken when no other step is left
//
// Read next: model.go.
package scripted

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// Script is what a model says, reply by reply.
type Script struct{ Steps []Step }

// Step is one reply.
type Step struct {
	Guard Guard
	Moves []Move
}

// Guard says which requests may play a step. The zero value allows all.
type Guard struct {
	Session int    // 1-based, in the order in which sessions first asked; 0: any
	When    string // part of the newest user message; "": any
	Always  bool   // not consumed, and only after the ordinary steps
}

// Move is one line of a step. Members: Say, Think, Chunks, Invoke, Report,
// Fingerprint, Delay, Stall, Retry, Keep, Expect, Finish, Fail, Hang.
type Move interface{ line() string }

// Say is "text".
type Say struct{ Text string }

// Think is "thought".
type Think struct{ Text string }

// Chunks is "chunks": Count times the same text, each after Every.
type Chunks struct {
	Count int
	Text  string
	Every time.Duration
}

// Invoke is "call". Args is one JSON object.
type Invoke struct {
	ID   string
	Name string
	Args string
}

// Report is "usage".
type Report struct {
	Usage domain.Usage
	Cost  *domain.MicroUSD
}

// Fingerprint is "fingerprint".
type Fingerprint struct{}

// Delay is "delay".
type Delay struct{ For time.Duration }

// Stall is "stall".
type Stall struct{ For time.Duration }

// Retry is "retrying".
type Retry struct {
	Attempt int
	Wait    time.Duration
	Reason  string
}

// Keep is "opaque".
type Keep struct{ Data string }

// Expect is "expect", or "refute" when Not is set.
type Expect struct {
	Text string
	Not  bool
}

// Finish is "finish", "length" or "refuse".
type Finish struct{ Reason domain.FinishReason }

// Fail is "error" or "cut".
type Fail struct {
	Code  domain.Code
	Msg   string
	After time.Duration
}

// Hang is "hang".
type Hang struct{}

// cutMessage is what a "cut" fails with.
const cutMessage = "the scripted model ended its reply before it was complete"

// String returns the script as text that parses to the same script.
func (s Script) String() string {
	var b strings.Builder
	for i, step := range s.Steps {
		if guard := step.Guard.String(); i > 0 || guard != "" || len(step.Moves) == 0 {
			b.WriteString("--- next" + guard + "\n")
		}
		for _, m := range step.Moves {
			b.WriteString(m.line() + "\n")
		}
	}
	return b.String()
}

// String returns the guard as it follows "--- next", with a leading space.
func (g Guard) String() string {
	var s string
	if g.Session > 0 {
		s += " session " + strconv.Itoa(g.Session)
	}
	if g.When != "" {
		s += " when " + quote(g.When)
	}
	if g.Always {
		s += " always"
	}
	return s
}

func (m Say) line() string   { return "text " + quote(m.Text) }
func (m Think) line() string { return "thought " + quote(m.Text) }
func (m Delay) line() string { return "delay " + m.For.String() }
func (m Stall) line() string { return "stall " + m.For.String() }
func (m Keep) line() string  { return "opaque " + quote(m.Data) }
func (m Finish) line() string {
	return "finish " + string(m.Reason)
}
func (Hang) line() string        { return "hang" }
func (Fingerprint) line() string { return "fingerprint" }

func (m Chunks) line() string {
	s := fmt.Sprintf("chunks %d %s", m.Count, quote(m.Text))
	if m.Every > 0 {
		s += " every " + m.Every.String()
	}
	return s
}

func (m Invoke) line() string {
	s := "call "
	if m.ID != "" {
		s += "@" + m.ID + " "
	}
	return s + m.Name + " " + m.Args
}

func (m Report) line() string {
	s := "usage"
	for _, f := range usageFields(&m.Usage) {
		if *f.count != 0 {
			s += fmt.Sprintf(" %s=%d", f.name, *f.count)
		}
	}
	if m.Cost != nil {
		s += " cost=" + strconv.FormatFloat(m.Cost.Dollars(), 'f', -1, 64)
	}
	return s
}

func (m Retry) line() string {
	return fmt.Sprintf("retrying %d %s %s", m.Attempt, m.Wait, quote(m.Reason))
}

func (m Expect) line() string {
	if m.Not {
		return "refute " + quote(m.Text)
	}
	return "expect " + quote(m.Text)
}

func (m Fail) line() string {
	if m == (Fail{Code: domain.Unavailable, Msg: cutMessage}) {
		return "cut"
	}
	s := "error " + codeWord(m.Code) + " " + quote(m.Msg)
	if m.After > 0 {
		s += " " + m.After.String()
	}
	return s
}

// ends reports whether nothing may follow the move.
func ends(m Move) bool {
	switch m.(type) {
	case Finish, Fail, Hang:
		return true
	}
	return false
}

// usageField names one count of a usage.
type usageField struct {
	name  string
	count *int64
}

func usageFields(u *domain.Usage) []usageField {
	return []usageField{
		{"input", &u.Input},
		{"output", &u.Output},
		{"thought", &u.Thought},
		{"cached_read", &u.CachedRead},
		{"cached_write", &u.CachedWrite},
	}
}

// codeWord is a code's name in one word.
func codeWord(c domain.Code) string { return strings.ReplaceAll(c.String(), " ", "_") }
