package sqlstore

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// reader reads what writer wrote, from a payload held as a string: text
// without escapes is handed out as a part of it, without a copy. Members it
// is not asked about are skipped, so a later version may add some. After the
// first mistake everything reads as zero and err says what it was.
type reader struct {
	s   string
	i   int
	err error
}

var errPayload = errors.New("payload is not what was written")

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s at byte %d", errPayload, what, r.i)
	}
}

// peek returns the next byte that matters, 0 at the end or after a mistake.
func (r *reader) peek() byte {
	if r.err != nil {
		return 0
	}
	for r.i < len(r.s) {
		switch c := r.s[r.i]; c {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return c
		}
	}
	return 0
}

func (r *reader) want(c byte) bool {
	if r.peek() != c {
		r.fail("no " + string(c))
		return false
	}
	r.i++
	return true
}

// object is an iterator over the keys of an object. The body reads the value
// of each or calls skip.
func (r *reader) object(yield func(string) bool) {
	if !r.want('{') {
		return
	}
	if r.peek() == '}' {
		r.i++
		return
	}
	for {
		key := r.text()
		if !r.want(':') || !yield(key) || r.err != nil {
			return
		}
		if r.peek() != ',' {
			break
		}
		r.i++
	}
	r.want('}')
}

// array is an iterator over the places of a list. The body reads one value at
// each.
func (r *reader) array(yield func() bool) {
	if !r.want('[') {
		return
	}
	if r.peek() == ']' {
		r.i++
		return
	}
	for {
		if !yield() || r.err != nil {
			return
		}
		if r.peek() != ',' {
			break
		}
		r.i++
	}
	r.want(']')
}

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

// number reads an integer.
func (r *reader) number() int64 {
	negative := r.peek() == '-'
	if negative {
		r.i++
	}
	from, n := r.i, uint64(0)
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	for ; r.i < len(r.s) && r.s[r.i] >= '0' && r.s[r.i] <= '9'; r.i++ {
		if n = n*10 + uint64(r.s[r.i]-'0'); n > limit || r.i-from >= 19 {
			r.fail("a number out of range")
			return 0
		}
	}
	if r.i == from {
		r.fail("no number")
		return 0
	}
	if negative {
		return -int64(n)
	}
	return int64(n)
}

// flag reads true or false.
func (r *reader) flag() bool {
	r.peek()
	rest := r.s[r.i:]
	switch {
	case r.err != nil:
	case strings.HasPrefix(rest, "true"):
		r.i += len("true")
		return true
	case strings.HasPrefix(rest, "false"):
		r.i += len("false")
	default:
		r.fail("neither true nor false")
	}
	return false
}

// bytes reads what writer.bytes wrote. It is never nil.
func (r *reader) bytes() []byte {
	if r.peek() == '"' {
		return append([]byte{}, r.text()...)
	}
	b := []byte{}
	for key := range r.object {
		if key != "b64" {
			r.skip()
			continue
		}
		var err error
		if b, err = base64.StdEncoding.DecodeString(r.text()); err != nil {
			r.fail("bad base64")
		}
	}
	return b
}

// named reads what writer.name wrote: number gives the number of a name.
func (r *reader) named(number func(string) (int64, bool)) int64 {
	if r.peek() != '"' {
		return r.number()
	}
	name := r.text()
	n, ok := number(name)
	if !ok {
		r.fail("the unknown name " + name)
	}
	return n
}

// skip passes one value of any kind.
func (r *reader) skip() {
	depth := 0
	for {
		switch c := r.peek(); c {
		case 0:
			r.fail("no value")
			return
		case '"':
			r.text()
		case '{', '[':
			depth++
			r.i++
		case '}', ']':
			depth--
			r.i++
		case ',', ':':
			if depth == 0 {
				r.fail("no value")
				return
			}
			r.i++
			continue
		default:
			r.word()
		}
		if r.err != nil || depth <= 0 {
			return
		}
	}
}

// word passes a number, true, false or null.
func (r *reader) word() {
	from := r.i
	for ; r.i < len(r.s); r.i++ {
		c := r.s[r.i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'E'
		if !letter {
			break
		}
	}
	if r.i == from {
		r.fail("no value")
	}
}

// end checks that nothing follows.
func (r *reader) end() {
	if r.err == nil && r.peek() != 0 || r.err == nil && r.i < len(r.s) {
		r.fail("something behind the payload")
	}
}

// listOf reads a list, never nil, with one reading each place.
func listOf[T any](r *reader, one func(*reader) T) []T {
	vs := []T{}
	for range r.array {
		vs = append(vs, one(r))
	}
	return vs
}

// ref reads an object into a new value.
func ref[T any](r *reader, one func(*reader) T) *T {
	v := one(r)
	return &v
}
