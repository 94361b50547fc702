package llm

import (
	"unicode/utf16"
	"unicode/utf8"
)

// Unescape appends the content of a JSON string, given without its quotes and
// known to be valid JSON. Bytes that are no UTF-8 are kept, and a surrogate
// without its partner becomes the three bytes UTF-8 would give it: the other
// half may come in the next event. Joiner makes characters of both.
func Unescape(dst, s []byte) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c != '\\' {
			n := i + 1
			for n < len(s) && s[n] != '\\' {
				n++
			}
			dst, i = append(dst, s[i:n]...), n
			continue
		}
		switch s[i+1] {
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
			r := hex4(s[i+2:])
			i += 6
			if utf16.IsSurrogate(r) && i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(s[i+2:])); pair != utf8.RuneError {
					r, i = pair, i+6
				}
			}
			dst = appendWide(dst, r)
			continue
		default: // " \ /
			dst = append(dst, s[i+1])
		}
		i += 2
	}
	return dst
}

// appendWide appends a character, and a surrogate as if it were one.
func appendWide(dst []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(dst, r)
}

func hex4(s []byte) rune {
	var r rune
	for _, c := range s[:4] {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		r = r<<4 | rune(c)
	}
	return r
}

// Joiner makes whole characters of pieces that may have been cut inside one.
// What can never become a character is U+FFFD. The zero value is ready.
type Joiner struct {
	rest []byte // the beginning of a character, or the first half of a pair
}

// Add takes the next piece and returns what is whole now, possibly "".
func (j *Joiner) Add(piece []byte) string {
	if len(j.rest) == 0 && utf8.Valid(piece) {
		return string(piece)
	}
	s := append(j.rest, piece...)
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r != utf8.RuneError || n != 1 {
			out, s = append(out, s[:n]...), s[n:]
			continue
		}
		half, whole := surrogate(s)
		switch {
		case !utf8.FullRune(s), half && !whole:
			j.rest = append(j.rest[:0:0], s...)
			return string(out)
		case half && utf16.DecodeRune(wide(s), wide(s[3:])) != utf8.RuneError:
			out, s = utf8.AppendRune(out, utf16.DecodeRune(wide(s), wide(s[3:]))), s[6:]
		case half || isWide(s):
			out, s = utf8.AppendRune(out, utf8.RuneError), s[3:]
		default:
			out, s = utf8.AppendRune(out, utf8.RuneError), s[1:]
		}
	}
	j.rest = j.rest[:0]
	return string(out)
}

// End returns what is left of a character that never was completed.
func (j *Joiner) End() string {
	if len(j.rest) == 0 {
		return ""
	}
	j.rest = j.rest[:0]
	return "\uFFFD"
}

// surrogate reports whether s begins with the first half of a surrogate pair,
// or may yet do so, and whether enough follows to tell what it is worth.
func surrogate(s []byte) (half, whole bool) {
	switch {
	case s[0] != 0xED:
		return false, false
	case len(s) == 1:
		return true, false
	case s[1] < 0xA0 || s[1] > 0xBF:
		return false, false
	case len(s) == 2:
		return true, false
	case s[1] > 0xAF || s[2]&0xC0 != 0x80:
		return false, false
	case len(s) == 3:
		return true, false
	case s[3] != 0xED:
		return true, true // alone
	case len(s) < 6:
		return true, len(s) > 4 && (s[4] < 0xB0 || s[4] > 0xBF)
	}
	return true, true
}

// isWide reports whether s begins with a surrogate in three bytes.
func isWide(s []byte) bool {
	return len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2]&0xC0 == 0x80
}

// wide returns the surrogate that s begins with, 0 when there is none.
func wide(s []byte) rune {
	if !isWide(s) {
		return 0
	}
	return rune(s[0]&0x0F)<<12 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)
}
