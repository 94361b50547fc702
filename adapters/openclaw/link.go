package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// link is one connection to a Gateway, past its handshake. serve reads it on
// one goroutine; the rest may be used from any.
type link struct {
	frames jsonrpc.Frames
	hello  hello

	writing sync.Mutex // held while a frame is written

	mu    sync.Mutex
	calls map[string]chan incoming
	last  int64 // request ids
	dead  error // why nothing is answered any more

	over chan struct{} // closed together with setting dead
	seq  int64         // of the last event; of the reader
}

// errLost is in the chain of every error that means that nobody knows whether
// the Gateway got the request.
var errLost = errors.New("the connection to the gateway was lost")

func newLink(frames jsonrpc.Frames) *link {
	return &link{frames: frames, calls: map[string]chan incoming{}, over: make(chan struct{})}
}

// call asks the Gateway and waits for the answer, until ctx ends or the
// connection is lost.
func (l *link) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	l.mu.Lock()
	if l.dead != nil {
		err := l.dead
		l.mu.Unlock()
		return nil, err
	}
	l.last++
	id := strconv.FormatInt(l.last, 10)
	answer := make(chan incoming, 1)
	l.calls[id] = answer
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.calls, id)
		l.mu.Unlock()
	}()
	frame, err := appendRequest(nil, id, method, params)
	if err != nil {
		return nil, err
	}
	if most := l.hello.maxPayload; most > 0 && len(frame) > most {
		return nil, &tooLongError{len(frame), most}
	}
	if err := l.send(frame); err != nil {
		return nil, l.lost(err)
	}
	select {
	case in := <-answer:
		if in.ok {
			return in.payload, nil
		}
		if in.err == nil {
			in.err = &RPCError{Code: "UNAVAILABLE", Message: "the gateway gave no reason"}
		}
		return nil, in.err
	case <-l.over:
		l.mu.Lock()
		defer l.mu.Unlock()
		return nil, l.dead
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// tooLongError says that a request was not sent, because the Gateway would
// end the connection over it.
type tooLongError struct{ size, limit int }

// Error names both sizes.
func (e *tooLongError) Error() string {
	return fmt.Sprintf("a request of %d bytes; the gateway takes %d", e.size, e.limit)
}

func (l *link) send(frame []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.frames.Write(frame)
}

// serve reads until the connection is over and says why. Events go to on, one
// at a time; gap is set when some before this one were left out.
func (l *link) serve(on func(in incoming, gap bool)) error {
	for {
		frame, err := l.frames.Read()
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			on(incoming{}, true)
			continue
		case errors.Is(err, io.EOF):
			return l.lost(errors.New("the gateway closed it"))
		case err != nil:
			return l.lost(err)
		}
		in, err := parse(frame)
		switch {
		case err != nil:
			return l.lost(err)
		case in.kind == "res":
			l.mu.Lock()
			waiting := l.calls[in.id]
			delete(l.calls, in.id)
			l.mu.Unlock()
			if waiting != nil {
				waiting <- in
			}
		case in.kind == "event":
			gap := in.seq > 0 && l.seq > 0 && in.seq != l.seq+1
			if in.seq > 0 {
				l.seq = in.seq
			}
			on(in, gap)
		}
	}
}

// lost ends the link: it closes the socket and fails what waits. It returns
// the reason that was first.
func (l *link) lost(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead == nil {
		l.dead = fmt.Errorf("%w: %w", errLost, err)
		close(l.over)
		_ = l.frames.Close()
	}
	return l.dead
}

// close ends the link in an orderly way.
func (l *link) close() { _ = l.lost(errors.New("it was closed here")) }
