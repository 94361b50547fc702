package openclaw

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// The frames of a Gateway are objects with a type: "req" asks, "res" answers,
// "event" tells.

// appendRequest appends a request. params is marshalled by encoding/json.
func appendRequest(dst []byte, id, method string, params any) ([]byte, error) {
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `{"type":"req","id":`...)
	dst = jsonrpc.AppendString(dst, id)
	dst = append(dst, `,"method":`...)
	dst = jsonrpc.AppendString(dst, method)
	dst = append(dst, `,"params":`...)
	dst = append(dst, text...)
	return append(dst, '}'), nil
}

// incoming is a frame of the Gateway's. Its parts point into the frame.
type incoming struct {
	kind    string // res or event
	id      string
	ok      bool
	event   string
	payload json.RawMessage
	err     *RPCError
	seq     int64 // of the events of one connection; 0 when it has none
}

// parse reads a frame, which it may mend. What is no JSON object with a type
// is an error.
func parse(frame []byte) (incoming, error) {
	var in incoming
	if !jsonrpc.Valid(frame) {
		mendHalves(frame)
	}
	if !jsonrpc.Valid(frame) {
		return in, fmt.Errorf("the gateway sent a frame of %d bytes that is no JSON", len(frame))
	}
	for name, value := range jsonrpc.Members(frame) {
		switch name {
		case "type":
			in.kind = text(value)
		case "id":
			in.id = text(value)
		case "ok":
			in.ok = string(value) == "true"
		case "event":
			in.event = text(value)
		case "payload":
			in.payload = value
		case "seq":
			in.seq = number(value)
		case "error":
			in.err = errorOf(value)
		}
	}
	if in.kind == "" {
		return in, fmt.Errorf("the gateway sent a frame of %d bytes without a type", len(frame))
	}
	return in, nil
}

// RPCError is the Gateway's refusal of a request.
type RPCError struct {
	Code, Message string
	Details       ErrorDetails
	Retryable     bool
	RetryAfterMs  int64
}

// ErrorDetails are the members of an error's details that are acted upon.
type ErrorDetails struct{ Code, Reason, MissingScope, RequestID string }

// errorOf reads a refusal. Members of a wrong type count as left out; a string
// in place of the object is its message.
func errorOf(raw json.RawMessage) *RPCError {
	f := fieldsOf(raw)
	d := f.in("details")
	return &RPCError{
		Code: or(f.text("code"), "UNAVAILABLE"), Message: or(or(f.text("message"), text(raw)), "the gateway gave no reason"),
		Details: ErrorDetails{
			Code: d.text("code"), Reason: d.text("reason"), MissingScope: d.text("missingScope"), RequestID: d.text("requestId"),
		},
		Retryable: f.flag("retryable"), RetryAfterMs: f.number("retryAfterMs"),
	}
}

// refusal is why a request was refused.
func (in incoming) refusal() *RPCError {
	if in.err == nil {
		return errorOf(nil)
	}
	return in.err
}

// Error gives the code and the Gateway's words.
func (e *RPCError) Error() string { return brief(e.Code) + ": " + brief(e.Message) }

// hide takes a secret out of the Gateway's words.
func (e *RPCError) hide(secret string) {
	if secret == "" {
		return
	}
	for _, s := range []*string{&e.Code, &e.Message, &e.Details.Code, &e.Details.Reason, &e.Details.MissingScope, &e.Details.RequestID} {
		*s = strings.ReplaceAll(*s, secret, "(the token)")
	}
}

// mostAfter bounds how long a Gateway may make us wait, in milliseconds.
const mostAfter = 10 * 60 * 1000

// after is how long the Gateway asks to wait.
func (e *RPCError) after() time.Duration {
	return time.Duration(min(max(e.RetryAfterMs, 0), mostAfter)) * time.Millisecond
}

// fields are the members of an object by name; of anything else there are
// none.
type fields map[string]json.RawMessage

func fieldsOf(raw json.RawMessage) fields {
	f := fields{}
	for name, value := range jsonrpc.Members(raw) {
		f[name] = value
	}
	return f
}

func (f fields) text(name string) string      { return text(f[name]) }
func (f fields) in(name string) fields        { return fieldsOf(f[name]) }
func (f fields) flag(name string) bool        { return string(f[name]) == "true" }
func (f fields) number(name string) int64     { return number(f[name]) }
func (f fields) has(name string) bool         { v := f[name]; return len(v) > 0 && string(v) != "null" }
func (f fields) strings(name string) []string { return texts(f[name]) }

// first is the first of the names that holds a string that is not blank.
func (f fields) first(names ...string) string {
	for _, n := range names {
		if s := trimmed(f.text(n)); s != "" {
			return s
		}
	}
	return ""
}

// exact is the first of the names that holds a string, as it is.
func (f fields) exact(names ...string) string {
	for _, n := range names {
		if s := f.text(n); s != "" {
			return s
		}
	}
	return ""
}

// text is the string raw is, or "".
func text(raw json.RawMessage) string {
	n := len(raw)
	if n < 2 || raw[0] != '"' {
		return ""
	}
	for _, c := range raw[1 : n-1] {
		if c == '\\' {
			var s string
			if json.Unmarshal(raw, &s) != nil {
				return ""
			}
			return s
		}
	}
	return string(raw[1 : n-1])
}

// texts are the strings of a list.
func texts(raw json.RawMessage) []string {
	var out []string
	for e := range jsonrpc.Elements(raw) {
		if s := text(e); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// mostNumber bounds numbers that are no whole ones of 64 bits: what JavaScript
// counts exactly.
const mostNumber = 1 << 53

// number is the number raw is, rounded towards zero, or 0.
func number(raw json.RawMessage) int64 {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0
	}
	var n json.Number
	if json.Unmarshal(raw, &n) != nil {
		return 0
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	f, _ := n.Float64()
	return int64(min(max(f, -mostNumber), mostNumber))
}
