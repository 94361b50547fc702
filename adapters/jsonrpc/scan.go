package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A scanner walks one JSON text once and proves it: grammar, UTF-8, escapes
// that name real characters, no member twice in an object at any depth,
// nesting within the limit. Beside that it notes where the members of the
// outermost object lie, so an envelope costs one pass and no copies.
//
// encoding/json cannot do this: it replaces bad UTF-8 and lone surrogates in
// silence, keeps the last of two equal names and folds their case.
type scanner struct {
	b        []byte
	maxDepth int
	names    [][]byte // names of the objects open now, innermost last
	open     int      // members of all objects open now
	fault    fault    // why walking stopped, when it did
	dup      bool     // a member came twice somewhere
	dupTop   bool     // ... in the outermost object
}

// fault is why a text was given up.
type fault uint8

const (
	faultSyntax  fault = iota + 1 // not JSON
	faultDepth                    // nests too deep
	faultMembers                  // more members at once than we compare
)

// fewMembers is up to how many members an object's names are compared one by
// one; beyond, a set is built.
const fewMembers = 16

// maxOpenMembers bounds the memory that comparing names may take. A message
// of this protocol has dozens.
const maxOpenMembers = 1 << 16

// reset prepares the scanner for a text, keeping its memory.
func (s *scanner) reset(b []byte, maxDepth int) {
	*s = scanner{b: b, maxDepth: maxDepth, names: s.names[:0]}
}

// text walks a whole text: one value with white space around it. It reports
// whether that succeeded; fault says why not. A repeated member does not stop
// the walk, so that a text that is no JSON at all is always called that.
func (s *scanner) text(env *envelope) bool {
	i := s.space(0)
	if env != nil && i < len(s.b) && s.b[i] == '{' {
		env.object = true
		i = s.envelope(i, env)
	} else {
		i = s.value(i, 1)
	}
	if i < 0 {
		return false
	}
	if i = s.space(i); i != len(s.b) {
		s.stop(faultSyntax)
		return false
	}
	return true
}

// stop notes the first fault and returns the position that means "stopped".
func (s *scanner) stop(f fault) int {
	if s.fault == 0 {
		s.fault = f
	}
	return -1
}

// space returns the first position at or after i that is not white space.
func (s *scanner) space(i int) int {
	for i < len(s.b) && (s.b[i] == ' ' || s.b[i] == '\t' || s.b[i] == '\n' || s.b[i] == '\r') {
		i++
	}
	return i
}

// value walks the value at i, which would open level depth, and returns the
// position behind it, or -1.
func (s *scanner) value(i, depth int) int {
	if i >= len(s.b) {
		return s.stop(faultSyntax)
	}
	switch c := s.b[i]; {
	case c == '"':
		end, _ := scanString(s.b, i+1)
		if end < 0 {
			return s.stop(faultSyntax)
		}
		return end
	case c == '{':
		return s.object(i, depth)
	case c == '[':
		return s.array(i, depth)
	case c == '-' || c-'0' < 10:
		return s.number(i)
	case c == 't':
		return s.literal(i, "true")
	case c == 'f':
		return s.literal(i, "false")
	case c == 'n':
		return s.literal(i, "null")
	}
	return s.stop(faultSyntax)
}

func (s *scanner) literal(i int, word string) int {
	if len(s.b)-i < len(word) || string(s.b[i:i+len(word)]) != word {
		return s.stop(faultSyntax)
	}
	return i + len(word)
}

// number walks a number by the grammar of RFC 8259.
func (s *scanner) number(i int) int {
	b := s.b
	digits := func() bool {
		start := i
		for i < len(b) && b[i]-'0' < 10 {
			i++
		}
		return i > start
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return s.stop(faultSyntax)
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return s.stop(faultSyntax)
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return s.stop(faultSyntax)
		}
	}
	return i
}

func (s *scanner) array(i, depth int) int {
	if depth > s.maxDepth {
		return s.stop(faultDepth)
	}
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth+1); i < 0 {
			return i
		}
		i = s.space(i)
		if i >= len(s.b) {
			return s.stop(faultSyntax)
		}
		switch s.b[i] {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1
		default:
			return s.stop(faultSyntax)
		}
	}
}

func (s *scanner) object(i, depth int) int {
	if depth > s.maxDepth {
		return s.stop(faultDepth)
	}
	o := objectNames{base: len(s.names), top: depth == 1}
	defer s.forget(&o)
	i, more := s.firstName(i)
	for more {
		if _, i = s.name(i, &o); i < 0 {
			return i
		}
		if i = s.value(i, depth+1); i < 0 {
			return i
		}
		i, more = s.nextName(i)
	}
	return i
}

// firstName steps over the opening brace and reports whether a member
// follows; if not, i is behind the object, or -1.
func (s *scanner) firstName(i int) (int, bool) {
	i = s.space(i + 1)
	if i < len(s.b) && s.b[i] == '}' {
		return i + 1, false
	}
	return i, true
}

// nextName steps over what stands behind a member.
func (s *scanner) nextName(i int) (int, bool) {
	i = s.space(i)
	if i < len(s.b) {
		switch s.b[i] {
		case ',':
			return s.space(i + 1), true
		case '}':
			return i + 1, false
		}
	}
	return s.stop(faultSyntax), false
}

// objectNames is what is known about one open object's names.
type objectNames struct {
	base int // where its names start in scanner.names
	n    int
	set  map[string]struct{} // of all names, once there are many
	top  bool
}

// forget drops the names of an object that is closed.
func (s *scanner) forget(o *objectNames) {
	s.names = s.names[:o.base]
	s.open -= o.n
}

// name walks a member's name and its colon, compares it with the names before
// it and returns it unescaped, with the position of the member's value.
func (s *scanner) name(i int, o *objectNames) ([]byte, int) {
	if i >= len(s.b) || s.b[i] != '"' {
		return nil, s.stop(faultSyntax)
	}
	end, escaped := scanString(s.b, i+1)
	if end < 0 {
		return nil, s.stop(faultSyntax)
	}
	name := s.b[i+1 : end-1]
	if escaped {
		name = unescape(nil, name)
	}
	if i = s.space(end); i >= len(s.b) || s.b[i] != ':' {
		return nil, s.stop(faultSyntax)
	}
	o.n++
	if s.open++; s.open > maxOpenMembers {
		return nil, s.stop(faultMembers)
	}
	if s.seen(name, o) {
		s.dup = true
		s.dupTop = s.dupTop || o.top
	}
	return name, s.space(i + 1)
}

// seen reports whether the object had the name already, and notes it.
func (s *scanner) seen(name []byte, o *objectNames) bool {
	if o.set != nil {
		before := len(o.set)
		o.set[string(name)] = struct{}{}
		return len(o.set) == before
	}
	known := s.names[o.base:]
	for _, k := range known {
		if string(k) == string(name) {
			return true
		}
	}
	s.names = append(s.names, name)
	if len(known) >= fewMembers {
		o.set = make(map[string]struct{}, 4*fewMembers)
		for _, k := range s.names[o.base:] {
			o.set[string(k)] = struct{}{}
		}
	}
	return false
}

// Eight equal bytes in a word, for looking at eight characters at a time.
const (
	ones   = 0x0101010101010101
	highs  = 0x8080808080808080
	spaces = 0x20 * ones
	quotes = '"' * ones
	slants = '\\' * ones
)

// scanString walks a string whose opening quote stands before i. It returns
// the position behind the closing quote, or -1, and whether the string has
// escapes. Plain ASCII passes eight bytes at a time: pictures arrive as
// strings of tens of megabytes.
func scanString(b []byte, i int) (end int, escaped bool) {
	for {
		for i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			// A high bit marks a byte below a space, a quote, a backslash or
			// a byte above ASCII. Borrows make false marks only above a true
			// one, and the lowest mark is the one used.
			m := ((w - spaces) | ((w ^ quotes) - ones) | ((w ^ slants) - ones) | w) & highs
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			i += 8
		}
		if i >= len(b) {
			return -1, escaped
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			n := scanEscape(b[i:])
			if n == 0 {
				return -1, escaped
			}
			i += n
			escaped = true
		case c < ' ':
			return -1, escaped
		case c < utf8.RuneSelf:
			i++
		default:
			for i < len(b) && b[i] >= utf8.RuneSelf {
				r, n := utf8.DecodeRune(b[i:])
				if r == utf8.RuneError && n == 1 {
					return -1, escaped
				}
				i += n
			}
		}
	}
}

// scanEscape returns the length of the escape b starts with, a surrogate pair
// counted as one, or 0 if it is none or names half a pair.
func scanEscape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		switch r := hex4(b[2:]); {
		case r < 0 || r >= 0xDC00 && r < 0xE000:
			return 0
		case r >= 0xD800 && r < 0xDC00:
			if len(b) < 12 || b[6] != '\\' || b[7] != 'u' {
				return 0
			}
			if low := hex4(b[8:]); low < 0xDC00 || low >= 0xE000 {
				return 0
			}
			return 12
		}
		return 6
	}
	return 0
}

// hex4 reads four hexadecimal digits, or returns -1.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape appends the text of a string's inside that scanString accepted.
func unescape(dst, b []byte) []byte {
	for i := 0; i < len(b); {
		c := b[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		switch b[i+1] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(b[i+2:])
			if r >= 0xD800 && r < 0xDC00 {
				r = 0x10000 + (r-0xD800)<<10 + hex4(b[i+8:]) - 0xDC00
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
			i += 4
		default:
			dst = append(dst, b[i+1])
		}
		i += 2
	}
	return dst
}
