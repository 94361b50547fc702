package openai

import "bytes"

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
	s := scanner{b: b}
	var d delta
	ok := s.object(func(name []byte) bool {
		switch string(name) {
		case "choices":
			return s.once(seenChoices) && s.choices(&d)
		case "error", "usage", "x_groq":
			return s.null()
		}
		return s.skip(0)
	}) && s.atEnd()
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
	b    []byte
	i    int
	seen int
}

func (s *scanner) choices(d *delta) bool {
	if !s.eat('[') || !s.object(func(name []byte) bool {
		switch string(name) {
		case "index":
			return s.once(seenIndex) && s.zero()
		case "delta":
			return s.once(seenDelta) && s.delta(d)
		case "finish_reason":
			if !s.once(seenFinish) {
				return false
			}
			return s.text(&d.finish)
		case "message", "usage", "text", "error":
			return false
		}
		return s.skip(0)
	}) {
		return false
	}
	return s.eat(']')
}

func (s *scanner) delta(d *delta) bool {
	var other []byte
	ok := s.object(func(name []byte) bool {
		switch string(name) {
		case "content":
			return s.once(seenContent) && s.text(&d.content)
		case "reasoning_content":
			return s.once(seenReasoningContent) && s.text(&d.reasoning)
		case "reasoning":
			return s.once(seenReasoning) && s.text(&other)
		case "refusal", "tool_calls", "function_call", "reasoning_details", "extra_content":
			return s.null()
		}
		return s.skip(0)
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

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// eat takes one byte after white space.
func (s *scanner) eat(c byte) bool {
	if s.space(); s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

func (s *scanner) peek() byte {
	if s.space(); s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

func (s *scanner) atEnd() bool { return s.peek() == 0 && s.i == len(s.b) }

func (s *scanner) word(w string) bool {
	if bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		s.i += len(w)
		return true
	}
	return false
}

func (s *scanner) null() bool { s.space(); return s.word("null") }

// zero takes the number 0, in its plainest form.
func (s *scanner) zero() bool {
	if !s.eat('0') || s.i == len(s.b) {
		return false
	}
	next := s.b[s.i]
	return next == ',' || next == '}' || next == ' '
}

// object takes an object and calls member for each name, to take its value.
// Names that a decoder which ignores case could take for another are refused.
func (s *scanner) object(member func(name []byte) bool) bool {
	if !s.eat('{') {
		return false
	}
	if s.eat('}') {
		return true
	}
	for {
		var name []byte
		if !s.str(&name) || !lower(name) || !s.eat(':') || !member(name) {
			return false
		}
		if s.eat('}') {
			return true
		}
		if !s.eat(',') {
			return false
		}
	}
}

func lower(name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// text takes a string or null.
func (s *scanner) text(to *[]byte) bool {
	if s.peek() == 'n' {
		return s.null()
	}
	return s.str(to)
}

// str takes a string and checks it; the body is left as it stands.
func (s *scanner) str(to *[]byte) bool {
	if !s.eat('"') {
		return false
	}
	b, i := s.b, s.i
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			*to = b[s.i:i:i]
			s.i = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			n := escape(b[i:])
			if n == 0 {
				return false
			}
			i += n
		default:
			i++
		}
	}
	return false
}

// escape returns the length of the escape that b begins with, 0 when it is
// none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(b) < 6 {
			return 0
		}
		for _, c := range b[2:6] {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return 0
			}
		}
		return 6
	}
	return 0
}

// number takes a number of JSON's form.
func (s *scanner) number() bool {
	b, i := s.b, s.i
	digits := func() bool {
		start := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return false
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	s.i = i
	return true
}

// maxSkip is how deep a value may be that is passed over.
const maxSkip = 16

// skip takes any value.
func (s *scanner) skip(depth int) bool {
	if depth > maxSkip {
		return false
	}
	switch c := s.peek(); c {
	case '"':
		var body []byte
		return s.str(&body)
	case '{':
		return s.skipObject(depth)
	case '[':
		return s.skipArray(depth)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) skipObject(depth int) bool {
	s.i++
	if s.eat('}') {
		return true
	}
	for {
		var name []byte
		if !s.str(&name) || !s.eat(':') || !s.skip(depth+1) {
			return false
		}
		if s.eat('}') {
			return true
		}
		if !s.eat(',') {
			return false
		}
	}
}

func (s *scanner) skipArray(depth int) bool {
	s.i++
	if s.eat(']') {
		return true
	}
	for {
		if !s.skip(depth + 1) {
			return false
		}
		if s.eat(']') {
			return true
		}
		if !s.eat(',') {
			return false
		}
	}
}
