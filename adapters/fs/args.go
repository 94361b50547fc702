package fs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/core/domain"
)

// arguments are the members of a tool call's JSON object, taken one by one.
// The first mistake is kept and everything after it answers with zero values.
type arguments struct {
	tool    string
	allowed []string // names to show in messages
	members map[string]json.RawMessage
	why     string // the first mistake
	err     error  // the same, as it is returned; or that of an inner object
}

// parseArgs reads the object; allowed are the documented names.
func parseArgs(tool string, raw []byte, allowed ...string) *arguments {
	a := &arguments{tool: tool, allowed: allowed}
	dec := json.NewDecoder(bytes.NewReader(raw))
	err := dec.Decode(&a.members)
	if err == nil && a.members == nil {
		err = errors.New("it is null")
	}
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		a.fail("the arguments are not one JSON object: %v", err)
	}
	return a
}

func (a *arguments) fail(format string, args ...any) {
	if a.err == nil {
		a.why = fmt.Sprintf(format, args...)
		a.err = domain.Errorf(domain.InvalidArgument, "%s: %s. Arguments: %s", a.tool, a.why, strings.Join(a.allowed, ", "))
	}
}

// take removes a member under its name or one of its aliases; null counts as
// absent.
func (a *arguments) take(names ...string) (json.RawMessage, bool) {
	var found json.RawMessage
	for _, n := range names {
		raw, ok := a.members[n]
		delete(a.members, n)
		if !ok || string(raw) == "null" {
			continue
		}
		if found != nil {
			a.fail("%q and %q mean the same; give one of them", names[0], n)
		}
		found = raw
	}
	return found, found != nil
}

// text takes a string. Without one, def is the answer, unless required.
func (a *arguments) text(required bool, def string, names ...string) string {
	raw, ok := a.take(names...)
	if !ok {
		if required {
			a.fail("%q is missing", names[0])
		}
		return def
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		a.fail("%q must be a string, not %s", names[0], kindOfJSON(raw))
	}
	return s
}

// count takes a whole number of at least 1; def when it is absent. Numbers
// written as strings are taken too, because models write them.
func (a *arguments) count(def int, names ...string) int {
	raw, ok := a.take(names...)
	if !ok {
		return def
	}
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	switch {
	case err != nil:
		a.fail("%q must be a number, not %s", names[0], kindOfJSON(raw))
	case n != float64(int64(n)) || n < 1 || n > 1<<53:
		a.fail("%q must be a whole number of at least 1, not %s", names[0], brief(string(raw)))
	}
	return int(n)
}

// flag takes a boolean, false when it is absent.
func (a *arguments) flag(names ...string) bool {
	raw, ok := a.take(names...)
	if !ok {
		return false
	}
	switch strings.ToLower(strings.Trim(string(raw), `"`)) {
	case "true":
		return true
	case "false":
	default:
		a.fail("%q must be true or false, not %s", names[0], kindOfJSON(raw))
	}
	return false
}

// done returns the first mistake. A member nobody took is one, and told
// first: it may be the one that is missed under its right name.
func (a *arguments) done() error {
	if len(a.members) == 0 {
		return a.err
	}
	unknown := make([]string, 0, len(a.members))
	for n := range a.members {
		unknown = append(unknown, strconv.Quote(brief(n)))
	}
	slices.Sort(unknown)
	words := "unknown argument " + strings.Join(unknown, ", ")
	if a.why != "" {
		words += "; " + a.why
	}
	a.err = nil
	a.fail("%s", words)
	return a.err
}

func kindOfJSON(raw []byte) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "the string " + brief(string(raw))
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "the number " + brief(string(raw))
}
