package anthropic

import (
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// thinking is how a model is told how much to think.
type thinking int

// The ways of telling.
const (
	thinksNever    thinking = iota // it cannot think
	thinksBudget                   // by a number of tokens
	thinksAdaptive                 // it decides, and takes an effort
)

// family is what the name of a model tells.
type family struct {
	claude  bool
	version int // major*100+minor; newest when the name has none
	think   thinking
	// always is set when the model thinks unless told not to.
	always bool
	top    string // the effort of the highest thought level
	// binds is set when the model reads a thought only behind the very messages
	// that it was thought behind.
	binds bool
}

// newest is the version of a name without one, such as an alias.
const newest = 9900

// familyOf reads the name of a model. Names that are not Claude's are those of
// compatible servers, which take the older of the two ways.
func familyOf(model string) family {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	i := strings.Index(name, "claude")
	if i < 0 {
		return family{think: thinksBudget, always: true}
	}
	f := family{claude: true, version: versionOf(name[i+len("claude"):]), top: "xhigh"}
	switch {
	case f.version < 307:
		f.think = thinksNever
	case f.version < 406:
		f.think = thinksBudget
	default:
		f.think = thinksAdaptive
		f.always = f.version >= 500
		if f.version == 406 {
			f.top = "max"
		}
		largest := strings.Contains(name, "fable") || strings.Contains(name, "mythos")
		f.binds = f.version >= 505 || f.version > 500 && largest
	}
	return f
}

// versionOf finds the version in a name such as "-3-7-sonnet-20250219" or
// "-opus-4.6".
func versionOf(name string) int {
	fields := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("-.@:_", c) })
	for i, field := range fields {
		major, ok := small(field)
		if !ok {
			continue
		}
		minor := 0
		if i+1 < len(fields) {
			minor, _ = small(fields[i+1])
		}
		return major*100 + minor
	}
	return newest
}

// small reads a number that is no date.
func small(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 99 {
		return 0, false
	}
	return n, true
}

// complete adds what the name of a Claude model tells, for those that no
// catalogue lists yet. Of other models the name tells nothing.
func complete(info domain.ModelInfo) domain.ModelInfo {
	f := familyOf(info.Ref.Model)
	info.Audio = false // the wire has none
	if !f.claude {
		return info
	}
	info.Images = f.version >= 300
	info.Thoughts = f.think != thinksNever
	if f.version > 406 {
		info.ContextWindow = max(info.ContextWindow, 1_000_000)
		info.MaxOutput = max(info.MaxOutput, 128_000)
	}
	return info
}
