package openai

import "github.com/berth-dev/berth/adapters/llm"

// delta is what a text event carries: the bodies of JSON strings, without
// their quotes, as they stood in the event. A nil one was absent or null.
type delta struct {
	content   []byte
	reasoning []byte
	field     string // the name reasoning came under
	finish    []byte
}

// scan reads the event that makes up nearly all of a stream: one choice whose
// delta holds text or reasoning or nothing. It reports false for everything
// else, valid or not, and the caller decodes the event in full. What it
// accepts is valid JSON, and it says of it what the full decoding would:
// names it does not know are passed over only where the full decoding passes
// over them too.
//
// A stream is thousands of such events, each with a few bytes of text in two
// hundred bytes of repetition; reading them this way is what keeps a chunk
// below a microsecond.
func scan(b []byte) (delta, bool) {
	s := scanner{Scanner: llm.NewScanner(b)}
	var d delta
	ok := s.Object(func(name []byte) bool {
		switch string(name) {
		case "choices":
			return s.once(seenChoices) && s.List(func() bool { return s.choice(&d) })
		case "error", "usage", "x_groq":
			return s.Null()
		}
		return s.other(name)
	}) && s.End()
	return d, ok && s.seen&seenChoices != 0
}

// What of an event was seen; a name that comes twice is left to the full
// decoding.
const (
	seenChoices = 1 << iota
	seenIndex
	seenDelta
	seenFinish
	seenContent
	seenReasoning
	seenReasoningContent
)

type scanner struct {
	llm.Scanner
	seen int
}

func (s *scanner) choice(d *delta) bool {
	return s.Object(func(name []byte) bool {
		switch string(name) {
		case "index":
			var n int
			return s.once(seenIndex) && s.Index(&n) && n == 0
		case "delta":
			return s.once(seenDelta) && s.delta(d)
		case "finish_reason":
			return s.once(seenFinish) && s.Text(&d.finish)
		case "message", "usage", "text", "error":
			return false
		}
		return s.other(name)
	})
}

func (s *scanner) delta(d *delta) bool {
	var other []byte
	ok := s.Object(func(name []byte) bool {
		switch string(name) {
		case "content":
			return s.once(seenContent) && s.Text(&d.content)
		case "reasoning_content":
			return s.once(seenReasoningContent) && s.Text(&d.reasoning)
		case "reasoning":
			return s.once(seenReasoning) && s.Text(&other)
		case "refusal", "tool_calls", "function_call", "reasoning_details", "extra_content":
			return s.Null()
		}
		return s.other(name)
	})
	d.field = "reasoning_content"
	if len(d.reasoning) == 0 && len(other) > 0 {
		d.reasoning, d.field = other, "reasoning"
	}
	return ok
}

func (s *scanner) once(bit int) bool {
	fresh := s.seen&bit == 0
	s.seen |= bit
	return fresh
}

// other passes over a member that means nothing here. Names that a decoder
// which ignores case could take for another are refused.
func (s *scanner) other(name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return s.Value(nil)
}
