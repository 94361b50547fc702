package sqlstore

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"strings"
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
