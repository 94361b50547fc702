package llm

import (
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// Efforts is a set of reasoning efforts that a model has refused. Its zero
// value has refused none.
type Efforts uint32

// The efforts that some models do not know, and all of them.
const (
	noNone Efforts = 1 << iota
	noMinimal
	noXHigh
	noEffort
)

// EffortBits is how many bits of a number a set of efforts takes.
const EffortBits = 4

// Effort returns the word of the OpenAI wires for a level: the nearest one
// that was not refused, "" when the provider is to decide.
func Effort(level domain.ThoughtLevel, refused Efforts) string {
	if refused&noEffort != 0 {
		return ""
	}
	switch level {
	case domain.ThoughtsOff:
		if refused&noNone == 0 {
			return "none"
		}
		return Effort(domain.ThoughtsMinimal, refused)
	case domain.ThoughtsMinimal:
		if refused&noMinimal == 0 {
			return "minimal"
		}
		return "low"
	case domain.ThoughtsXHigh:
		if refused&noXHigh == 0 {
			return "xhigh"
		}
		return "high"
	case domain.ThoughtsLow, domain.ThoughtsMedium, domain.ThoughtsHigh:
		return string(level)
	}
	return ""
}

// RefuseEffort adds what the words of a refusal say about the effort that was
// sent: that value alone where they are about values, else every one.
func RefuseEffort(refused Efforts, sent, words string) Efforts {
	words = strings.ToLower(words)
	if has(words, "value", "does not support", "must be one of", "input should be", "mandatory", "cannot be disabled") {
		switch sent {
		case "none":
			return refused | noNone
		case "minimal":
			return refused | noMinimal
		case "xhigh":
			return refused | noXHigh
		}
	}
	return refused | noEffort
}
