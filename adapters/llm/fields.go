package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// What the readers and writers of JSON wires have in common: fields as they
// stand in events, and requests.

// Present reports whether a field is there and is not null.
func Present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// ErrNotText is a text field that holds something else.
var ErrNotText = errors.New("a text field holds no text")

// AppendText unescapes a text field, as a decoder left it, behind dst. An
// absent one and null are empty. The result may end in the middle of a
// character, see Unescape.
func AppendText(dst []byte, raw json.RawMessage) ([]byte, error) {
	switch {
	case !Present(raw):
		return dst, nil
	case raw[0] == '"':
		return Unescape(dst, raw[1:len(raw)-1]), nil
	}
	return dst, ErrNotText
}

// AppendArguments unescapes the arguments of a call, or a piece of them, behind
// dst: a text, or, from servers that do not quote them, the object itself.
func AppendArguments(dst []byte, raw json.RawMessage) []byte {
	out, err := AppendText(dst, raw)
	if err != nil {
		return append(dst, raw...)
	}
	return out
}

// Whole makes whole characters of a text that came in pieces.
func Whole(text []byte) string {
	var j Joiner
	return j.Add(text) + j.End()
}

// Arguments returns what a call was called with, once all of it has come.
// Nothing at all means an object without members. It reports false for what is
// no JSON object; nothing is mended.
func Arguments(came []byte) (args []byte, ok bool) {
	if len(bytes.TrimSpace(came)) == 0 {
		return []byte("{}"), true
	}
	args = []byte(Whole(came))
	return args, IsObject(args)
}

// IsObject reports whether args are a JSON object as they stand.
func IsObject(args []byte) bool {
	args = bytes.TrimSpace(args)
	// The look at the end keeps it cheap to ask this after every piece.
	return len(args) > 0 && args[0] == '{' && args[len(args)-1] == '}' && json.Valid(args)
}

// AnyObject is the schema of a tool that says nothing of its arguments.
func AnyObject() json.RawMessage { return json.RawMessage(`{"type":"object","properties":{}}`) }

// Schema is that of a tool's arguments; AnyObject when it has none.
func Schema(t domain.ToolSpec) json.RawMessage {
	if len(t.Schema) == 0 {
		return AnyObject()
	}
	return t.Schema
}

// Sent are the arguments of a call of before as they are sent.
func Sent(c domain.ModelCall) json.RawMessage {
	if len(c.Args) == 0 {
		return json.RawMessage("{}")
	}
	return c.Args
}

// Encode writes a request down, without the escapes that are for web pages.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, domain.WrapError(domain.Internal, err, "the request to the model could not be written")
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// PlainWord is a word of a provider's, such as an unknown finish reason, fit to
// show.
func PlainWord(s string) string {
	const most = 40 // bytes
	clean := strings.Map(func(c rune) rune {
		if !nameRune(c) {
			return -1
		}
		return c
	}, s)
	return clean[:min(len(clean), most)]
}

// nameRune reports whether c is one of the characters that all wires allow in
// names and ids.
func nameRune(c rune) bool {
	return c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
}

// Says reports whether a text holds one of others.
func Says(s string, others ...string) bool { return has(s, others...) }
