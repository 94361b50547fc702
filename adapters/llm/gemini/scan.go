package gemini

import (
	"bytes"
	"encoding/json"
)

// piece is what the usual chunk carries. Its slices are parts of the chunk.
type piece struct {
	text    []byte // the body of a JSON string, without its quotes
	thought bool
	usage   []byte // an object, nil when there was none
}

// scan reads the chunk that makes up nearly all of a stream: one candidate with
// one text, and counts. It reports false for everything else, valid or not, and
// the caller decodes the chunk in full. What it accepts is valid JSON, and it
// says of it what the full decoding would; so it passes over no name but the
// few it knows to mean nothing here.
//
// A stream is thousands of such chunks, each with a few bytes of text in four
// hundred bytes of repetition.
func scan(b []byte) (piece, bool) {
	s := scanner{b: b}
	var p piece
	ok := s.object(func(name []byte) bool {
		switch string(name) {
		case "candidates":
			return s.once(seenCandidates) && s.list(func() bool { return s.candidate(&p) })
		case "usageMetadata":
			return s.once(seenUsage) && s.value(&p.usage) && p.usage[0] == '{'
		case "modelVersion", "responseId", "createTime":
			return s.value(nil)
		}
		return false
	})
	s.space()
	return p, ok && s.i == len(b) && s.seen&seenText != 0
}

// What of a chunk was seen; a name that comes twice is left to the full
// decoding.
const (
	seenCandidates = 1 << iota
	seenUsage
	seenContent
	seenIndex
	seenParts
	seenText
	seenThought
)

type scanner struct {
	b    []byte
	i    int
	seen int
}

func (s *scanner) candidate(p *piece) bool {
	return s.object(func(name []byte) bool {
		switch string(name) {
		case "content":
			return s.once(seenContent) && s.object(func(name []byte) bool {
				switch string(name) {
				case "parts":
					return s.once(seenParts) && s.list(func() bool { return s.part(p) })
				case "role":
					return s.value(nil)
				}
				return false
			})
		case "index":
			var n []byte
			return s.once(seenIndex) && s.value(&n) && string(n) == "0"
		case "safetyRatings":
			return s.value(nil)
		}
		return false
	})
}

func (s *scanner) part(p *piece) bool {
	return s.object(func(name []byte) bool {
		switch string(name) {
		case "text":
			return s.once(seenText) && s.str(&p.text)
		case "thought":
			var b []byte
			ok := s.once(seenThought) && s.value(&b)
			p.thought = string(b) == "true"
			return ok && (p.thought || string(b) == "false")
		}
		return false
	})
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

// object takes an object and calls member for each name, to take its value.
func (s *scanner) object(member func(name []byte) bool) bool {
	if !s.eat('{') {
		return false
	}
	for {
		var name []byte
		if !s.str(&name) || !s.eat(':') || !member(name) {
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

// list takes a list of one element.
func (s *scanner) list(element func() bool) bool { return s.eat('[') && element() && s.eat(']') }

// str takes a string and checks it; the body is left as it stands.
func (s *scanner) str(to *[]byte) bool {
	if !s.eat('"') {
		return false
	}
	start := s.i
	end := s.quote(start)
	if end < 0 {
		return false
	}
	*to, s.i = s.b[start:end:end], end+1
	if bytes.IndexByte(*to, '\\') < 0 {
		return plainText(*to)
	}
	return json.Valid(s.b[start-1 : s.i])
}

// quote returns where the string ends whose body begins at i, -1 when it does
// not.
func (s *scanner) quote(i int) int {
	for i < len(s.b) {
		switch s.b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
		i++
	}
	return -1
}

// plainText reports whether a string without escapes is one of JSON.
func plainText(b []byte) bool {
	for _, c := range b {
		if c < ' ' {
			return false
		}
	}
	return true
}

// value takes any value and checks it.
func (s *scanner) value(to *[]byte) bool {
	s.space()
	start, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if s.i = s.quote(s.i + 1); s.i < 0 {
				s.i = len(s.b)
				return false
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				return s.took(start, to)
			}
		}
		if depth < 0 { // the end of what holds the value
			return s.took(start, to)
		}
		s.i++
	}
	return false
}

func (s *scanner) took(start int, to *[]byte) bool {
	v := bytes.TrimRight(s.b[start:s.i], " \t\r\n")
	if to != nil {
		*to = v
	}
	return json.Valid(v)
}
