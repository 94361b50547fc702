package acp1

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// CheckAgentFrame checks one frame as an agent of the acp dialect may send it:
// valid UTF-8 JSON on one line of bounded length, a well-formed envelope, and
// params or a result that hold every required member, no unknown one, no null
// where the schema means "left out" and only values of the closed lists. A
// result must have the shape of some method's; a Checker knows of which.
func CheckAgentFrame(frame []byte) error { return NewChecker().Agent(frame) }

// Checker watches the frames of one connection in both directions and checks
// what the agent sends strictly. It is not safe for concurrent use.
type Checker struct {
	zeroclaw bool
	methods  map[string][]string // of the client's open requests, by id
}

// NewChecker returns a checker for a connection that has not begun.
func NewChecker() *Checker { return &Checker{methods: map[string][]string{}} }

// Client notes a frame the client sends. It judges nothing: clients may send
// what they like.
func (c *Checker) Client(frame []byte) {
	m, err := jsonrpc.Parse(frame)
	if err != nil || m.Kind != jsonrpc.Request {
		return
	}
	c.methods[string(m.ID)] = append(c.methods[string(m.ID)], m.Method)
}

// Agent checks a frame the agent sends.
func (c *Checker) Agent(frame []byte) error {
	switch {
	case len(frame) > 10<<20 && !delivers(frame):
		return fmt.Errorf("frame of %d bytes: clients end the connection at 10 MiB", len(frame))
	case !utf8.Valid(frame):
		return fmt.Errorf("frame is not UTF-8")
	case strings.ContainsAny(string(frame), "\n\r"):
		return fmt.Errorf("frame spans lines")
	}
	m, err := jsonrpc.Parse(frame)
	if err != nil {
		return fmt.Errorf("envelope: %w", err)
	}
	if err := c.envelope(frame, m.Kind); err != nil {
		return err
	}
	switch m.Kind {
	case jsonrpc.Notification:
		return at(m.Method, notificationShape(m.Method, c.zeroclaw)(m.Params))
	case jsonrpc.Request:
		if id, ok := stringOf(json.RawMessage(m.ID)); !ok || id == "" {
			return fmt.Errorf("request id %s is not a string", m.ID)
		}
		return at(m.Method, requestShape(m.Method)(m.Params))
	case jsonrpc.Response:
	}
	return c.response(m)
}

// delivers reports whether a frame is the one that may be longer than others:
// it brings a delivered file, whose bytes are what makes it long.
func delivers(frame []byte) bool {
	_, rest, found := bytes.Cut(frame, []byte(`"uri":"attachment://deliver/`))
	if !found {
		return false
	}
	_, rest, found = bytes.Cut(rest, []byte(`"blob":"`))
	blob := bytes.IndexByte(rest, '"')
	return found && blob >= 0 && blob <= base64.StdEncoding.EncodedLen(domain.MaxBlobBytes) && len(frame)-blob <= 10<<20
}

// envelope checks the members of the frame itself.
func (c *Checker) envelope(frame []byte, kind jsonrpc.Kind) error {
	allowed := []string{"jsonrpc", "id", "result", "error"}
	switch kind {
	case jsonrpc.Request:
		allowed = []string{"jsonrpc", "id", "method", "params"}
	case jsonrpc.Notification:
		allowed = []string{"jsonrpc", "method", "params"}
	case jsonrpc.Response:
	}
	for name := range jsonrpc.Members(frame) {
		if !slices.Contains(allowed, name) {
			return fmt.Errorf("envelope: unknown member %q", name)
		}
	}
	return nil
}

// response checks a result or an error against the request it answers.
func (c *Checker) response(m jsonrpc.Message) error {
	method := ""
	if open := c.methods[string(m.ID)]; len(open) > 0 {
		method = open[0]
		c.methods[string(m.ID)] = open[1:]
	}
	if m.Error != nil {
		return at("error", checkError(m.Error))
	}
	if method == "" {
		return anyResult(m.Result, c.zeroclaw)
	}
	if method == "initialize" {
		dialect, _ := stringOf(objectOf(m.Result).in("_meta").in("berth")["dialect"])
		c.zeroclaw = dialect == string(DialectZeroclaw)
	}
	shape := resultShape(method, c.zeroclaw)
	if shape == nil {
		return fmt.Errorf("%s has a result, but is no method of the protocol", method)
	}
	return at(method, shape(m.Result))
}

// anyResult accepts a result that fits some method.
func anyResult(raw json.RawMessage, zeroclaw bool) error {
	var tried []string
	for _, method := range resultMethods() {
		err := resultShape(method, zeroclaw)(raw)
		if err == nil {
			return nil
		}
		tried = append(tried, method+": "+err.Error())
	}
	return fmt.Errorf("result fits no method: %s", strings.Join(tried, "; "))
}

// checkError checks what the people and programs at the other end rely on.
func checkError(e *jsonrpc.RemoteError) error {
	switch {
	case strings.TrimSpace(e.Message) == "":
		return fmt.Errorf("message is empty")
	case strings.ContainsAny(e.Message, "\r\n"):
		return fmt.Errorf("message %q spans lines", e.Message)
	case objectOf(e.Data).text("reason") == "":
		return fmt.Errorf("data.reason is missing")
	case e.Code == 0:
		return fmt.Errorf("code is 0")
	}
	return nil
}

// A shape checks one value.
type shape func(json.RawMessage) error

func at(where string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", where, err)
}

// field is a member of an object.
type field struct {
	name     string
	required bool
	shape    shape
}

func must(name string, s shape) field { return field{name, true, s} }
func may(name string, s shape) field  { return field{name, false, s} }

// record is an object with exactly these members, and _meta.
func record(fields ...field) shape {
	fields = append(fields, may("_meta", anyObject))
	return func(raw json.RawMessage) error {
		if !isObject(raw) {
			return fmt.Errorf("is not an object")
		}
		o := objectOf(raw)
		for name := range o {
			if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
				return fmt.Errorf("unknown member %q", name)
			}
		}
		for _, f := range fields {
			value, ok := o[f.name]
			if !ok {
				if f.required {
					return fmt.Errorf("member %q is missing", f.name)
				}
				continue
			}
			if err := f.shape(value); err != nil {
				return at(f.name, err)
			}
		}
		return nil
	}
}

// tagged is an object whose member tag says which record the rest is.
func tagged(tag string, records map[string][]field) shape {
	return func(raw json.RawMessage) error {
		kind := objectOf(raw).text(tag)
		fields, ok := records[kind]
		if !ok {
			return fmt.Errorf("%s %q is unknown", tag, kind)
		}
		return at(kind, record(append([]field{must(tag, anyString)}, fields...)...)(raw))
	}
}

func list(of shape) shape {
	return func(raw json.RawMessage) error {
		if kindOf(raw) != '[' {
			return fmt.Errorf("is not a list")
		}
		i := 0
		for el := range jsonrpc.Elements(raw) {
			if err := of(el); err != nil {
				return at("["+strconv.Itoa(i)+"]", err)
			}
			i++
		}
		return nil
	}
}

func enum(values ...string) shape {
	return func(raw json.RawMessage) error {
		if s, ok := stringOf(raw); !ok || !slices.Contains(values, s) {
			return fmt.Errorf("%s is none of %s", raw, strings.Join(values, ", "))
		}
		return nil
	}
}

func orNull(s shape) shape {
	return func(raw json.RawMessage) error {
		if kindOf(raw) == 'n' {
			return nil
		}
		return s(raw)
	}
}

func anyObject(raw json.RawMessage) error {
	if !isObject(raw) {
		return fmt.Errorf("is not an object")
	}
	return nil
}

func anyValue(raw json.RawMessage) error {
	if kindOf(raw) == 'n' {
		return fmt.Errorf("is null")
	}
	return nil
}

func anyString(raw json.RawMessage) error {
	if _, ok := stringOf(raw); !ok {
		return fmt.Errorf("is not a string")
	}
	return nil
}

func fullString(raw json.RawMessage) error {
	if s, ok := stringOf(raw); !ok || s == "" {
		return fmt.Errorf("is not a string that is not empty")
	}
	return nil
}

func boolean(raw json.RawMessage) error {
	if k := kindOf(raw); k != 't' && k != 'f' {
		return fmt.Errorf("is not true or false")
	}
	return nil
}

func count(raw json.RawMessage) error {
	if _, err := strconv.ParseUint(string(raw), 10, 63); err != nil {
		return fmt.Errorf("%s is not a count", raw)
	}
	return nil
}

func number(raw json.RawMessage) error {
	if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
		return fmt.Errorf("%s is not a number", raw)
	}
	return nil
}

func sessionIDShape(raw json.RawMessage) error {
	if s, _ := stringOf(raw); !domain.SessionID(s).Valid() {
		return fmt.Errorf("%s is no session id", raw)
	}
	return nil
}

// absolute is a path that starts at a root, of either kind of system: a
// recording may come from another machine.
func absolute(raw json.RawMessage) error {
	s, ok := stringOf(raw)
	drive := len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
	if !ok || !strings.HasPrefix(s, "/") && !strings.HasPrefix(s, `\\`) && !drive {
		return fmt.Errorf("%s is not an absolute path", raw)
	}
	return nil
}
