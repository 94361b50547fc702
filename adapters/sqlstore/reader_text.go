package sqlstore

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string.
func (r *reader) text() string {
	if !r.want('"') {
		return ""
	}
	end := r.quoteEnd()
	if end < 0 {
		r.fail("no end of a string")
		return ""
	}
	body := r.s[r.i:end]
	if strings.IndexByte(body, '\\') >= 0 {
		body = r.unescape(end)
	}
	r.i = end + 1
	return body
}

// quoteEnd finds the quote that ends a string: one behind an even number of
// backslashes.
func (r *reader) quoteEnd() int {
	for at := r.i; ; at++ {
		next := strings.IndexByte(r.s[at:], '"')
		if next < 0 {
			return -1
		}
		at += next
		from := at
		for from > r.i && r.s[from-1] == '\\' {
			from--
		}
		if (at-from)%2 == 0 {
			return at
		}
	}
}

// unescape reads a string with escapes up to its end.
func (r *reader) unescape(end int) string {
	var b strings.Builder
	b.Grow(end - r.i)
	for r.err == nil {
		escape := strings.IndexByte(r.s[r.i:end], '\\')
		if escape < 0 {
			b.WriteString(r.s[r.i:end])
			return b.String()
		}
		b.WriteString(r.s[r.i : r.i+escape])
		r.i += escape
		r.escape(&b)
	}
	return ""
}

// escape reads one escape sequence.
func (r *reader) escape(b *strings.Builder) {
	if r.i+1 >= len(r.s) {
		r.fail("a cut escape")
		return
	}
	c := r.s[r.i+1]
	r.i += 2
	switch c {
	case '"', '\\', '/':
		b.WriteByte(c)
	case 'n':
		b.WriteByte('\n')
	case 'r':
		b.WriteByte('\r')
	case 't':
		b.WriteByte('\t')
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'u':
		b.WriteRune(r.rune())
	default:
		r.fail("an unknown escape")
	}
}

// rune reads the digits of \uXXXX, and of a second one when the first is half
// of a pair.
func (r *reader) rune() rune {
	c := r.hex4()
	if utf16.IsSurrogate(c) && strings.HasPrefix(r.s[r.i:], `\u`) {
		r.i += 2
		return utf16.DecodeRune(c, r.hex4())
	}
	return c
}

func (r *reader) hex4() rune {
	if r.i+4 > len(r.s) {
		r.fail("a cut escape")
		return utf8.RuneError
	}
	var v rune
	for _, c := range []byte(r.s[r.i : r.i+4]) {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | rune(c-'A'+10)
		default:
			r.fail("a bad escape")
			return utf8.RuneError
		}
	}
	r.i += 4
	return v
}
