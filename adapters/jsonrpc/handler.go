package jsonrpc

import (
	"context"
	"encoding/json"
)

// Task is the second phase of a request: it may block, do I/O, send updates
// and call the peer. It runs exactly once after admission, on a goroutine of
// its own, and returns promptly when its context ends. What it returns becomes
// the request's one response; everything it sent before is on the wire first.
type Task func(context.Context) (Reply, error)

// Reply is what a Task answers.
type Reply struct {
	// Result becomes the "result" member. An Appender appends itself, a
	// json.RawMessage goes out as it is, nil is the empty object, and
	// everything else passes encoding/json without HTML escaping.
	Result any
	// Then, if set, runs on the task's goroutine after the response was
	// queued, so whatever it sends follows the response. Its context is the
	// connection's: the request is over.
	Then func(context.Context)
}

// Admit is the first phase of a request. It runs on the read goroutine, in
// wire order, so what it registers is seen by the very next message. It must
// not block, do I/O or write; an error is the request's answer. params is a
// JSON object ("{}" if the message had none) that the callee may keep.
type Admit func(ctx context.Context, params json.RawMessage) (Task, error)

// Method is how one inbound method is served.
type Method struct {
	// Admit serves the request form; nil answers -32601.
	Admit Admit
	// Notify serves the notification form, with the same two phases: it runs
	// on the read goroutine in wire order, and the Task it may return runs
	// afterwards. There is no answer; errors go to the observer. nil ignores
	// notifications of this name.
	Notify Admit
	Flags  Flags
}

// Flags are a method's place in the life of a connection.
type Flags uint8

const (
	// Opens marks the initialize request: it is served before all others, once
	// per connection. The read goroutine waits until its answer is queued, and
	// a success opens the connection for the other methods.
	Opens Flags = 1 << iota
	// Early marks a method that is served before initialize too.
	Early
)

// Handler is the inbound side of a connection.
type Handler interface {
	// Method finds a method by its exact name. It runs on the read goroutine
	// and must not block.
	Method(name string) (Method, bool)
	// InputEnded is called exactly once, when no further message will be
	// admitted. why is io.EOF when the peer ended its side in an orderly way;
	// the running requests then go on for a while, and the handler cancels
	// what it likes. Otherwise they have been cancelled already, and why is the
	// read or write error that lost the connection, or the cause given to
	// Close or to the context of Serve. It must not block.
	InputEnded(why error)
}

// Methods is a Handler that is nothing but a table.
type Methods map[string]Method

// Method looks the name up.
func (m Methods) Method(name string) (Method, bool) {
	d, ok := m[name]
	return d, ok
}

// InputEnded does nothing.
func (m Methods) InputEnded(error) {}

// Appender is a value that writes its own JSON. The hot notifications use it
// instead of encoding/json. AppendJSON appends one complete JSON value without
// a raw newline in it and returns the extended slice.
type Appender interface {
	AppendJSON(dst []byte) []byte
}
