package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/bootstrap/internal/tomltree"
)

// kind is the type of a setting: it reads a value, checks it, and can say
// what it accepts.
type kind interface {
	// parse returns the value, or an error that says what is wrong with it
	// ("is a string", "\"x\" is not a level"). The caller adds allowed().
	parse(n *tomltree.Node, p place) (any, error)
	// allowed completes the sentence "allowed: ...".
	allowed() string
	// schema is the JSON schema of the value.
	schema() map[string]any
}

// place is what a value may depend on besides its text.
type place struct {
	home    string // "" when unknown
	dir     string // what relative paths are relative to; "" when unknown
	env     environment
	keyring Keyring
	note    func(value string) // is told secrets that are read later; may be nil
}

// wrongKind is the error of every kind that got another one.
func wrongKind(n *tomltree.Node) error { return errors.New("is " + n.Kind.String()) }

// quote shows a value in a message, shortened.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return strconv.Quote(s)
}

// nodeOf makes the text of a variable, a flag or "config set" what the file
// would hold for a setting of kind k: a number where one is wanted, else a
// string. Lists are TOML arrays, or items separated by commas.
func nodeOf(k kind, text string) (*tomltree.Node, error) {
	trimmed := strings.TrimSpace(text)
	switch k := k.(type) {
	case ints:
		return number(trimmed, tomltree.Integer), nil
	case sizes:
		if isDigits(trimmed) {
			return number(trimmed, tomltree.Integer), nil
		}
	case floats:
		return number(trimmed, tomltree.Float), nil
	case bools:
		switch strings.ToLower(trimmed) {
		case "1", "yes", "on", "true":
			return &tomltree.Node{Kind: tomltree.Bool, Text: "true"}, nil
		case "0", "no", "off", "false":
			return &tomltree.Node{Kind: tomltree.Bool, Text: "false"}, nil
		}
	case lists:
		return listNode(k, trimmed)
	}
	return &tomltree.Node{Kind: tomltree.String, Text: text}, nil
}

// number returns a number where text is one, else a string that the kind will
// refuse. Decimal only: 010 in a variable is ten.
func number(text string, want tomltree.Kind) *tomltree.Node {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return &tomltree.Node{Kind: tomltree.Integer, Text: strconv.FormatInt(i, 10)}
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && want == tomltree.Float {
		return &tomltree.Node{Kind: tomltree.Float, Text: text}
	}
	return &tomltree.Node{Kind: tomltree.String, Text: text}
}

func listNode(k lists, text string) (*tomltree.Node, error) {
	n := &tomltree.Node{Kind: tomltree.Array}
	if text == "[]" { // the commonest default; no parser is needed for it
		return n, nil
	}
	if strings.HasPrefix(text, "[") {
		root, err := tomltree.Parse([]byte("x = " + text))
		if err != nil {
			return nil, errors.New("is no TOML array")
		}
		return root.Member("x"), nil
	}
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			c, err := nodeOf(k.of, item)
			if err != nil {
				return nil, err
			}
			n.Items = append(n.Items, c)
		}
	}
	return n, nil
}

func isDigits(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// ints is an integer of a range.
type ints struct{ lo, hi int64 }

func (k ints) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind == tomltree.String && n.At == (tomltree.Pos{}) {
		return nil, fmt.Errorf("%s is not an integer", quote(n.Text)) // from a variable or flag
	}
	if n.Kind != tomltree.Integer {
		return nil, wrongKind(n)
	}
	i, err := n.Int()
	if err != nil || i < k.lo || i > k.hi {
		return nil, fmt.Errorf("%s is out of range", n.Text)
	}
	return i, nil
}

func (k ints) allowed() string {
	if k.lo == k.hi {
		return strconv.FormatInt(k.lo, 10)
	}
	return fmt.Sprintf("an integer from %d to %d", k.lo, k.hi)
}

func (k ints) schema() map[string]any {
	return map[string]any{"type": "integer", "minimum": k.lo, "maximum": k.hi}
}

// sizes is a number of bytes: an integer, or a string with a unit.
type sizes struct{ lo, hi int64 }

// units in the order they are tried; longer names first.
func units() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1}}
}

func (k sizes) parse(n *tomltree.Node, _ place) (any, error) {
	switch n.Kind {
	case tomltree.Integer:
		i, err := n.Int()
		if err != nil || i < k.lo || i > k.hi {
			return nil, fmt.Errorf("%s is out of range", n.Text)
		}
		return i, nil
	case tomltree.String:
		i, ok := parseSize(n.Text)
		if !ok {
			return nil, fmt.Errorf("%s is not a size", quote(n.Text))
		}
		if i < k.lo || i > k.hi {
			return nil, fmt.Errorf("%s is out of range", quote(n.Text))
		}
		return i, nil
	}
	return nil, wrongKind(n)
}

func parseSize(s string) (int64, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	for _, u := range units() {
		num, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		i, err := strconv.ParseInt(strings.TrimSpace(num), 10, 64)
		if err != nil || i < 0 || i > math.MaxInt64/u.bytes {
			return 0, false
		}
		return i * u.bytes, true
	}
	return 0, false
}

func (k sizes) allowed() string {
	return fmt.Sprintf("a number of bytes from %s to %s, such as 65536 or \"64 MiB\"", sizeText(k.lo), sizeText(k.hi))
}

func sizeText(i int64) string {
	for _, u := range []struct {
		name  string
		shift uint
	}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if i >= 1<<u.shift && i%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", i>>u.shift, u.name)
		}
	}
	return strconv.FormatInt(i, 10)
}

func (k sizes) schema() map[string]any {
	return map[string]any{"anyOf": []any{
		map[string]any{"type": "integer", "minimum": k.lo, "maximum": k.hi},
		map[string]any{"type": "string", "pattern": `^\s*[0-9]+\s*([KkMmGgTt][Ii]?)?[Bb]\s*$`},
	}}
}

// floats is a number of a range; integers are accepted.
type floats struct{ lo, hi float64 }

func (k floats) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind == tomltree.String && n.At == (tomltree.Pos{}) {
		return nil, fmt.Errorf("%s is not a number", quote(n.Text))
	}
	if n.Kind != tomltree.Integer && n.Kind != tomltree.Float {
		return nil, wrongKind(n)
	}
	f, err := n.Float()
	if err != nil || !(f >= k.lo && f <= k.hi) { // NaN is in no range
		return nil, fmt.Errorf("%s is out of range", n.Text)
	}
	return f, nil
}

func (k floats) allowed() string {
	return fmt.Sprintf("a number from %s to %s", floatText(k.lo), floatText(k.hi))
}

func floatText(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (k floats) schema() map[string]any {
	return map[string]any{"type": "number", "minimum": k.lo, "maximum": k.hi}
}

// bools is true or false.
type bools struct{}

func (bools) parse(n *tomltree.Node, _ place) (any, error) {
	switch {
	case n.Kind == tomltree.Bool:
		return n.Text == "true", nil
	case n.Kind == tomltree.String:
		return nil, fmt.Errorf("%s is not a boolean", quote(n.Text))
	}
	return nil, wrongKind(n)
}

func (bools) allowed() string        { return "true, false (without quotes)" }
func (bools) schema() map[string]any { return map[string]any{"type": "boolean"} }

// oneOf is one of some words.
type oneOf []string

func (k oneOf) parse(n *tomltree.Node, _ place) (any, error) {
	if n.Kind != tomltree.String {
		return nil, wrongKind(n)
	}
	if !slices.Contains(k, n.Text) {
		if s := nearest(n.Text, k); s != "" {
			return nil, fmt.Errorf("%s is not allowed; did you mean %q?", quote(n.Text), s)
		}
		return nil, fmt.Errorf("%s is not allowed", quote(n.Text))
	}
	return n.Text, nil
}

func (k oneOf) allowed() string        { return strings.Join(k, ", ") }
func (k oneOf) schema() map[string]any { return map[string]any{"enum": []string(k)} }

// lists is an array of one kind.
type lists struct{ of kind }

func (k lists) parse(n *tomltree.Node, p place) (any, error) {
	if n.Kind != tomltree.Array {
		return nil, wrongKind(n)
	}
	values := make([]any, 0, len(n.Items))
	for i, item := range n.Items {
		v, err := k.of.parse(item, p)
		if err != nil {
			return nil, fmt.Errorf("item %d %w", i+1, err)
		}
		values = append(values, v)
	}
	return values, nil
}

func (k lists) allowed() string { return "a list, each item " + k.of.allowed() }
func (k lists) schema() map[string]any {
	return map[string]any{"type": "array", "items": k.of.schema()}
}
