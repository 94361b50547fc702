package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// rig is a Conn with the test at the other end of two pipes.
type rig struct {
	t      testing.TB
	conn   *Conn
	in     *io.PipeWriter // what the conn reads
	out    *io.PipeReader // what it writes; lines are taken from it by recv
	lines  *bufio.Reader
	served chan error
	troubles
}

// troubles records what the observer was told.
type troubles struct {
	mu   sync.Mutex
	seen []domain.Trouble
}

func (s *troubles) Observe(_ context.Context, e domain.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, e.(domain.Trouble))
}

func (s *troubles) all() []domain.Trouble {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]domain.Trouble(nil), s.seen...)
}

// serve starts a Conn with the handler; ctx ends with the test unless given.
func serve(t testing.TB, h Handler, change ...func(*Options)) *rig {
	return serveIn(t.Context(), t, h, change...)
}

func serveIn(ctx context.Context, t testing.TB, h Handler, change ...func(*Options)) *rig {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	r := &rig{t: t, in: inW, out: outR, lines: newReader(outR), served: make(chan error, 1)}
	opts := Options{Observer: &r.troubles, IDs: NewIDs("zc-out-")}
	for _, f := range change {
		f(&opts)
	}
	r.conn = NewConn(NewStdio(inR, outW, 0), opts)
	go func() { r.served <- r.conn.Serve(ctx, h) }()
	return r
}

// send writes lines to the conn in one write.
func (r *rig) send(lines ...string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, strings.Join(lines, "\n")+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

// recv returns the next line the conn wrote, or "" at the end.
func (r *rig) recv() string {
	r.t.Helper()
	line, err := r.lines.ReadString('\n')
	if err != nil && line != "" {
		r.t.Fatalf("the last line is cut short: %q", line)
	}
	return strings.TrimSuffix(line, "\n")
}

// want checks the next lines the conn wrote.
func (r *rig) want(lines ...string) {
	r.t.Helper()
	for _, want := range lines {
		if got := r.recv(); got != want {
			r.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// finish ends the input, demands that nothing more comes and that Serve ends
// well.
func (r *rig) finish() {
	r.t.Helper()
	_ = r.in.Close()
	r.want("")
	if err := <-r.served; err != nil {
		r.t.Errorf("Serve: %v", err)
	}
}

func call(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
}

func note(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

func result(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
}

func failure(id string, code int, message, reason string, data ...string) string {
	more := ""
	for _, d := range data {
		more += "," + d
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q,"data":{"reason":%q%s}}}`, id, code, message, reason, more)
}

// methods returns a table with an initialize that accepts everything, and
// what is given.
func methods(more Methods) Methods {
	m := Methods{"initialize": {Flags: Opens, Admit: func(context.Context, json.RawMessage) (Task, error) {
		return func(context.Context) (Reply, error) {
			return Reply{Result: json.RawMessage(`{"protocolVersion":1}`)}, nil
		}, nil
	}}}
	for name, d := range more {
		m[name] = d
	}
	return m
}

// open initializes a rig.
func (r *rig) open() *rig {
	r.t.Helper()
	r.send(call("0", "initialize", `{"protocolVersion":1}`))
	r.want(result("0", `{"protocolVersion":1}`))
	return r
}

// task makes a Method out of a Task.
func task(f func(ctx context.Context) (any, error)) Method {
	return Method{Admit: func(context.Context, json.RawMessage) (Task, error) {
		return func(ctx context.Context) (Reply, error) {
			v, err := f(ctx)
			return Reply{Result: v}, err
		}, nil
	}}
}

// untilCancelled is a task that ends with its context's cause.
var untilCancelled = func(ctx context.Context) (any, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 1<<20) }
