package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
)

// errNotInitialize is why a connection is closed that does not begin with
// initialize.
var errNotInitialize = errors.New("the first message must be initialize")

// firstMessage holds a WebSocket to its first message. A batch is passed on,
// for it has an answer of its own, and does not count as the first.
func firstMessage(message []byte) (skip bool, err error) {
	message = bytes.TrimSpace(message)
	if bytes.HasPrefix(message, []byte("[")) {
		return true, nil
	}
	var members map[string]json.RawMessage // a struct's would match in other letters too
	var method string
	if json.Unmarshal(message, &members) != nil || json.Unmarshal(members["method"], &method) != nil || method != "initialize" {
		return false, errNotInitialize
	}
	return false, nil
}
