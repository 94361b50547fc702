package bridge

import (
	"encoding/json"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// at follows names through nested objects; nil when one is missing.
func at(raw json.RawMessage, names ...string) json.RawMessage {
	for _, name := range names {
		var next json.RawMessage
		for n, v := range jsonrpc.Members(raw) {
			if n == name {
				next = v
				break
			}
		}
		if next == nil {
			return nil
		}
		raw = next
	}
	return raw
}

// text returns the string raw is, or "".
func text(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }

// given reports whether a capability is: an object, or true.
func given(raw json.RawMessage) bool { return len(raw) > 0 && (raw[0] == '{' || isTrue(raw)) }

// with returns the object raw with a member set to a value, in the place of
// the one it has or at the end. Everything else stays byte for byte.
func with(raw json.RawMessage, name string, value []byte) json.RawMessage {
	out := []byte{'{'}
	done := false
	for n, v := range jsonrpc.Members(raw) {
		if n == name {
			v, done = value, true
		}
		out = member(out, n, v)
	}
	if !done {
		out = member(out, name, value)
	}
	return append(out, '}')
}

func member(out []byte, name string, value []byte) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	out = append(jsonrpc.AppendString(out, name), ':')
	return append(out, value...)
}

// object builds an object of strings and raw values.
type object []byte

func (o *object) set(name string, value []byte) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	}
	*o = member(*o, name, value)
}

func (o *object) text(name, value string) { o.set(name, quote(value)) }

func (o *object) done() []byte {
	if len(*o) == 0 {
		return []byte(`{}`)
	}
	return append(*o, '}')
}

func quote(s string) []byte { return jsonrpc.AppendString(nil, s) }
