package fs

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

var bom = []byte("\xEF\xBB\xBF")

// notText says why bytes are no text a model could work on; "" when they are
// UTF-8 text. With more set the bytes are the beginning of something longer,
// and a character cut off at their end counts as whole.
func notText(b []byte, more bool) string {
	if bytes.HasPrefix(b, []byte{0xFF, 0xFE}) || bytes.HasPrefix(b, []byte{0xFE, 0xFF}) {
		return "it is UTF-16 text, not UTF-8"
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		return fmt.Sprintf("it is binary (a NUL byte at offset %d)", i)
	}
	at := invalidAt(b)
	if at < 0 || (more && !utf8.FullRune(b[at:])) {
		return ""
	}
	return fmt.Sprintf("it is not UTF-8 text (byte 0x%02X at offset %d, line %d)", b[at], at, bytes.Count(b[:at], []byte{'\n'})+1)
}

// invalidAt returns the offset of the first byte that is not part of a UTF-8
// character; -1 when there is none.
func invalidAt(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// doc is the content of a file as a model sees it, with the way back to the
// bytes: text is the content without byte-order mark and with LF line ends.
type doc struct {
	raw  []byte
	text []byte
	skip int   // bytes of the byte-order mark
	crs  []int // offsets in text of the line ends that are CRLF in raw
}

func newDoc(raw []byte) *doc {
	d := &doc{raw: raw}
	if bytes.HasPrefix(raw, bom) {
		d.skip = len(bom)
	}
	body := raw[d.skip:]
	if !bytes.Contains(body, []byte("\r\n")) {
		d.text = body
		return d
	}
	d.text = make([]byte, 0, len(body))
	for len(body) > 0 {
		i := bytes.Index(body, []byte("\r\n"))
		if i < 0 {
			break
		}
		d.text = append(d.text, body[:i]...)
		d.crs = append(d.crs, len(d.text))
		d.text = append(d.text, '\n')
		body = body[i+2:]
	}
	d.text = append(d.text, body...)
	return d
}

// at maps an offset in text to one in raw.
func (d *doc) at(text int) int {
	return d.skip + text + sort.SearchInts(d.crs, text)
}

// crlf reports whether the line end at an offset of text is CRLF.
func (d *doc) crlf(lineEnd int) bool {
	i := sort.SearchInts(d.crs, lineEnd)
	return i < len(d.crs) && d.crs[i] == lineEnd
}

// replace appends to dst what lies in raw between the offset from and a piece
// of text, and then put, which has LF line ends, in the place of that piece. It
// returns the offset in raw to go on from. Bytes that do not really differ stay
// as they are; a new line gets the line end of the one it replaces, or else of
// its neighbour.
func (d *doc) replace(dst []byte, from, start, end int, put string) (out []byte, next int) {
	old := d.text[start:end]
	n := commonPrefix(old, put)
	start, old, put = start+n, old[n:], put[n:]
	n = commonSuffix(old, put)
	end, old, put = end-n, old[:len(old)-n], put[:len(put)-n]
	dst = append(dst, d.raw[from:d.at(start)]...)
	next = d.at(end)
	if len(d.crs) == 0 {
		return append(dst, put...), next
	}
	ends := d.lineEnds(start, old)
	for {
		i := strings.IndexByte(put, '\n')
		if i < 0 {
			return append(dst, put...), next
		}
		dst = append(dst, put[:i]...)
		if ends[0] {
			dst = append(dst, '\r')
		}
		dst = append(dst, '\n')
		put = put[i+1:]
		if len(ends) > 1 {
			ends = ends[1:]
		}
	}
}

// lineEnds tells for each line end of a piece of text at start whether it is
// CRLF. Without one, the line before decides, or else the line it is in.
func (d *doc) lineEnds(start int, piece []byte) []bool {
	var ends []bool
	for i, c := range piece {
		if c == '\n' {
			ends = append(ends, d.crlf(start+i))
		}
	}
	if len(ends) > 0 {
		return ends
	}
	if i := bytes.LastIndexByte(d.text[:start], '\n'); i >= 0 {
		return []bool{d.crlf(i)}
	}
	if i := bytes.IndexByte(d.text[start:], '\n'); i >= 0 {
		return []bool{d.crlf(start + i)}
	}
	return []bool{false}
}

// rewritten returns the bytes of a file whose whole text is put in place of
// the old one. Line ends and byte-order mark stay what they were; in a file
// with mixed line ends each line that stays keeps its own.
func (d *doc) rewritten(put string) []byte {
	put = strings.ReplaceAll(strings.TrimPrefix(put, string(bom)), "\r\n", "\n")
	if lines := bytes.Count(d.text, []byte{'\n'}); len(d.crs) > 0 && len(d.crs) == lines {
		put = strings.ReplaceAll(put, "\n", "\r\n")
	} else if len(d.crs) > 0 {
		return d.merged(put)
	}
	return append(append([]byte(nil), d.raw[:d.skip]...), put...)
}

// merged applies the difference between the old text and the new, line by
// line.
func (d *doc) merged(put string) []byte {
	out := make([]byte, 0, len(d.raw)+len(put)/16)
	from := 0
	for _, e := range udiff.Lines(string(d.text), put) {
		out, from = d.replace(out, from, e.Start, e.End, e.New)
	}
	return append(out, d.raw[from:]...)
}

func commonPrefix(a []byte, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func commonSuffix(a []byte, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[len(a)-1-i] != b[len(b)-1-i] {
			return i
		}
	}
	return n
}

// lineOf is the number, from 1, of the line that an offset lies in.
func lineOf(text []byte, offset int) int { return bytes.Count(text[:offset], []byte{'\n'}) + 1 }

// lineCount is how many lines a text has; a last one without line end counts.
func lineCount(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// firstChange is the number of the first line that differs between two texts.
func firstChange(before, after []byte) int {
	n := min(len(before), len(after))
	i := 0
	for i < n && before[i] == after[i] {
		i++
	}
	return lineOf(after, i)
}

// shown is text fit for a client: valid UTF-8.
func shown(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }
