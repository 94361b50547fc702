package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

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
