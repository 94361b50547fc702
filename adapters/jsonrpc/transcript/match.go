package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decode reads JSON with its numbers as they are written.
func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// encode is the inverse of decode.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage(strconv.Quote(err.Error())) // not reached: v is decoded JSON
	}
	return bytes.TrimSpace(b.Bytes())
}

// vars are the variables of a run; ids are found by "@label".
type vars map[string]any

// matcher compares one frame with one pattern. What it captures counts only
// if the whole matches.
type matcher struct {
	vars     vars
	captured vars
}

// match reports why got does not match the pattern; "" if it does. A nil
// pattern matches everything. On success the captures are kept.
func (v vars) match(pattern, got json.RawMessage) string {
	if pattern == nil {
		return ""
	}
	p, err := decode(pattern)
	if err != nil {
		return err.Error()
	}
	var g any
	if got != nil {
		if g, err = decode(got); err != nil {
			return err.Error()
		}
	}
	m := matcher{vars: v, captured: vars{}}
	if why := m.value("", p, g, got != nil); why != "" {
		return why
	}
	maps.Copy(v, m.captured)
	return ""
}

func (m *matcher) value(at string, pattern, got any, present bool) string {
	if s, ok := pattern.(string); ok {
		return m.text(at, s, got, present)
	}
	if !present {
		return differs(at, pattern, "nothing")
	}
	switch p := pattern.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return differs(at, "an object", show(got))
		}
		for _, name := range slices.Sorted(maps.Keys(p)) {
			item, present := g[name]
			if why := m.value(at+"."+name, p[name], item, present); why != "" {
				return why
			}
		}
		return ""
	case []any:
		return m.list(at, p, got)
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(p, g) {
			return ""
		}
	default:
		if reflect.DeepEqual(pattern, got) {
			return ""
		}
	}
	return differs(at, pattern, show(got))
}

func (m *matcher) list(at string, pattern []any, got any) string {
	g, ok := got.([]any)
	if !ok {
		return differs(at, "a list", show(got))
	}
	open := len(pattern) > 0 && pattern[len(pattern)-1] == "..."
	if open {
		pattern = pattern[:len(pattern)-1]
	}
	if len(g) < len(pattern) || len(g) > len(pattern) && !open {
		return fmt.Sprintf("%s: want %d items, got %d", path(at), len(pattern), len(g))
	}
	for i, p := range pattern {
		if why := m.value(fmt.Sprintf("%s[%d]", at, i), p, g[i], true); why != "" {
			return why
		}
	}
	return ""
}

var variable = regexp.MustCompile(`\$(\$|@[A-Za-z0-9_.-]+|[A-Za-z_][A-Za-z0-9_]*)`)

// text matches a pattern that is a string.
func (m *matcher) text(at, pattern string, got any, present bool) string {
	switch {
	case pattern == "!":
		if present {
			return differs(at, "nothing", show(got))
		}
		return ""
	case !present:
		return differs(at, pattern, "nothing")
	case pattern == "*":
		return ""
	case strings.HasPrefix(pattern, "="):
		pattern = pattern[1:]
	case strings.HasPrefix(pattern, "~"):
		re, err := regexp.Compile(pattern[1:])
		if err != nil {
			return fmt.Sprintf("%s: %v", path(at), err)
		}
		if s, ok := got.(string); ok && re.MatchString(s) {
			return ""
		}
		return differs(at, pattern, show(got))
	case pattern != "$$" && variable.FindString(pattern) == pattern && pattern != "":
		return m.capture(at, pattern[1:], got)
	default:
		v, err := m.vars.with(m.captured).substitute(pattern)
		if err != nil {
			return fmt.Sprintf("%s: %v", path(at), err)
		}
		if got != v {
			return differs(at, v, show(got))
		}
		return ""
	}
	if got != pattern {
		return differs(at, pattern, show(got))
	}
	return ""
}

// capture binds a variable, or compares with what it holds.
func (m *matcher) capture(at, name string, got any) string {
	known, ok := m.captured[name]
	if !ok {
		known, ok = m.vars[name]
	}
	switch {
	case !ok && name[0] == '@':
		return fmt.Sprintf("%s: no request has the label %s", path(at), name)
	case !ok:
		m.captured[name] = got
	case !reflect.DeepEqual(known, got):
		return fmt.Sprintf("%s: $%s is %s, got %s", path(at), name, show(known), show(got))
	}
	return ""
}

func (v vars) with(more vars) vars {
	if len(more) == 0 {
		return v
	}
	all := maps.Clone(v)
	maps.Copy(all, more)
	return all
}

// substitute replaces the variables in a text. A text that is nothing but a
// variable becomes its value, of whatever type.
func (v vars) substitute(text string) (any, error) {
	if name := variable.FindString(text); name == text && name != "" && name != "$$" {
		if value, ok := v[name[1:]]; ok {
			return value, nil
		}
	}
	var missing error
	out := variable.ReplaceAllStringFunc(text, func(name string) string {
		if name == "$$" {
			return "$"
		}
		value, ok := v[name[1:]]
		if !ok {
			missing = fmt.Errorf("%s has no value yet; write $$ for a dollar sign", name)
			return ""
		}
		if s, ok := value.(string); ok {
			return s
		}
		return string(encode(value))
	})
	return out, missing
}

// fill replaces the variables in a value that is sent.
func (v vars) fill(raw json.RawMessage) (json.RawMessage, error) {
	if bytes.IndexByte(raw, '$') < 0 {
		return raw, nil
	}
	value, err := decode(raw)
	if err != nil {
		return nil, err
	}
	value, err = v.fillValue(value)
	return encode(value), err
}

func (v vars) fillValue(value any) (any, error) {
	var err error
	set := func(item any) any {
		if err != nil {
			return nil
		}
		item, err = v.fillValue(item)
		return item
	}
	switch x := value.(type) {
	case string:
		return v.substitute(x)
	case []any:
		for i := range x {
			x[i] = set(x[i])
		}
	case map[string]any:
		for name := range x {
			x[name] = set(x[name])
		}
	}
	return value, err
}

func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	if _, err := strconv.ParseInt(string(a), 10, 64); err == nil {
		if _, err := strconv.ParseInt(string(b), 10, 64); err == nil {
			return false // a float would not tell large ones apart
		}
	}
	x, errA := a.Float64()
	y, errB := b.Float64()
	return errA == nil && errB == nil && x == y
}

func path(at string) string {
	if at == "" {
		return "value"
	}
	return strings.TrimPrefix(at, ".")
}

func differs(at string, want any, got string) string {
	text, special := want.(string)
	if !special || text != "nothing" && text != "an object" && text != "a list" {
		text = show(want)
	}
	return fmt.Sprintf("%s: want %s, got %s", path(at), text, got)
}

// maxShown is how much of a value a message shows, in bytes.
const maxShown = 300

func show(v any) string {
	s := string(encode(v))
	if len(s) > maxShown {
		s = s[:shownOf(s)] + "…"
	}
	return s
}

// shownOf is how much is shown of what is longer than maxShown: it ends with a
// character.
func shownOf[T string | []byte](s T) int {
	n := maxShown
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
