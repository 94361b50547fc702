// Package jsonrpc is the JSON-RPC 2.0 peer.
package jsonrpc

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/berth-dev/berth/core/ports"
)

// DefaultMaxDepth is how deep a message may nest unless Options say otherwise.
const DefaultMaxDepth = 128

// Options of a Conn. The zero value is a server end with the defaults.
type Options struct {
	// Client marks the end that sends initialize: its peer's requests need no
	// initialize first, and noise on the line is reported instead of answered.
	Client   bool
	IDs      *IDs           // ids of our requests; default NewIDs("")
	Observer ports.Observer // gets domain.Trouble; nil discards
	Dialect  Dialect        // until SetDialect
	MaxDepth int            // nesting of inbound messages; default DefaultMaxDepth
	MaxTasks int            // requests in flight; default 4096
	// QueueBytes and QueueFrames bound what waits to be written; defaults
	// 1 MiB and 8192.
	QueueBytes  int
	QueueFrames int
	// Linger is how long requests may go on after the peer's EOF before they
	// are cancelled (default 2 s), Drain how long the last answers may take to
	// reach a peer that does not read (default 2 s).
	Linger time.Duration
	Drain  time.Duration
}

// Conn is one end of a connection.
type Conn struct{}

// NewConn makes the end of a connection. Nothing is read or written before
// Serve; what is sent earlier waits in the queue.
func NewConn(frames Frames, opts Options) *Conn { panic("draft") }

// Serve reads and serves until the connection is over.
func (c *Conn) Serve(ctx context.Context, h Handler) error { panic("draft") }

// Call sends a request and waits for its answer.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	panic("draft")
}

// Notify queues a notification.
func (c *Conn) Notify(ctx context.Context, method string, params any) error { panic("draft") }

// Send queues one complete frame as it is.
func (c *Conn) Send(ctx context.Context, frame []byte) error { panic("draft") }

// SetDialect fixes the error codes.
func (c *Conn) SetDialect(d Dialect) { panic("draft") }

// Dialect returns the error codes in use.
func (c *Conn) Dialect() Dialect { panic("draft") }

// Close ends the connection with a cause.
func (c *Conn) Close(cause error) { panic("draft") }

// Done is closed when the connection is over.
func (c *Conn) Done() <-chan struct{} { panic("draft") }

// NewStdio frames messages as lines.
func NewStdio(r io.Reader, w io.Writer, maxBytes int) Frames { panic("draft") }

// IDs makes ids.
type IDs struct{ prefix string }

// NewIDs returns a generator of `"<prefix>1"`, `"<prefix>2"`, …; with an empty prefix of plain numbers.
func NewIDs(prefix string) *IDs { return &IDs{prefix} }

// Unmarshal decodes params like encoding/json but with member names matched exactly: encoding/json alone would let
// "CWD" or "paramſ" override a checked member.
func Unmarshal(data []byte, v any) error { panic("draft") }

// AppendString appends s as a JSON string, invalid UTF-8 replaced by U+FFFD; for Appenders.
func AppendString(dst []byte, s string) []byte { panic("draft") }
