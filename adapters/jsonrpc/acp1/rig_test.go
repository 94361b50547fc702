package acp1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// wire is the transport between a test, which is the client, and Serve. It
// lives in memory, so that a bubble knows when everything has come to rest.
type wire struct {
	in     chan []byte // to the agent; closed by the client's EOF
	out    chan []byte // from the agent
	closed chan struct{}
	once   sync.Once
}

func newWire() *wire {
	return &wire{in: make(chan []byte), out: make(chan []byte, 1<<16), closed: make(chan struct{})}
}

func (w *wire) Read() ([]byte, error) {
	select {
	case f, ok := <-w.in:
		if !ok {
			return nil, io.EOF
		}
		return f, nil
	case <-w.closed:
		return nil, io.ErrClosedPipe
	}
}

func (w *wire) Write(frame []byte) error {
	select {
	case w.out <- append([]byte(nil), frame...):
		return nil
	case <-w.closed:
		return io.ErrClosedPipe
	}
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

// rig is a client of a served connection. Every frame that the agent sends is
// checked strictly.
type rig struct {
	t      *testing.T
	world  *world
	wire   *wire
	check  *Checker
	ended  chan error
	queue  [][]byte // frames read and not yet asked for
	eof    bool
	last   int           // id of the newest request
	gone   chan struct{} // closed when Serve has returned
	breaks bool          // the transport is to break, so that Serve fails
	// passed are the responses that came so far.
	passed map[string]jsonrpc.Message
}

// run runs a test in a bubble with a connection that is not initialized.
func run(t *testing.T, w *world, fn func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, world: w, wire: newWire(), check: NewChecker(), ended: make(chan error, 1), gone: make(chan struct{}),
			passed: map[string]jsonrpc.Message{}}
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			defer close(r.gone)
			r.ended <- Serve(ctx, r.wire, w.params())
		}()
		fn(r)
		r.end()
		if err := <-r.ended; (err != nil) != r.breaks {
			t.Errorf("Serve: %v", err)
		}
		cancel(nil)
		for range r.drain() {
		}
	})
}

// open is run with a connection of the acp dialect.
func open(t *testing.T, w *world, fn func(*rig)) {
	t.Helper()
	run(t, w, func(r *rig) {
		r.initialize(`{}`)
		fn(r)
	})
}

// openZeroclaw is run with a connection of the zeroclaw dialect.
func openZeroclaw(t *testing.T, w *world, fn func(*rig)) {
	t.Helper()
	run(t, w, func(r *rig) {
		r.ok("initialize", `{}`)
		fn(r)
	})
}

// initialize opens the connection with these client capabilities.
func (r *rig) initialize(capabilities string) object {
	r.t.Helper()
	return r.ok("initialize", `{"protocolVersion":1,"clientCapabilities":`+capabilities+
		`,"clientInfo":{"name":"quill","version":"4.1"}}`)
}

// end ends the client's side.
func (r *rig) end() {
	if !r.eof {
		r.eof = true
		close(r.wire.in)
	}
}

// send sends one frame.
func (r *rig) send(frame string) {
	r.t.Helper()
	r.check.Client([]byte(frame))
	select {
	case r.wire.in <- []byte(frame):
	case <-r.wire.closed:
		r.t.Fatalf("the agent closed the connection before %s", frame)
	}
}

// start sends a request and returns its id.
func (r *rig) start(method, params string) string {
	r.t.Helper()
	r.last++
	id := strconv.Itoa(r.last)
	if params != "" {
		params = `,"params":` + params
	}
	r.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"` + params + `}`)
	return id
}

func (r *rig) notify(method, params string) {
	r.t.Helper()
	r.send(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
}

// drain waits until nothing moves and returns the frames that were sent and
// not asked for, all of them checked.
func (r *rig) drain() [][]byte {
	r.t.Helper()
	synctest.Wait()
	for {
		select {
		case f := <-r.wire.out:
			if err := r.check.Agent(f); err != nil {
				r.t.Errorf("frame %s: %v", f, err)
			}
			r.queue = append(r.queue, f)
		default:
			all := r.queue
			r.queue = nil
			return all
		}
	}
}

// next returns the next frame.
func (r *rig) next() jsonrpc.Message {
	r.t.Helper()
	all := r.drain()
	if len(all) == 0 {
		r.t.Fatal("the agent sent nothing")
	}
	r.queue = all[1:]
	m, err := jsonrpc.Parse(all[0])
	if err != nil {
		r.t.Fatalf("frame %s: %v", all[0], err)
	}
	return m
}

// quiet demands that nothing was sent.
func (r *rig) quiet() {
	r.t.Helper()
	for _, f := range r.drain() {
		r.t.Errorf("unexpected frame: %s", f)
	}
}

// answer returns the response to request id and what was sent before it.
func (r *rig) answer(id string) (jsonrpc.Message, []jsonrpc.Message) {
	r.t.Helper()
	var before []jsonrpc.Message
	for {
		m := r.next()
		if m.Kind == jsonrpc.Response {
			r.passed[string(m.ID)] = m
			if string(m.ID) == id {
				return m, before
			}
		}
		before = append(before, m)
	}
}

// ok makes a call that must have a result.
func (r *rig) ok(method, params string) object {
	r.t.Helper()
	m, _ := r.answer(r.start(method, params))
	if m.Error != nil {
		r.t.Fatalf("%s: error %d %s %s", method, m.Error.Code, m.Error.Message, m.Error.Data)
	}
	return objectOf(m.Result)
}

// fails makes a call that must fail with code, and returns the error's data.
func (r *rig) fails(code int, method, params string) *jsonrpc.RemoteError {
	r.t.Helper()
	m, _ := r.answer(r.start(method, params))
	if m.Error == nil {
		r.t.Fatalf("%s %s: result %s, want error %d", method, params, m.Result, code)
	}
	if m.Error.Code != code {
		r.t.Errorf("%s %s: error %d %q %s, want %d", method, params, m.Error.Code, m.Error.Message, m.Error.Data, code)
	}
	return m.Error
}

// newSession opens a session and returns its id.
func (r *rig) newSession() string {
	r.t.Helper()
	return r.ok(methodNew, `{"cwd":"/proj","mcpServers":[]}`).text("sessionId")
}

// updatesIn returns the updates among messages.
func updatesIn(messages []jsonrpc.Message) []object {
	var list []object
	for _, m := range messages {
		if m.Method == methodUpdate {
			list = append(list, objectOf(m.Params).in("update"))
		}
	}
	return list
}

// prompt sends one session/prompt with a text.
func (r *rig) prompt(id, text string) string {
	r.t.Helper()
	return r.start("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text))
}

// respond answers a request of the agent.
func (r *rig) respond(id jsonrpc.ID, result string) {
	r.t.Helper()
	r.send(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

func (o object) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// want compares a JSON value with its text.
func want(t *testing.T, what string, got json.RawMessage, expected string) {
	t.Helper()
	if string(got) != expected {
		t.Errorf("%s = %s, want %s", what, got, expected)
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q does not say %q", text, p)
		}
	}
}

// errProvider is a failure nobody coded.
var errProvider = errors.New("dial tcp 10.0.0.7: secret detail")

func elementsOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	for el := range jsonrpc.Elements(raw) {
		list = append(list, el)
	}
	return list
}

// lateAnswer returns a response that may have arrived before one already
// asked for.
func (r *rig) lateAnswer(id string) jsonrpc.Message {
	r.t.Helper()
	if m, ok := r.passed[id]; ok {
		return m
	}
	m, _ := r.answer(id)
	return m
}

// knows reports whether a response has told the client of a session.
func (r *rig) knows(id string) bool {
	for _, m := range r.passed {
		if objectOf(m.Result).text("sessionId") == id {
			return true
		}
	}
	return false
}
