package acp1

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// object is the members of a JSON object by their exact names. What a client
// sends is read member by member because the schema asks for it: a malformed
// optional member counts as absent and must not spoil its neighbours.
type object map[string]json.RawMessage

// objectOf reads an object. Anything else, null among it, is an object without
// members.
func objectOf(raw json.RawMessage) object {
	o := object{}
	for name, value := range jsonrpc.Members(raw) {
		o[name] = value
	}
	return o
}

// isObject reports whether raw is an object at all.
func isObject(raw json.RawMessage) bool { return kindOf(raw) == '{' }

// kindOf returns the first byte of a value, which tells its kind: one of
// { [ " t f n - or a digit. 0 means that there is no value.
func kindOf(raw json.RawMessage) byte {
	for _, c := range raw {
		switch c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// absent reports whether a member is missing or null.
func absent(raw json.RawMessage) bool {
	k := kindOf(raw)
	return k == 0 || k == 'n'
}

// first returns the first of the names that is present, and its value.
func (o object) first(names ...string) (string, json.RawMessage) {
	for _, n := range names {
		if v, ok := o[n]; ok {
			return n, v
		}
	}
	return names[0], nil
}

// in returns the object that is member name; empty when it is none.
func (o object) in(name string) object { return objectOf(o[name]) }

// has reports whether member name is an object, which is how capabilities say
// yes.
func (o object) has(name string) bool { return isObject(o[name]) }

// flag reports whether member name is true.
func (o object) flag(name string) bool { return isTrue(o[name]) }

func isTrue(raw json.RawMessage) bool { return kindOf(raw) == 't' }

// text returns an optional string; "" when it is missing or malformed.
func (o object) text(name string) string {
	s, _ := stringOf(o[name])
	return s
}

// stringOf decodes a JSON string of a message that was found valid.
func stringOf(raw json.RawMessage) (string, bool) {
	if kindOf(raw) != '"' {
		return "", false
	}
	if n := len(raw); n > 1 && raw[0] == '"' && raw[n-1] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : n-1]), true // blobs come in megabytes
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", false
	}
	return s, true
}

// required returns a string that must be there.
func (o object) required(names ...string) (string, error) {
	name, raw := o.first(names...)
	s, ok := stringOf(raw)
	switch {
	case ok:
		return s, nil
	case raw == nil:
		return "", domain.Errorf(domain.InvalidArgument, "%s is required", name)
	}
	return "", domain.Errorf(domain.InvalidArgument, "%s must be a string", name)
}

// sessionID returns the id of the session the params name. A string that
// cannot be the id of a session is returned all the same, cut to what an error
// may repeat: no session will be found for it.
func (o object) sessionID() (domain.SessionID, error) {
	s, err := o.required("sessionId", "session_id")
	if err != nil {
		return "", err
	}
	if len(s) > 128 {
		s = strings.ToValidUTF8(s[:128], "")
	}
	return domain.SessionID(s), nil
}

// strings reads a list of strings; missing and null are the empty list.
func (o object) strings(name string) ([]string, error) {
	raw := o[name]
	if absent(raw) {
		return nil, nil
	}
	if kindOf(raw) != '[' {
		return nil, domain.Errorf(domain.InvalidArgument, "%s must be a list of strings", name)
	}
	var list []string
	for el := range jsonrpc.Elements(raw) {
		s, ok := stringOf(el)
		if !ok {
			return nil, domain.Errorf(domain.InvalidArgument, "%s[%d] must be a string", name, len(list))
		}
		list = append(list, s)
	}
	return list, nil
}

// directories reads the working directory and the additional ones. Where they
// lead is for ports.Roots to judge; here it is only checked that they are what
// the dialect allows at all.
func (c *connection) directories(p object) (domain.Directories, error) {
	d := domain.Directories{Lenient: c.state().zeroclaw()}
	name, raw := p.first("cwd", "workspaceDir", "workspace_dir")
	switch cwd, ok := stringOf(raw); {
	case absent(raw) && d.Lenient:
	case absent(raw):
		return d, domain.Errorf(domain.InvalidArgument, "cwd is required: send the absolute path of the project directory")
	case !ok:
		return d, domain.Errorf(domain.InvalidArgument, "%s must be a string", name)
	case cwd == "":
		return d, domain.Errorf(domain.InvalidArgument, "%s is empty: send the absolute path of the project directory", name)
	case !d.Lenient && cwd != "." && !filepath.IsAbs(cwd):
		return d, domain.Errorf(domain.InvalidArgument, "%s %q is not an absolute path", name, brief(cwd))
	default:
		d.Cwd = cwd
	}
	var err error
	if d.Additional, err = p.strings("additionalDirectories"); err != nil {
		return d, err
	}
	for i, dir := range d.Additional {
		if !filepath.IsAbs(dir) {
			return d, domain.Errorf(domain.InvalidArgument,
				"additionalDirectories[%d] %q is not an absolute path", i, brief(dir))
		}
	}
	return d, nil
}

// brief cuts what a message repeats of the client's own words.
func brief(s string) string {
	if len(s) <= 200 {
		return s
	}
	return strings.ToValidUTF8(s[:200], "") + "…"
}
