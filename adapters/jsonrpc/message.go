package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ID is a request id as JSON text, kept and echoed digit by digit: `7`,
// `"a"`, `null`. The empty ID means that there is none.
type ID string

// NullID is the id of an answer to a message whose own id is unknown.
const NullID ID = "null"

// maxIDBytes bounds an id: it is echoed and kept while the request runs.
const maxIDBytes = 4096

// key is equal for two ids exactly when they are the same JSON value, however
// they are escaped.
func (id ID) key() string {
	switch {
	case id == "-0":
		return "0"
	case strings.IndexByte(string(id), '\\') >= 0:
		return `"` + string(unescape(nil, []byte(id[1:len(id)-1]))) + `"`
	}
	return string(id)
}

// Kind says what a message is.
type Kind uint8

// The kinds of message.
const (
	Request Kind = iota + 1
	Notification
	Response
)

// String returns the kind in words.
func (k Kind) String() string {
	return [...]string{"invalid", "request", "notification", "response"}[k]
}

// Message is one decoded JSON-RPC envelope. Its parts point into the frame.
type Message struct {
	Kind   Kind
	ID     ID              // of a request or response
	Method string          // of a request or notification
	Params json.RawMessage // nil if the message had none
	Result json.RawMessage // of a successful response
	Error  *RemoteError    // of a failed response
}

// MessageError is why a frame is no message. ID is the id to answer with:
// "null" unless the frame's own id is certain.
type MessageError struct {
	Code int // CodeParse or CodeInvalidRequest
	ID   ID
	Msg  string
}

// Error says what is wrong with the frame.
func (e *MessageError) Error() string { return e.Msg }

// Parse decodes and validates one frame, with nesting limited to
// DefaultMaxDepth. The error is a *MessageError. A Message of kind Response
// may come with an error: it was meant as an answer, so it must not be
// answered, and the call with its ID, if it has one, has failed.
func Parse(frame []byte) (Message, error) {
	var names [fewMembers][]byte
	s := scanner{names: names[:0]}
	return s.message(frame, DefaultMaxDepth)
}

// Valid reports whether b is one JSON value by the rules of this package.
func Valid(b []byte) bool {
	var s scanner
	s.reset(b, DefaultMaxDepth)
	return s.text(nil) && !s.dup
}

// envelope is where the outermost members lie.
type envelope struct {
	object                                      bool // the text is an object at all
	version, id, method, params, result, errobj []byte
}

// envelope walks the outermost object and notes its members. Names count
// after unescaping and exactly: "Method" is an unknown member.
func (s *scanner) envelope(i int, env *envelope) int {
	o := objectNames{base: len(s.names), top: true}
	defer s.forget(&o)
	i, more := s.firstName(i)
	for more {
		name, start := s.name(i, &o)
		if start < 0 {
			return start
		}
		if i = s.value(start, 2); i < 0 {
			return i
		}
		part := s.b[start:i:i]
		switch string(name) {
		case "jsonrpc":
			env.version = part
		case "id":
			env.id = part
		case "method":
			env.method = part
		case "params":
			env.params = part
		case "result":
			env.result = part
		case "error":
			env.errobj = part
		}
		i, more = s.nextName(i)
	}
	return i
}

// message decodes a frame. See Parse.
func (s *scanner) message(frame []byte, maxDepth int) (Message, error) {
	s.reset(frame, maxDepth)
	var env envelope
	if !s.text(&env) {
		switch s.fault {
		case faultDepth:
			return Message{}, invalid(NullID, "the message nests deeper than %d levels", maxDepth)
		case faultMembers:
			return Message{}, invalid(NullID, "the message has more than %d members in one place", maxOpenMembers)
		}
		return Message{}, &MessageError{CodeParse, NullID, "the message is not valid JSON in UTF-8"}
	}
	if !env.object {
		for _, c := range frame {
			if c == '[' {
				return Message{}, invalid(NullID, "batches are not supported; send one message at a time")
			} else if c > ' ' {
				break
			}
		}
		return Message{}, invalid(NullID, "the message is not an object")
	}
	return s.classify(&env)
}

// classify tells requests, notifications and responses apart.
func (s *scanner) classify(env *envelope) (Message, error) {
	id, idErr := parseID(env.id)
	if s.dupTop {
		id = NullID // it is unknown which one counts
	}
	answer := env.result != nil || env.errobj != nil
	if answer && env.method == nil {
		return s.response(env, id, idErr)
	}
	refuse := func(id ID, msg string) (Message, error) {
		if id == "" || idErr != nil {
			id = NullID
		}
		return Message{}, invalid(id, "%s", msg)
	}
	switch {
	case s.dup:
		return refuse(NullID, "a member occurs twice in one object")
	case idErr != nil:
		return refuse(NullID, idErr.Error())
	case env.method == nil:
		// The id may belong to the peer's own counting: not echoed.
		return refuse(NullID, "the message has no method, result or error")
	case string(env.version) != `"2.0"` && !isString(env.version, "2.0"):
		return refuse(id, `"jsonrpc" must be "2.0"`)
	case env.method[0] != '"':
		return refuse(id, `"method" must be a string`)
	case answer:
		return refuse(id, "the message is a request and a response at once")
	}
	m := Message{Kind: Notification, ID: id, Method: stringValue(env.method), Params: env.params}
	if id != "" {
		m.Kind = Request
	}
	return m, nil
}

// response decodes what is meant as an answer.
func (s *scanner) response(env *envelope, id ID, idErr error) (Message, error) {
	m := Message{Kind: Response, ID: id, Result: env.result}
	bad := func(msg string) (Message, error) {
		return Message{Kind: Response, ID: id}, invalid(id, "%s", msg)
	}
	switch {
	case s.dup:
		return bad("a member of the response occurs twice in one object")
	case idErr != nil:
		m.ID = ""
		return m, invalid(NullID, "%s", idErr.Error())
	case id == "":
		return bad("the response has no id")
	case !isString(env.version, "2.0"):
		return bad(`"jsonrpc" must be "2.0"`)
	case env.result != nil && env.errobj != nil:
		return bad("the response has both a result and an error")
	case env.errobj != nil:
		if m.Error = parseError(env.errobj); m.Error == nil {
			return bad(`"error" must hold an integer code and a message`)
		}
	}
	return m, nil
}

func invalid(id ID, format string, args ...any) *MessageError {
	return &MessageError{CodeInvalidRequest, id, fmt.Sprintf(format, args...)}
}

var (
	errIDType  = errors.New(`"id" must be a string, an integer of 64 bits or null`)
	errIDBytes = fmt.Errorf(`"id" is longer than %d bytes`, maxIDBytes)
)

// parseID checks an id. Numbers must be exact as int64: what passes through a
// float comes back as another number.
func parseID(raw []byte) (ID, error) {
	switch {
	case raw == nil:
		return "", nil
	case len(raw) > maxIDBytes:
		return "", errIDBytes
	case raw[0] == '"' || raw[0] == 'n':
		return ID(raw), nil
	case raw[0] == '-' || raw[0]-'0' < 10:
		if _, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return ID(raw), nil
		}
	}
	return "", errIDType
}

// parseError decodes an error object, or returns nil if it is none.
func parseError(raw []byte) *RemoteError {
	if raw[0] != '{' {
		return nil
	}
	e := &RemoteError{}
	var coded, worded bool
	for name, v := range Members(raw) {
		switch name {
		case "code":
			n, err := strconv.ParseInt(string(v), 10, 64)
			e.Code, coded = int(n), err == nil
		case "message":
			if v[0] == '"' {
				e.Message, worded = stringValue(v), true
			}
		case "data":
			e.Data = v
		}
	}
	if !coded || !worded {
		return nil
	}
	return e
}

// stringValue returns the text of a JSON string the scanner accepted.
func stringValue(raw []byte) string {
	inside := raw[1 : len(raw)-1]
	for _, c := range inside {
		if c == '\\' {
			return string(unescape(make([]byte, 0, len(inside)), inside))
		}
	}
	return string(inside)
}

// isString reports whether raw is the JSON string want.
func isString(raw []byte, want string) bool {
	return len(raw) > 1 && raw[0] == '"' && stringValue(raw) == want
}
