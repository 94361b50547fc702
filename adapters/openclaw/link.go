package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// link is one connection to a Gateway, past its handshake. serve reads it on
// one goroutine and writes it on another; the rest may be used from any.
type link struct {
	frames jsonrpc.Frames
	hello  hello

	out chan []byte // frames for the writer, one at a time

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
	return &link{frames: frames, calls: map[string]chan incoming{}, out: make(chan []byte), over: make(chan struct{})}
}

// answerLimit is how long a Gateway may take to answer what it can answer at
// once. A machine under load takes its time.
const answerLimit = 2 * time.Minute

// errSilent is why a request is given up.
var errSilent = errors.New("the gateway did not answer within two minutes")

// call asks the Gateway and waits for the answer, until ctx ends, the
// connection is lost, or the Gateway has been silent for too long.
func (l *link) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errSilent)
	defer cancel()
	return l.ask(ctx, method, params)
}

// ask is call for what may take any time. Once ctx has ended it does not wait
// for a Gateway that reads slowly, either; the request may be on its way then.
func (l *link) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
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
	select {
	case l.out <- frame:
	case <-l.over:
		return nil, l.why()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case in := <-answer:
		if in.ok {
			return in.payload, nil
		}
		return nil, in.refusal()
	case <-l.over:
		return nil, l.why()
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

// write writes until the link is over.
func (l *link) write() {
	for {
		select {
		case frame := <-l.out:
			if err := l.frames.Write(frame); err != nil {
				_ = l.lost(err)
				return
			}
		case <-l.over:
			return
		}
	}
}

func (l *link) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// why is why the link is over.
func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// serve reads and writes until the connection is over and says why. Events go
// to on, one at a time; gap is set when some before this one were left out.
func (l *link) serve(on func(in incoming, gap bool)) error {
	var writer sync.WaitGroup
	defer writer.Wait() // every way out of here ends the link
	writer.Go(l.write)
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
