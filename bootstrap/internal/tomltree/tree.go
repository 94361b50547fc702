// Package tomltree reads a TOML document into a small tree that knows where
// every key and value stands, and changes one value of a document without
// touching anything around it. go-toml does the parsing; this package keeps
// what a decoder throws away: positions, the case of keys, the order.
//
// Read next: splice.go, the editing half.
package tomltree

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// Kind is what a value is.
type Kind uint8

// The kinds. Table covers [tables], inline tables and the document itself.
const (
	Table Kind = iota
	Array
	String
	Integer
	Float
	Bool
	Date // any of TOML's date and time values
)

// String names the kind with its article, for messages.
func (k Kind) String() string {
	return [...]string{"a table", "an array", "a string", "an integer", "a float", "a boolean", "a date"}[k]
}

// Pos is a place in a document: line and column counted from 1, columns in
// characters. The zero Pos means "nowhere".
type Pos struct{ Line, Col int }

// Node is one value of a document.
type Node struct {
	Kind  Kind
	Key   string // its own key, verbatim; "" in arrays and at the root
	KeyAt Pos    // where the key that first names it stands
	At    Pos    // where the value starts; for a [table] where its name stands
	// Text is the decoded text of a String and the source text of an Integer,
	// Float, Bool or Date.
	Text string
	// Items are the members of a Table or the elements of an Array, in the
	// order of the document.
	Items []*Node

	members map[string]*Node
}

// Member returns the member of a Table by its exact key, or nil.
func (n *Node) Member(key string) *Node { return n.members[key] }

// Int returns the value of an Integer. TOML has guaranteed its form; the
// error is about 64 bits.
func (n *Node) Int() (int64, error) { return strconv.ParseInt(n.Text, 0, 64) }

// Float returns the value of a Float or an Integer.
func (n *Node) Float() (float64, error) {
	if n.Kind == Integer {
		i, err := n.Int()
		return float64(i), err
	}
	return strconv.ParseFloat(strings.ReplaceAll(n.Text, "_", ""), 64)
}

// SyntaxError says where a document stops being TOML, and why. It never
// quotes more than one character of the document, which may hold secrets.
type SyntaxError struct {
	Pos Pos
	Msg string
}

// Error returns "line:column: message".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Pos.Line, e.Pos.Col, e.Msg)
}

// Parse reads a whole document. The only error is a *SyntaxError; repeated
// keys and tables count as one. data must not start with a byte order mark
// (see TrimBOM).
func Parse(data []byte) (*Node, error) {
	// The decoder finds what the bare parser does not: repeated keys, tables
	// defined twice, impossible dates, numbers over 64 bits.
	var discard map[string]any
	if err := toml.Unmarshal(data, &discard); err != nil {
		return nil, syntaxError(data, err)
	}
	b := builder{lines: newLines(data), root: newTable("", Pos{}, Pos{1, 1})}
	b.parser.Reset(data)
	b.table = b.root
	for b.parser.NextExpression() {
		b.expression(b.parser.Expression())
	}
	if err := b.parser.Error(); err != nil {
		return nil, syntaxError(data, err)
	}
	return b.root, nil
}

// syntaxError turns an error of go-toml into ours.
func syntaxError(data []byte, err error) error {
	var de *toml.DecodeError
	if !errors.As(err, &de) {
		return &SyntaxError{Pos: Pos{1, 1}, Msg: err.Error()}
	}
	msg := strings.TrimPrefix(de.Error(), "toml: ")
	line, col := de.Position()
	l := newLines(data)
	off := min(l.start(line)+col-1, len(data))
	if unquoted(data, off) {
		msg += "; text needs quotes, as in key = \"value\""
	}
	return &SyntaxError{Pos: l.pos(off), Msg: msg}
}

// unquoted reports whether a letter stands at off where a value must start,
// the commonest mistake of all.
func unquoted(data []byte, off int) bool {
	if off >= len(data) || !isLetter(data[off]) {
		return false
	}
	for i := off - 1; i >= 0; i-- {
		switch data[i] {
		case ' ', '\t':
			continue
		case '=':
			return true
		}
		return false
	}
	return false
}

func isLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf || c == '_' || c == '/' || c == '~' || c == '$'
}

func newTable(key string, keyAt, at Pos) *Node {
	return &Node{Kind: Table, Key: key, KeyAt: keyAt, At: at, members: map[string]*Node{}}
}

// builder turns parser expressions into a tree. The document is known to be
// sound, so it only has to follow it.
type builder struct {
	parser unstable.Parser
	lines  lines
	root   *Node
	table  *Node // the table the next key = value lines belong to
}

func (b *builder) expression(e *unstable.Node) {
	switch e.Kind {
	case unstable.Table:
		b.table = b.descend(b.root, e.Key())
	case unstable.ArrayTable:
		b.table = b.appendTable(e.Key())
	case unstable.KeyValue:
		b.keyValue(b.table, e)
	}
}

// descend walks a dotted key from t, making the tables that are missing.
func (b *builder) descend(t *Node, keys unstable.Iterator) *Node {
	for keys.Next() {
		t = b.child(t, keys.Node())
	}
	return t
}

// child returns the table named by key in t. Of an array of tables it is the
// last one.
func (b *builder) child(t *Node, key *unstable.Node) *Node {
	name := string(key.Data)
	if n := t.members[name]; n != nil {
		if n.Kind == Array {
			return n.Items[len(n.Items)-1]
		}
		return n
	}
	at := b.lines.pos(int(key.Raw.Offset))
	n := newTable(name, at, at)
	t.add(n)
	return n
}

func (b *builder) appendTable(keys unstable.Iterator) *Node {
	t := b.root
	for keys.Next() {
		if !keys.IsLast() {
			t = b.child(t, keys.Node())
			continue
		}
		key := keys.Node()
		name, at := string(key.Data), b.lines.pos(int(key.Raw.Offset))
		list := t.members[name]
		if list == nil {
			list = &Node{Kind: Array, Key: name, KeyAt: at, At: at}
			t.add(list)
		}
		item := newTable("", at, at)
		list.Items = append(list.Items, item)
		t = item
	}
	return t
}

func (b *builder) keyValue(t *Node, kv *unstable.Node) {
	keys := kv.Key()
	for keys.Next() {
		key := keys.Node()
		if !keys.IsLast() {
			t = b.child(t, key)
			continue
		}
		n := b.value(kv.Value(), valueStart(b.parser.Data(), kv))
		n.Key, n.KeyAt = string(key.Data), b.lines.pos(int(key.Raw.Offset))
		t.add(n)
	}
}

// value converts one value. off is where it starts.
func (b *builder) value(v *unstable.Node, off int) *Node {
	n := &Node{At: b.lines.pos(off)}
	switch v.Kind {
	case unstable.InlineTable:
		n.Kind, n.members = Table, map[string]*Node{}
		for it := v.Children(); it.Next(); {
			if c := it.Node(); c.Kind == unstable.KeyValue {
				b.keyValue(n, c)
			}
		}
	case unstable.Array:
		n.Kind = Array
		for it := v.Children(); it.Next(); {
			// An element that is itself a collection has no offset of its own
			// in the parser's tree; it is reported at its array's start.
			at := off
			if c := it.Node(); c.Raw.Length > 0 {
				at = int(c.Raw.Offset)
			}
			n.Items = append(n.Items, b.value(it.Node(), at))
		}
	default:
		n.Kind, n.Text = scalarKind(v.Kind), string(v.Data)
	}
	return n
}

func scalarKind(k unstable.Kind) Kind {
	switch k {
	case unstable.String:
		return String
	case unstable.Integer:
		return Integer
	case unstable.Float:
		return Float
	case unstable.Bool:
		return Bool
	default:
		return Date
	}
}

func (n *Node) add(c *Node) {
	n.Items = append(n.Items, c)
	n.members[c.Key] = c
}

// valueStart returns where the value of a key = value expression starts. The
// parser gives no range for collections, so it is found from the last key: a
// key is followed by blanks, one '=' and blanks.
func valueStart(data []byte, kv *unstable.Node) int {
	end := 0
	for it := kv.Key(); it.Next(); {
		end = int(it.Node().Raw.Offset + it.Node().Raw.Length)
	}
	for end < len(data) && (data[end] == ' ' || data[end] == '\t' || data[end] == '=') {
		end++
	}
	return end
}
