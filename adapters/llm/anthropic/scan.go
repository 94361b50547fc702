package anthropic

import "bytes"

// delta is what the usual event carries: the body of a JSON string, without
// its quotes, as it stood in the event.
type delta struct {
	index int
	think bool // a thought, not a text
	text  []byte
}

// scan reads the event that makes up nearly all of a stream, a piece of text
// or of a thought, in the order of names that servers write it in. It reports
// false for everything else, valid or not, and the caller decodes the event in
// full. What it accepts is valid JSON, and it says of it what the full
// decoding would.
func scan(b []byte) (delta, bool) {
	s := scanner{b: b}
	var d delta
	ok := s.eat('{') && s.lit(`"type"`) && s.eat(':') && s.lit(`"content_block_delta"`) && s.eat(',') &&
		s.lit(`"index"`) && s.eat(':') && s.number(&d.index) && s.eat(',') &&
		s.lit(`"delta"`) && s.eat(':') && s.eat('{') && s.lit(`"type"`) && s.eat(':')
	if !ok {
		return d, false
	}
	switch {
	case s.lit(`"text_delta"`):
		ok = s.eat(',') && s.lit(`"text"`)
	case s.lit(`"thinking_delta"`):
		d.think = true
		ok = s.eat(',') && s.lit(`"thinking"`)
	default:
		return d, false
	}
	ok = ok && s.eat(':') && s.str(&d.text) && s.eat('}') && s.eat('}')
	s.space()
	return d, ok && s.i == len(b)
}

type scanner struct {
	b []byte
	i int
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

// lit takes these very bytes after white space.
func (s *scanner) lit(w string) bool {
	s.space()
	if bytes.HasPrefix(s.b[s.i:], []byte(w)) {
		s.i += len(w)
		return true
	}
	return false
}

// number takes a whole number in its plainest form.
func (s *scanner) number(to *int) bool {
	s.space()
	start, n := s.i, 0
	for s.i < len(s.b) && s.i-start < 6 && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
		n = n*10 + int(s.b[s.i]-'0')
		s.i++
	}
	*to = n
	return s.i == start+1 || s.i > start && s.b[start] != '0'
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
