package tomltree

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// Set returns a copy of a document in which the key at path has the value
// literal, a piece of TOML. An existing value is replaced byte for byte, so
// comments, order and spacing stay. A new key joins the table it belongs to
// in the manner that table is written: under its header, as another dotted
// key, or inside its inline table; a table that does not exist is added at
// the end. New lines end as the document's do. The result is not checked;
// parse it.
func Set(data []byte, path []string, literal string) ([]byte, error) {
	d := survey(data)
	if d.err != nil {
		return nil, syntaxError(data, d.err)
	}
	if kv, ok := d.find(path); ok {
		return splice(data, kv.start, kv.end, literal), nil
	}
	parent, key := path[:len(path)-1], path[len(path)-1]
	if in, ok := d.inlineFor(parent); ok {
		return in.insert(data, quoteKeys(path[len(in.path):])+" = "+literal)
	}
	if last, ok := d.dottedFor(parent); ok {
		line := quoteKeys(path[last.table:]) + " = " + literal
		return insertLine(data, last.lineEnd, line), nil
	}
	if h, ok := d.headerFor(parent); ok {
		return insertLine(data, h.bodyEnd, quoteKey(key)+" = "+literal), nil
	}
	if len(parent) == 0 { // before the first header, or an empty document
		return splice(data, 0, 0, quoteKey(key)+" = "+literal+strings.Repeat(newline(data), 1+min(len(data), 1))), nil
	}
	block := "[" + quoteKeys(parent) + "]" + newline(data) + quoteKey(key) + " = " + literal
	if len(bytes.TrimSpace(data)) > 0 {
		block = newline(data) + block
	}
	return insertLine(data, len(data), block), nil
}

// entry is a key = value of the document, inline ones included.
type entry struct {
	path       []string
	table      int // how many leading segments of path come from the header
	start, end int // the value's bytes
	lineEnd    int // offset just after its line; 0 inside an inline table
	inline     bool
	empty      bool // inline table without members
	lastEnd    int  // end of the last member of an inline table
}

// header is a [table] of the document. The root is one with an empty path.
type header struct {
	path    []string
	array   bool
	bodyEnd int // just after the last line of its own keys, or of the header
}

type document struct {
	entries []entry
	headers []header
	err     error
}

// survey lists every key and header with the offsets an edit needs.
func survey(data []byte) document {
	var d document
	d.headers = append(d.headers, header{bodyEnd: -1}) // -1: no keys yet
	var p unstable.Parser
	p.Reset(data)
	inArray := false
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.KeyValue {
			if !inArray {
				h := &d.headers[len(d.headers)-1]
				kv := d.collect(data, e, h.path, len(h.path))
				h.bodyEnd = lineEnd(data, kv.end)
				d.entries[kv.index].lineEnd = h.bodyEnd
			}
			continue
		}
		path, end := keyPath(e)
		inArray = e.Kind == unstable.ArrayTable || d.underArray(path)
		d.headers = append(d.headers, header{path: path, array: inArray, bodyEnd: lineEnd(data, end)})
	}
	d.err = p.Error()
	return d
}

// underArray reports whether path lies inside an array of tables, where a
// dotted path of ours cannot point.
func (d *document) underArray(path []string) bool {
	for _, h := range d.headers {
		if h.array && len(h.path) < len(path) && slices.Equal(h.path, path[:len(h.path)]) {
			return true
		}
	}
	return false
}

type collected struct{ index, end int }

// collect records one key = value and, for an inline table, its members.
func (d *document) collect(data []byte, kv *unstable.Node, under []string, table int) collected {
	keys, _ := keyPath(kv)
	i := len(d.entries)
	end := int(kv.Raw.Offset + kv.Raw.Length)
	e := entry{path: append(slices.Clone(under), keys...), table: table, start: valueStart(data, kv), end: end}
	d.entries = append(d.entries, e)
	if v := kv.Value(); v.Kind == unstable.InlineTable {
		d.entries[i].inline, d.entries[i].empty = true, true
		for it := v.Children(); it.Next(); {
			if c := it.Node(); c.Kind == unstable.KeyValue {
				m := d.collect(data, c, e.path, table)
				d.entries[i].empty, d.entries[i].lastEnd = false, m.end
			}
		}
	}
	return collected{i, end}
}

func keyPath(e *unstable.Node) (path []string, end int) {
	for it := e.Key(); it.Next(); {
		k := it.Node()
		path = append(path, string(k.Data))
		end = int(k.Raw.Offset + k.Raw.Length)
	}
	return path, end
}

func (d *document) find(path []string) (entry, bool) {
	for _, e := range d.entries {
		if slices.Equal(e.path, path) {
			return e, true
		}
	}
	return entry{}, false
}

// inlineFor returns the innermost inline table that parent lies in.
func (d *document) inlineFor(parent []string) (entry, bool) {
	var best entry
	found := false
	for _, e := range d.entries {
		if e.inline && len(e.path) <= len(parent) && slices.Equal(e.path, parent[:len(e.path)]) && len(e.path) > len(best.path) {
			best, found = e, true
		}
	}
	return best, found
}

// dottedFor returns the last line that defines parent, or a table above it,
// by a dotted key. TOML allows no header for such a table.
func (d *document) dottedFor(parent []string) (entry, bool) {
	var best entry
	found := false
	for _, e := range d.entries {
		if e.lineEnd == 0 || len(e.path)-e.table < 2 {
			continue
		}
		owner := e.path[:len(e.path)-1]
		for n := len(owner); n > e.table; n-- {
			if n <= len(parent) && slices.Equal(owner[:n], parent[:n]) {
				best, found = e, true
				break
			}
		}
	}
	return best, found
}

func (d *document) headerFor(parent []string) (header, bool) {
	for _, h := range d.headers {
		if !h.array && h.bodyEnd >= 0 && slices.Equal(h.path, parent) {
			return h, true
		}
	}
	return header{}, false
}

// insert adds a member to an inline table.
func (e entry) insert(data []byte, member string) ([]byte, error) {
	if e.empty {
		return splice(data, e.start, e.end, "{ "+member+" }"), nil
	}
	return splice(data, e.lastEnd, e.lastEnd, ", "+member), nil
}

func splice(data []byte, start, end int, text string) []byte {
	out := make([]byte, 0, len(data)+len(text))
	out = append(out, data[:start]...)
	out = append(out, text...)
	return append(out, data[end:]...)
}

// insertLine puts text on a line of its own at off, which is the start of a
// line or the end of the document.
func insertLine(data []byte, off int, text string) []byte {
	nl := newline(data)
	if off > 0 && data[off-1] != '\n' {
		text = nl + text
	}
	return splice(data, off, off, text+nl)
}

// lineEnd returns the offset after the line that off lies in.
func lineEnd(data []byte, off int) int {
	if i := bytes.IndexByte(data[off:], '\n'); i >= 0 {
		return off + i + 1
	}
	return len(data)
}

func newline(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// TrimBOM returns data without a leading UTF-8 byte order mark.
func TrimBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

// Quote returns s as a TOML basic string on one line.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r) // invalid UTF-8 becomes U+FFFD
		}
	}
	b.WriteByte('"')
	return b.String()
}

// quoteKey returns a key as TOML writes it: bare where that is possible.
func quoteKey(k string) string {
	if k == "" || strings.IndexFunc(k, func(r rune) bool {
		return r >= utf8.RuneSelf || !isBare(byte(r))
	}) >= 0 {
		return Quote(k)
	}
	return k
}

func isBare(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func quoteKeys(path []string) string {
	out := make([]string, len(path))
	for i, k := range path {
		out[i] = quoteKey(k)
	}
	return strings.Join(out, ".")
}

// JoinKeys returns a path in TOML's dotted notation.
func JoinKeys(path []string) string { return quoteKeys(path) }
