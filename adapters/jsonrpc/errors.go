package jsonrpc

import (
	"encoding/json"
	"fmt"
)

// Dialect chooses the error codes of a connection.
type Dialect int32

// The dialects.
const (
	ACP Dialect = iota
	Zeroclaw
)

// RemoteError is the peer's error answer to one of our requests.
type RemoteError struct {
	Code    int
	Message string
	Data    json.RawMessage // nil if there was none
}

// Error gives the code and the peer's words.
func (e *RemoteError) Error() string {
	return fmt.Sprintf("peer answered error %d: %s", e.Code, e.Message)
}
