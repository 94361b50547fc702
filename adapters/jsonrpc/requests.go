package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/berth-dev/berth/core/domain"
)

// request is one inbound request between admission and response.
type request struct {
	id     ID
	method string
	opens  bool
	ctx    context.Context
	cancel context.CancelCauseFunc
	queued chan struct{} // closed when the response and what follows it are queued, or never will be
}

// requests are the inbound requests in flight, found by id.
type requests struct {
	mu   sync.Mutex
	byID map[string]*request
}

// add registers r, or reports false if its id is taken. Several requests may
// carry the id null; none of those can be cancelled by id.
func (q *requests) add(r *request) bool {
	if r.id == NullID {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	key := r.id.key()
	if q.byID[key] != nil {
		return false
	}
	q.byID[key] = r
	return true
}

func (q *requests) remove(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if key := r.id.key(); q.byID[key] == r {
		delete(q.byID, key)
	}
}

// cancel cancels the request with this id, if there is one.
func (q *requests) cancel(id ID) {
	q.mu.Lock()
	r := q.byID[id.key()]
	q.mu.Unlock()
	if r != nil {
		r.cancel(domain.RequestCancelled)
	}
}

// handleRequest runs on R: it refuses a request or admits it and starts its
// task.
func (c *Conn) handleRequest(m Message) {
	// What comes before initialize comes too early, whether there is such a
	// method or not: which there are is settled by initialize.
	method, ok := c.handler.Method(m.Method)
	if e := c.gate(method.Flags); e != nil {
		c.refuse(m.ID, e)
		return
	}
	if !ok || method.Admit == nil {
		c.refuse(m.ID, methodNotFound(m.Method))
		return
	}
	params, ok := objectParams(m.Params)
	if !ok {
		c.refuse(m.ID, &Error{CodeInvalidParams, "INVALID_PARAMS", "Parameters must be a JSON object", nil})
		return
	}
	if !c.work.enter() {
		c.refuse(m.ID, tooManyRequests(c.opts.MaxTasks))
		return
	}
	r := &request{id: m.ID, method: m.Method, opens: method.Flags&Opens != 0, queued: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(context.WithValue(c.ctx, requestKey{}, r))
	if !c.requests.add(r) {
		c.work.leave()
		r.cancel(nil)
		c.refuse(m.ID, &Error{CodeInvalidRequest, "DUPLICATE_ID", "A request with this id is still running", nil})
		return
	}
	task, err := c.admit(r.ctx, method.Admit, params)
	if err != nil {
		c.requests.remove(r)
		c.work.leave()
		c.refuse(m.ID, c.wireError(r.ctx, m.Method, err))
		r.cancel(nil)
		return
	}
	go c.run(r, task)
	if r.opens && !c.opts.Client {
		// The one time R waits: nothing may overtake the answer to initialize,
		// and its outcome decides what the next message may be.
		select {
		case <-r.queued:
		case <-c.ctx.Done():
		}
	}
}

// requestKey finds the request in its own context.
type requestKey struct{}

// Answered returns a channel that is closed when the response of the request
// that ctx belongs to was queued, and what Reply.Then sends behind it, or never
// will be. A task that must answer after another request waits for it. Outside
// a request the channel is nil.
func Answered(ctx context.Context) <-chan struct{} {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r.queued
	}
	return nil
}

// gate checks a method's place in the life of the connection.
func (c *Conn) gate(f Flags) *Error {
	switch {
	case c.opts.Client:
	case c.opened.Load() && f&Opens != 0:
		return &Error{CodeInvalidRequest, "ALREADY_INITIALIZED", "This connection is already initialized", nil}
	case !c.opened.Load() && f&(Opens|Early) == 0:
		return &Error{CodeInvalidRequest, "NOT_INITIALIZED", "Send initialize before any other request", nil}
	}
	return nil
}

// objectParams returns params, with nothing meaning the empty object.
func objectParams(raw json.RawMessage) (json.RawMessage, bool) {
	switch {
	case raw == nil, raw[0] == 'n':
		return json.RawMessage(`{}`), true
	case raw[0] == '{':
		return raw, true
	}
	return nil, false
}

// admit calls an Admit; its panic is that message's error only.
func (c *Conn) admit(ctx context.Context, admit Admit, params json.RawMessage) (task Task, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
	}()
	return admit(ctx, params)
}

// errExited is the error of a task whose goroutine was made to exit.
var errExited = errors.New("the task's goroutine exited")

// run is T, the goroutine of one admitted request: it performs the task,
// queues the one response and then does what was to follow it.
func (c *Conn) run(r *request, task Task) {
	defer c.work.leave()
	var reply Reply
	err := errExited
	defer func() { c.respond(r, reply, err) }()
	reply, err = c.perform(r.ctx, task)
}

func (c *Conn) respond(r *request, reply Reply, err error) {
	buf := c.getBuf()
	frame := *buf
	if err == nil {
		frame, err = c.encode(frame, r.id, reply.Result)
	}
	if err != nil {
		frame = appendFailure(frame[:0], r.id, c.wireError(r.ctx, r.method, err))
	}
	if r.opens && err == nil {
		c.opened.Store(true)
	}
	// The id is free before the peer can see the answer: it may use it again.
	c.requests.remove(r)
	// An answer is owed even if its request was cancelled; it waits for room
	// as long as the transport lives.
	queueErr := c.w.put(context.WithoutCancel(r.ctx), frame)
	c.putBuf(buf, frame)
	defer close(r.queued)
	r.cancel(nil)
	if err == nil && queueErr == nil && reply.Then != nil {
		if _, err := c.perform(c.ctx, func(ctx context.Context) (Reply, error) {
			reply.Then(ctx)
			return Reply{}, nil
		}); err != nil {
			c.trouble("jsonrpc: after "+r.method, err)
		}
	}
}

// encode appends a response; a result that panics while it is encoded is an
// error like one that cannot be encoded.
func (c *Conn) encode(dst []byte, id ID, result any) (frame []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			frame, err = dst, &PanicError{v, debug.Stack()}
		}
	}()
	return appendResult(dst, id, result)
}

// perform runs a task; its panic is an error of that task only.
func (c *Conn) perform(ctx context.Context, task Task) (reply Reply, err error) {
	if task == nil {
		return Reply{}, nil
	}
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
	}()
	return task(ctx)
}

// PanicError is the panic of a handler, as the observer sees it.
type PanicError struct {
	Value any
	Stack []byte
}

// Error gives the value; the stack is a field.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// handleNotification runs on R. Nothing about a notification is answered.
func (c *Conn) handleNotification(m Message) {
	if m.Method == "$/cancel_request" {
		for name, v := range Members(m.Params) {
			if id, err := parseID(v); name == "requestId" && err == nil && id != NullID {
				c.requests.cancel(id)
			}
		}
		return
	}
	method, ok := c.handler.Method(m.Method)
	if !ok || method.Notify == nil || c.gate(method.Flags) != nil {
		return
	}
	params, ok := objectParams(m.Params)
	where := func() string { return "jsonrpc: notification " + m.Method }
	if !ok {
		c.trouble(where(), errors.New("parameters must be a JSON object"))
		return
	}
	task, err := c.admit(c.ctx, method.Notify, params)
	if err != nil {
		c.trouble(where(), err)
	}
	if err != nil || task == nil {
		return
	}
	if !c.work.enter() {
		c.trouble(where(), tooManyRequests(c.opts.MaxTasks))
		return
	}
	go func() {
		defer c.work.leave()
		if _, err := c.perform(c.ctx, task); err != nil {
			c.trouble(where(), err)
		}
	}()
}

// refuse queues an error answer on behalf of R, which never waits for room.
// Few answers with id null may wait; what a peer that does not read has coming
// to it beyond that is dropped and said once. An answer that names a request
// is never dropped: a peer that lets thousands of them pile up loses the
// connection.
func (c *Conn) refuse(id ID, e *Error) {
	frame := appendFailure(nil, id, e)
	if c.w.try(frame) {
		return
	}
	waiting, limit := &c.refusals, int64(c.opts.MaxTasks)
	if id == NullID {
		waiting, limit = &c.anonymous, maxAnonymous
	}
	switch {
	case waiting.Load() < limit:
		if !c.work.add() {
			return
		}
		waiting.Add(1)
		go func() {
			defer c.work.leave()
			defer waiting.Add(-1)
			_ = c.w.put(context.Background(), frame) // fails only with the connection
		}()
	case id != NullID:
		if !c.flooded {
			c.flooded = true
			c.trouble("jsonrpc: peer sends and does not read", e)
			c.Close(domain.Disconnected)
		}
	case !c.dropping:
		c.dropping = true
		c.trouble("jsonrpc: error answers dropped", e)
	}
}

// maxAnonymous is how many error answers with id null may wait for room.
const maxAnonymous = 64

// Observed marks an error that the observer was told already, so that it is
// not told twice. It is answered like any other. A nil err stays nil.
func Observed(err error) error {
	if err == nil {
		return nil
	}
	return &observedError{err}
}

type observedError struct{ err error }

func (e *observedError) Error() string { return e.err.Error() }
func (e *observedError) Unwrap() error { return e.err }

// wireError maps a handler's error to the wire and shows the observer what
// the peer is not told, and what the peer can do nothing about: a store that
// does not work.
func (c *Conn) wireError(ctx context.Context, method string, err error) *Error {
	e := c.Dialect().WireError(abandoned(ctx, err))
	var told *observedError
	switch e.Reason {
	case wireOf(domain.Internal).reason, wireOf(domain.StoreUnavailable).reason, wireOf(domain.StoreCorrupt).reason:
		if !errors.As(err, &told) {
			c.trouble("jsonrpc: "+method, err)
		}
	}
	return e
}

func methodNotFound(method string) *Error {
	return &Error{CodeMethodNotFound, "METHOD_NOT_FOUND", "Method not found", []domain.Detail{{Key: "method", Value: method}}}
}

func tooManyRequests(limit int) *Error {
	return &Error{
		CodeInternal, "TOO_MANY_REQUESTS",
		fmt.Sprintf("More than %d requests are running on this connection; wait for answers first", limit),
		[]domain.Detail{{Key: "limit", Value: limit}},
	}
}
