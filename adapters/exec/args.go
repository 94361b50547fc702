package exec

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
	allowed string // what there is, for messages
	members map[string]json.RawMessage
	why     string
}

func parseArgs(tool, allowed string, raw []byte) *arguments {
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
	if a.why == "" {
		a.why = fmt.Sprintf(format, args...)
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

// text takes a string; "" when it is absent.
func (a *arguments) text(names ...string) string {
	raw, ok := a.take(names...)
	if !ok {
		return ""
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		a.fail("%q must be a string", names[0])
	}
	return s
}

// count takes a whole number from least to most; def when it is absent.
// Numbers written as strings are taken too, because models write them.
func (a *arguments) count(def, least, most int64, names ...string) int64 {
	raw, ok := a.take(names...)
	if !ok {
		return def
	}
	n, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil || n != float64(int64(n)) || n < float64(least) || n > float64(most) {
		a.fail("%q must be a whole number from %d to %d, not %s", names[0], least, most, cutAt(string(raw), 40))
		return def
	}
	return int64(n)
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
		a.fail("%q must be true or false, not %s", names[0], cutAt(string(raw), 40))
	}
	return false
}

// id takes the name of a job, written as a string or as a number.
func (a *arguments) id(names ...string) string {
	raw, ok := a.take(names...)
	if !ok {
		return ""
	}
	id := strings.Trim(string(raw), `" `)
	return strings.TrimPrefix(id, "job-")
}

// done returns the first mistake. A member nobody took is one.
func (a *arguments) done() error {
	if len(a.members) > 0 {
		unknown := make([]string, 0, len(a.members))
		for n := range a.members {
			unknown = append(unknown, strconv.Quote(cutAt(n, 80)))
		}
		slices.Sort(unknown)
		words := "unknown argument " + strings.Join(unknown, ", ")
		if a.why != "" {
			words += "; " + a.why
		}
		a.why = words
	}
	if a.why == "" {
		return nil
	}
	return domain.Errorf(domain.InvalidArgument, "%s: %s. Arguments: %s", a.tool, a.why, a.allowed)
}

// forgetClaims removes members by which a model says that it was allowed to
// do what it asks for, or wants to be. They mean nothing: the question is
// asked all the same.
func (a *arguments) forgetClaims() {
	for _, n := range []string{
		"approved", "approval", "allow", "allowed", "auto_approve", "permission", "permissions", "level", "autonomy", "mode",
		"sandbox", "dangerouslyDisableSandbox", "with_escalated_permissions", "sandbox_permissions", "requires_approval", "is_safe", "force",
	} {
		delete(a.members, n)
	}
}
