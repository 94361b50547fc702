package llm

import "bytes"

// Scanner reads the few forms of an event that make up nearly all of a stream,
// without decoding it: a chunk has a few bytes of text in hundreds of bytes of
// repetition. What it accepts is valid JSON; what it does not, valid or not, is
// for encoding/json. All methods pass over white space first, and report
// false when something else stands there; what is then left is undefined.
type Scanner struct {
	b []byte
	i int
}

// NewScanner returns a scanner of an event.
func NewScanner(b []byte) Scanner { return Scanner{b: b} }

func (s *Scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// Eat takes one byte.
func (s *Scanner) Eat(c byte) bool {
	if s.space(); s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

// Peek returns the next byte without taking it, 0 at the end.
func (s *Scanner) Peek() byte {
	if s.space(); s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// Literal takes these very bytes.
func (s *Scanner) Literal(w string) bool {
	s.space()
	if bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		s.i += len(w)
		return true
	}
	return false
}

// Null takes a null.
func (s *Scanner) Null() bool { return s.Literal("null") }

// End reports whether nothing follows.
func (s *Scanner) End() bool { s.space(); return s.i == len(s.b) }

// Object takes an object and calls member for each name, to take its value.
// The name is as it stands between the quotes.
func (s *Scanner) Object(member func(name []byte) bool) bool {
	if !s.Eat('{') {
		return false
	}
	if s.Eat('}') {
		return true
	}
	for {
		var name []byte
		if !s.String(&name) || !s.Eat(':') || !member(name) {
			return false
		}
		if s.Eat('}') {
			return true
		}
		if !s.Eat(',') {
			return false
		}
	}
}

// List takes a list of one element.
func (s *Scanner) List(element func() bool) bool { return s.Eat('[') && element() && s.Eat(']') }

// Text takes a string or null.
func (s *Scanner) Text(to *[]byte) bool {
	if s.Peek() == 'n' {
		return s.Null()
	}
	return s.String(to)
}

// String takes a string and checks it; to gets what stands between the quotes.
func (s *Scanner) String(to *[]byte) bool {
	if !s.Eat('"') {
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

// Index takes a whole number of at most six digits.
func (s *Scanner) Index(to *int) bool {
	s.space()
	start, n := s.i, 0
	for s.i < len(s.b) && s.i-start < 6 && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		n = n*10 + int(s.b[s.i]-'0')
		s.i++
	}
	*to = n
	switch {
	case s.i == start || s.i > start+1 && s.b[start] == '0':
		return false
	case s.i == len(s.b):
		return true
	}
	switch s.b[s.i] {
	case ',', '}', ']', ' ', '\t', '\r', '\n':
		return true
	}
	return false // a fraction, or more digits
}

// Value takes any value and checks it; to, when it is not nil, gets it as it
// stands.
func (s *Scanner) Value(to *[]byte) bool {
	s.space()
	start := s.i
	if !s.skip(0) {
		return false
	}
	if to != nil {
		*to = s.b[start:s.i:s.i]
	}
	return true
}

// maxSkip is how deep a value may be that is passed over.
const maxSkip = 16

func (s *Scanner) skip(depth int) bool {
	if depth > maxSkip {
		return false
	}
	switch s.Peek() {
	case '"':
		var body []byte
		return s.String(&body)
	case '{':
		return s.skipObject(depth)
	case '[':
		return s.skipList(depth)
	case 't':
		return s.Literal("true")
	case 'f':
		return s.Literal("false")
	case 'n':
		return s.Null()
	}
	return s.number()
}

func (s *Scanner) skipObject(depth int) bool {
	return s.Object(func([]byte) bool { return s.skip(depth + 1) })
}

func (s *Scanner) skipList(depth int) bool {
	s.i++
	if s.Eat(']') {
		return true
	}
	for {
		if !s.skip(depth + 1) {
			return false
		}
		if s.Eat(']') {
			return true
		}
		if !s.Eat(',') {
			return false
		}
	}
}

// number takes a number of JSON's form.
func (s *Scanner) number() bool {
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
