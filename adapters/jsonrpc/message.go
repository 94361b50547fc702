package jsonrpc

import "encoding/json"

// ID is a request id as JSON text, kept and echoed digit by digit: `7`,
// `"a"`, `null`. The empty ID means that there is none.
type ID string

// Kind says what a message is.
type Kind uint8

// The kinds of message.
const (
	Request Kind = iota + 1
	Notification
	Response
)

// Message is one decoded JSON-RPC envelope. Its parts point into the frame.
type Message struct {
	Kind   Kind
	ID     ID              // of a request or response
	Method string          // of a request or notification
	Params json.RawMessage // nil if the message had none
	Result json.RawMessage // of a successful response
	Error  *RemoteError    // of a failed response
}

// Parse decodes and validates one frame by the rules of this package, with
// nesting limited to DefaultMaxDepth.
func Parse(frame []byte) (Message, error) { panic("draft") }
