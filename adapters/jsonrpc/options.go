package jsonrpc

import (
	"time"

	"github.com/berth-dev/berth/core/ports"
)

// DefaultMaxDepth is how deep a message may nest unless Options say otherwise.
const DefaultMaxDepth = 128

// Options of a Conn. The zero value is a server end with the defaults.
type Options struct {
	// Client marks the end that sends initialize: its peer's requests need no
	// initialize first, and a frame that is no message is reported, not
	// answered, for agents print things they should not.
	Client   bool
	IDs      *IDs           // ids of our requests; default: numbers of this connection
	Observer ports.Observer // gets domain.Trouble; nil: nobody
	Dialect  Dialect        // until SetDialect
	MaxDepth int            // nesting of inbound messages; default DefaultMaxDepth
	MaxTasks int            // requests and notification tasks at a time; default 4096
	// QueueBytes and QueueFrames bound what waits to be written; defaults
	// 1 MiB and 8192.
	QueueBytes  int
	QueueFrames int
	// Linger is how long requests may go on after the peer's EOF before they
	// are cancelled; default 1.5 s.
	Linger time.Duration
	// Drain is how long cancelled requests may take to end and the last
	// answers to reach a peer that does not read; default 1 s. Together the
	// two stay below the three seconds a process has after its input ended.
	Drain time.Duration
}

func (o *Options) setDefaults() {
	if o.IDs == nil {
		o.IDs = NewIDs("")
	}
	set := func(n *int, to int) {
		if *n <= 0 {
			*n = to
		}
	}
	set(&o.MaxDepth, DefaultMaxDepth)
	set(&o.MaxTasks, 4096)
	set(&o.QueueBytes, 1<<20)
	set(&o.QueueFrames, 8192)
	if o.Linger <= 0 {
		o.Linger = 1500 * time.Millisecond
	}
	if o.Drain <= 0 {
		o.Drain = time.Second
	}
}
