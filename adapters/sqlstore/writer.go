package sqlstore

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// writer builds the JSON of one payload. Members whose value is zero are left
// out; a list that is empty but not nil is written, because the two differ.
// It exists beside encoding/json for three reasons: payloads are read back
// four times as fast by its counterpart (reader), bytes are kept as readable
// text where they are text, and text that is not UTF-8 is noticed instead of
// mended.
type writer struct {
	buf []byte
	bad bool // some text was not UTF-8
}

// sep puts a comma where one belongs.
func (w *writer) sep() {
	switch w.buf[len(w.buf)-1] {
	case '{', '[', ':':
	default:
		w.buf = append(w.buf, ',')
	}
}

func (w *writer) open()  { w.buf = append(w.buf, '{') }
func (w *writer) close() { w.buf = append(w.buf, '}') }

func (w *writer) key(k string) {
	w.sep()
	w.buf = append(w.buf, '"')
	w.buf = append(w.buf, k...)
	w.buf = append(w.buf, '"', ':')
}

func (w *writer) number(k string, n int64) {
	if n != 0 {
		w.key(k)
		w.buf = strconv.AppendInt(w.buf, n, 10)
	}
}

func (w *writer) flag(k string, on bool) {
	if on {
		w.key(k)
		w.buf = append(w.buf, "true"...)
	}
}

// text writes a member that is text.
func text[S ~string](w *writer, k string, s S) {
	if s != "" {
		w.key(k)
		w.quote(string(s))
	}
}

// name writes an enumeration by its name, and a value without a name by its
// number, so that the names can stay while the numbers move.
func (w *writer) name(k, name string, n int64) {
	if name != "" && n != 0 {
		text(w, k, name)
		return
	}
	w.number(k, n)
}

// bytes writes a member that is bytes: as text when it is text, else as
// {"b64": …}.
func (w *writer) bytes(k string, b []byte) {
	switch {
	case b == nil:
	case utf8.Valid(b):
		w.key(k)
		w.quote(string(b))
	default:
		w.key(k)
		w.buf = append(w.buf, `{"b64":"`...)
		w.buf = base64.StdEncoding.AppendEncode(w.buf, b)
		w.buf = append(w.buf, '"', '}')
	}
}

// list writes a member that is a list of objects.
func list[T any](w *writer, k string, vs []T, one func(*writer, T)) {
	if vs == nil {
		return
	}
	w.key(k)
	w.buf = append(w.buf, '[')
	for _, v := range vs {
		w.sep()
		w.open()
		one(w, v)
		w.close()
	}
	w.buf = append(w.buf, ']')
}

// words writes a member that is a list of strings.
func words(w *writer, k string, vs []string) {
	if vs == nil {
		return
	}
	w.key(k)
	w.buf = append(w.buf, '[')
	for _, v := range vs {
		w.sep()
		w.quote(v)
	}
	w.buf = append(w.buf, ']')
}

// object writes a member that is an object.
func object[T any](w *writer, k string, v T, one func(*writer, T)) {
	w.key(k)
	w.open()
	one(w, v)
	w.close()
}

// optional writes a member that is an object or missing.
func optional[T any](w *writer, k string, v *T, one func(*writer, T)) {
	if v != nil {
		object(w, k, *v, one)
	}
}

// quote writes a JSON string. Only what must be escaped is.
func (w *writer) quote(s string) {
	if !w.bad && !utf8.ValidString(s) {
		w.bad = true
	}
	w.buf = append(w.buf, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.buf = append(w.buf, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			w.buf = append(w.buf, '\\', c)
		case '\n':
			w.buf = append(w.buf, '\\', 'n')
		case '\r':
			w.buf = append(w.buf, '\\', 'r')
		case '\t':
			w.buf = append(w.buf, '\\', 't')
		default:
			const hex = "0123456789abcdef"
			w.buf = append(w.buf, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	w.buf = append(w.buf, s[from:]...)
	w.buf = append(w.buf, '"')
}
