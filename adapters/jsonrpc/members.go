package jsonrpc

import (
	"encoding/json"
	"iter"
)

// Members yields the members of a JSON object in order, names unescaped,
// values as slices of raw. It is for text that is known to be valid, as
// everything inside a Message is: of other text it yields what it can make
// out, and of anything but an object nothing.
func Members(raw []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for m := range members(raw) {
			if !yield(stringValue(raw[m.name:m.nameEnd]), raw[m.value:m.end:m.end]) {
				return
			}
		}
	}
}

// Elements yields the elements of a JSON array in order, as slices of raw,
// under the same terms as Members.
func Elements(raw []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		for from, to := range elements(raw) {
			if !yield(raw[from:to:to]) {
				return
			}
		}
	}
}

// member is where one member lies: its name with the quotes, its value.
type member struct{ name, nameEnd, value, end int }

// members walks the object raw.
func members(raw []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		s := scanner{b: raw}
		i := s.space(0)
		if i >= len(raw) || raw[i] != '{' {
			return
		}
		i, more := s.firstName(i)
		for more && i < len(raw) && raw[i] == '"' {
			m := member{name: i}
			if m.nameEnd, _ = scanString(raw, i+1); m.nameEnd < 0 {
				return
			}
			m.value = s.space(s.space(m.nameEnd) + 1)
			m.end = skip(raw, m.value)
			if m.end <= m.value || !yield(m) {
				return
			}
			i, more = s.nextName(m.end)
		}
	}
}

// elements walks the array raw and yields where each element starts and ends.
func elements(raw []byte) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		s := scanner{b: raw}
		i := s.space(0)
		if i >= len(raw) || raw[i] != '[' {
			return
		}
		i = s.space(i + 1)
		for i < len(raw) && raw[i] != ']' {
			end := skip(raw, i)
			if end <= i || !yield(i, end) {
				return
			}
			if i = s.space(end); i < len(raw) && raw[i] == ',' {
				i = s.space(i + 1)
			}
		}
	}
}

// skip returns the position behind the value that starts at i, or i or less
// if there is none.
func skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i, _ = scanString(b, i+1); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
			i++
			continue
		default: // a number or a word
			for i++; i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != '}' && b[i] != ']'; {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}
