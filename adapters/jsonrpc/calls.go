package jsonrpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
)

// IDs numbers the requests we send. One generator may serve many connections,
// so that an id is never used twice in a process.
type IDs struct {
	prefix string
	n      atomic.Uint64
}

// NewIDs returns a generator of the strings prefix1, prefix2 and so on, or,
// if prefix is empty, of plain numbers.
func NewIDs(prefix string) *IDs { return &IDs{prefix: prefix} }

// Next returns an id no earlier call returned.
func (s *IDs) Next() ID {
	n := s.n.Add(1)
	if s.prefix == "" {
		return ID(strconv.FormatUint(n, 10))
	}
	b := AppendString(make([]byte, 0, len(s.prefix)+24), s.prefix)
	b = strconv.AppendUint(b[:len(b)-1], n, 10)
	return ID(append(b, '"'))
}

// answer is how one of our requests ended.
type answer struct {
	result json.RawMessage
	err    error
}

// maxRetired is how many ids of given-up calls are remembered, so that their
// late answers pass without a word.
const maxRetired = 1024

// calls are the requests we sent and wait for.
type calls struct {
	mu      sync.Mutex
	pending map[string]chan answer // by ID.key
	retired map[string]bool
	order   []string // of retired, oldest first
	ended   error    // set when no answer can come any more
}

func newCalls() *calls {
	return &calls{pending: map[string]chan answer{}, retired: map[string]bool{}}
}

// add registers a call before it is sent.
func (c *calls) add(id ID) (chan answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, c.ended
	}
	done := make(chan answer, 1)
	c.pending[id.key()] = done
	return done, nil
}

// drop forgets a call that was never sent.
func (c *calls) drop(id ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id.key())
}

// retire gives a call up. It reports false if the answer was there first.
func (c *calls) retire(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := id.key()
	if c.pending[key] == nil {
		return false
	}
	delete(c.pending, key)
	c.retired[key] = true
	if c.order = append(c.order, key); len(c.order) > maxRetired {
		delete(c.retired, c.order[0])
		c.order = c.order[1:]
	}
	return true
}

// settle hands an answer to its call. It reports false for an id that was
// never sent or was answered before; an answer to a retired call is expected.
func (c *calls) settle(id ID, a answer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := id.key()
	if done := c.pending[key]; done != nil {
		delete(c.pending, key)
		done <- a
		return true
	}
	known := c.retired[key]
	delete(c.retired, key)
	return known
}

// end fails every call, and those to come.
func (c *calls) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = err
	}
	for key, done := range c.pending {
		delete(c.pending, key)
		done <- answer{err: c.ended}
	}
}

// Call sends a request and waits for its answer. params goes out as
// Reply.Result does. The error is a *RemoteError if the peer answered with
// one, a BadAnswerError if its answer made no sense, the cause of ctx when
// that ends, and domain.Disconnected when no answer can come any more.
//
// When ctx ends first, the peer is told with $/cancel_request and its late
// answer is dropped.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	result, err := c.call(ctx, method, params)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", method, err)
	}
	return result, nil
}

func (c *Conn) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id := c.opts.IDs.Next()
	done, err := c.calls.add(id)
	if err != nil {
		return nil, err
	}
	if err := c.sendCall(ctx, id, method, params); err != nil {
		c.calls.drop(id)
		return nil, err
	}
	select {
	case a := <-done:
		return a.result, a.err
	case <-c.w.dead:
		c.calls.end(c.w.err)
		a := <-done
		return a.result, a.err
	case <-ctx.Done():
	}
	if !c.calls.retire(id) {
		a := <-done
		return a.result, a.err
	}
	c.queueLater([]byte(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":` + string(id) + `}}`))
	return nil, context.Cause(ctx)
}

// handleResponse settles the call a response belongs to. Nothing about a
// response is ever answered: two strict peers would never stop.
func (c *Conn) handleResponse(m Message, bad error) {
	a := answer{result: m.Result}
	switch {
	case bad != nil:
		a = answer{err: &BadAnswerError{bad}}
	case m.Error != nil:
		a = answer{err: m.Error}
	}
	if m.ID != "" && c.calls.settle(m.ID, a) {
		return
	}
	c.trouble("jsonrpc: response to no request of ours", cmp.Or(a.err, errors.New("the id is unknown")))
}

// BadAnswerError says that the peer answered a request with something that is
// no response, such as a result and an error at once.
type BadAnswerError struct{ Err error }

// Error says what was wrong.
func (e *BadAnswerError) Error() string { return "bad answer: " + e.Err.Error() }

// Unwrap returns what was wrong.
func (e *BadAnswerError) Unwrap() error { return e.Err }
