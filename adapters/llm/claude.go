package llm

import (
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// Claude is what the name of one of Anthropic's models tells, whoever sells it.
type Claude struct {
	Version int // major*100+minor; NewestClaude when the name has none
	Thinks  Thinking
	// Always is set when the model thinks unless told not to. It then shows its
	// thoughts only when asked to.
	Always bool
	// Binds is set when the model reads a thought only behind the very messages
	// that it was thought behind.
	Binds bool
}

// Thinking is how a model is told how much to think.
type Thinking int

// The ways of telling.
const (
	ThinksNever    Thinking = iota // it cannot think
	ThinksBudget                   // by a number of tokens
	ThinksAdaptive                 // it decides, and takes an effort
)

// NewestClaude is the version of a name without one, such as an alias.
const NewestClaude = 9900

// The versions that something began with.
const (
	claudeThinks  = 307
	claudeAdapts  = 406
	claudeXHigh   = 407 // the highest effort has a name of its own
	claudeAlways  = 500
	claudeBinds   = 505
	claudeLargest = 500 // the largest ones bind from the one after this
)

// ClaudeOf reads the name of a model; false when it is not Claude's.
func ClaudeOf(model string) (Claude, bool) {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	_, rest, ok := strings.Cut(name, "claude")
	if !ok {
		return Claude{}, false
	}
	c := Claude{Version: claudeVersion(rest)}
	switch {
	case c.Version >= claudeAdapts:
		c.Thinks, c.Always = ThinksAdaptive, c.Version >= claudeAlways
	case c.Version >= claudeThinks:
		c.Thinks = ThinksBudget
	}
	c.Binds = c.Version >= claudeBinds || c.Version > claudeLargest && has(name, "fable", "mythos")
	return c, true
}

// claudeVersion finds the version in what follows "claude" in a name, such as
// "-3-7-sonnet-20250219", "-opus-4.6" or "-v2:1".
func claudeVersion(name string) int {
	fields := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("-.@:_", c) })
	for i, field := range fields {
		major, ok := smallNumber(field)
		switch old, isOld := smallNumber(strings.TrimPrefix(field, "v")); {
		case ok:
		case field == "instant":
			return 100 // of the first generations
		case isOld:
			return 100 * old
		default:
			continue
		}
		minor := 0
		if i+1 < len(fields) {
			minor, _ = smallNumber(fields[i+1])
		}
		return major*100 + minor
	}
	return NewestClaude
}

// smallNumber reads a number that is no date.
func smallNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 99 {
		return 0, false
	}
	return n, true
}

// Effort is the word for a level of thought, where the model decides how much
// it thinks; "" for none.
func (c Claude) Effort(level domain.ThoughtLevel) string {
	switch level {
	case domain.ThoughtsMinimal, domain.ThoughtsLow:
		return "low"
	case domain.ThoughtsMedium:
		return "medium"
	case domain.ThoughtsHigh:
		return "high"
	case domain.ThoughtsXHigh:
		switch {
		case c.Version >= claudeXHigh:
			return "xhigh"
		case c.Version >= claudeAdapts:
			return "max"
		}
		return "high"
	case domain.ThoughtsOff:
	}
	return ""
}

// LeastBudget is the smallest number of tokens that Claude takes to think with.
const LeastBudget = 1024

// ThoughtBudget returns the tokens of a level for models that count them, 0
// when a reply of so many tokens has no room to think. A quarter of the reply
// is left for the answer.
func ThoughtBudget(level domain.ThoughtLevel, most int64) int64 {
	var budget int64
	switch level {
	case domain.ThoughtsMinimal:
		budget = LeastBudget
	case domain.ThoughtsLow:
		budget = 4096
	case domain.ThoughtsMedium:
		budget = 10_000
	case domain.ThoughtsHigh:
		budget = 20_000
	case domain.ThoughtsXHigh:
		budget = 32_000
	case domain.ThoughtsOff:
	}
	if budget == 0 || most <= LeastBudget {
		return 0
	}
	return max(LeastBudget, min(budget, most/4*3))
}
