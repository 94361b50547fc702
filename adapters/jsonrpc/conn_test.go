package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func TestConn_BeforeInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var noted atomic.Int32
		echo := task(func(context.Context) (any, error) { return nil, nil })
		early := echo
		early.Flags = Early
		r := serve(t, methods(Methods{
			"echo":  echo,
			"early": early,
			"note":  {Notify: func(context.Context, json.RawMessage) (Task, error) { noted.Add(1); return nil, nil }},
		}))
		r.send(note("note", `{}`), call("1", "echo", `{}`))
		r.want(failure("1", -32600, "Send initialize before any other request", "NOT_INITIALIZED"))
		r.send(call("2", "early", `{}`), call("3", "none", `{}`))
		got := []string{r.recv(), r.recv()}
		for _, want := range []string{result("2", `{}`), failure("3", -32600, "Send initialize before any other request", "NOT_INITIALIZED")} {
			if got[0] != want && got[1] != want {
				t.Errorf("got %q, want %s", got, want)
			}
		}
		r.open()
		r.send(note("note", `{}`), call("4", "echo", `{}`))
		r.want(result("4", `{}`))
		r.send(call("5", "initialize", `{}`))
		r.want(failure("5", -32600, "This connection is already initialized", "ALREADY_INITIALIZED"))
		r.finish()
		if noted.Load() != 1 {
			t.Errorf("%d notifications were handled, want the one after initialize", noted.Load())
		}
	})
}

// TestConn_InitializeIsWaitedFor sends a request together with a slow
// initialize: it must see the connection initialized, in the right dialect.
func TestConn_InitializeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conn *Conn
		m := methods(Methods{"gone": task(func(context.Context) (any, error) { return nil, domain.NoSession("s") })})
		m["initialize"] = Method{Flags: Opens, Admit: func(_ context.Context, params json.RawMessage) (Task, error) {
			return func(context.Context) (Reply, error) {
				time.Sleep(time.Second)
				if string(params) == `{"bad":true}` {
					return Reply{}, domain.Errorf(domain.InvalidArgument, "bad version")
				}
				conn.SetDialect(Zeroclaw)
				return Reply{}, nil
			}, nil
		}}
		r := serve(t, m)
		conn = r.conn
		r.send(call("1", "initialize", `{"bad":true}`), call("2", "gone", `{}`), call("3", "initialize", `{}`), call("4", "gone", `{}`))
		r.want(
			failure("1", -32602, "bad version", "INVALID_PARAMS"),
			failure("2", -32600, "Send initialize before any other request", "NOT_INITIALIZED"),
			result("3", `{}`),
			failure("4", -32000, "Resource not found: session s", "SESSION_NOT_FOUND", `"sessionId":"s"`))
		r.finish()
	})
}

func TestConn_Params(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var noted []string
		var mu sync.Mutex
		r := serve(t, methods(Methods{
			"echo": {Admit: func(_ context.Context, p json.RawMessage) (Task, error) {
				return func(context.Context) (Reply, error) { return Reply{Result: p}, nil }, nil
			}},
			"note": {Notify: func(_ context.Context, p json.RawMessage) (Task, error) {
				mu.Lock()
				defer mu.Unlock()
				noted = append(noted, string(p))
				return nil, nil
			}},
			"nothing": {Admit: func(context.Context, json.RawMessage) (Task, error) { return nil, nil }},
		})).open()
		for _, tt := range []struct{ send, want string }{
			{`{"jsonrpc":"2.0","id":1,"method":"echo"}`, result("1", `{}`)},
			{call("2", "echo", `null`), result("2", `{}`)},
			{call("3", "echo", `{"a" : [1]}`), result("3", `{"a" : [1]}`)},
			{call("4", "echo", `[1]`), failure("4", -32602, "Parameters must be a JSON object", "INVALID_PARAMS")},
			{call("5", "echo", `"x"`), failure("5", -32602, "Parameters must be a JSON object", "INVALID_PARAMS")},
			{call("6", "note", `{}`), failure("6", -32601, "Method not found", "METHOD_NOT_FOUND", `"method":"note"`)},
			{call("7", "nothing", `{}`), result("7", `{}`)},
			{call("8", "$/cancel_request", `{}`), failure("8", -32601, "Method not found", "METHOD_NOT_FOUND", `"method":"$/cancel_request"`)},
		} {
			r.send(tt.send)
			r.want(tt.want)
		}
		r.send(note("note", `{"a":1}`), note("note", `[1]`), note("echo", `{}`), `{"jsonrpc":"2.0","method":"note"}`)
		r.finish()
		if got := strings.Join(noted, " "); got != `{"a":1} {}` {
			t.Errorf("notifications with %s", got)
		}
		if len(r.all()) != 1 {
			t.Errorf("the observer saw %v, want the notification with a list", r.all())
		}
	})
}

// TestConn_UpdatesPrecedeTheResponse is the order rule, with a reader that
// keeps the queue full.
func TestConn_UpdatesPrecedeTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conn *Conn
		const updates = 500
		r := serve(t, methods(Methods{"prompt": {Admit: func(context.Context, json.RawMessage) (Task, error) {
			return func(ctx context.Context) (Reply, error) {
				for i := range updates {
					if err := conn.Notify(ctx, "update", map[string]int{"n": i}); err != nil {
						return Reply{}, err
					}
				}
				return Reply{Result: json.RawMessage(`{"done":true}`), Then: func(ctx context.Context) {
					if err := conn.Notify(ctx, "after", nil); err != nil {
						t.Error(err)
					}
				}}, nil
			}, nil
		}}}), func(o *Options) { o.QueueFrames = 4 }).open()
		conn = r.conn
		r.send(call("1", "prompt", `{}`))
		for i := range updates {
			r.want(note("update", fmt.Sprintf(`{"n":%d}`, i)))
			time.Sleep(5 * time.Millisecond)
		}
		r.want(result("1", `{"done":true}`), note("after", `{}`))
		r.finish()
	})
}

// TestConn_CancelBehindPrompt sends a prompt and its cancel in one write, ten
// thousand times: the cancel must always find the prompt, however the
// scheduler feels.
func TestConn_CancelBehindPrompt(t *testing.T) {
	var mu sync.Mutex
	turns := map[string]context.CancelCauseFunc{}
	r := serve(t, methods(Methods{
		"prompt": {Admit: func(ctx context.Context, params json.RawMessage) (Task, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			mu.Lock()
			turns[string(params)] = cancel
			mu.Unlock()
			return func(context.Context) (Reply, error) {
				<-ctx.Done()
				if context.Cause(ctx) != domain.CancelledByClient {
					return Reply{}, context.Cause(ctx)
				}
				return Reply{Result: json.RawMessage(`{"stopReason":"cancelled"}`)}, nil
			}, nil
		}},
		"cancel": {Notify: func(_ context.Context, params json.RawMessage) (Task, error) {
			mu.Lock()
			defer mu.Unlock()
			if turns[string(params)] == nil {
				return nil, errors.New("no turn to cancel")
			}
			turns[string(params)](domain.CancelledByClient)
			delete(turns, string(params))
			return nil, nil
		}},
	})).open()
	for i := range 10_000 {
		session := fmt.Sprintf(`{"sessionId":"%d"}`, i)
		r.send(call("1", "prompt", session), note("cancel", session))
		r.want(result("1", `{"stopReason":"cancelled"}`))
	}
	r.finish()
	if len(r.all()) != 0 {
		t.Errorf("the observer saw %v", r.all()[0])
	}
}

func TestConn_CancelRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, methods(Methods{
			"wait": task(untilCancelled),
			"lib": task(func(ctx context.Context) (any, error) {
				<-ctx.Done()
				return nil, fmt.Errorf("get: %w", ctx.Err())
			}),
			"finish": task(func(ctx context.Context) (any, error) {
				<-ctx.Done()
				return context.Cause(ctx).Error(), nil
			}),
			"echo": task(func(context.Context) (any, error) { return nil, nil }),
		})).open()
		for _, tt := range []struct{ method, id, cancel, want string }{
			{"wait", `1`, `1`, failure("1", -32800, "The request was cancelled", "REQUEST_CANCELLED")},
			{"lib", `"a"`, `"a"`, failure(`"a"`, -32800, "The request was cancelled", "REQUEST_CANCELLED")},
			{"finish", `-0`, `0`, result(`-0`, `"request cancelled by the client"`)},
			{"wait", `"ab\/"`, `"\u0061b/"`, failure(`"ab\/"`, -32800, "The request was cancelled", "REQUEST_CANCELLED")},
		} {
			r.send(call(tt.id, tt.method, `{}`), note("$/cancel_request", `{"requestId":`+tt.cancel+`}`))
			r.want(tt.want)
		}
		// None of these means a request that runs.
		r.send(call(`1`, "wait", `{}`))
		for _, params := range []string{`{"requestId":"1"}`, `{"requestId":2}`, `{"requestId":null}`, `{"requestId":1.0}`, `{"requestid":1}`, `{}`, `[1]`, `null`} {
			r.send(note("$/cancel_request", params))
		}
		r.send(call(`2`, "echo", `{}`))
		r.want(result("2", `{}`))
		r.send(note("$/cancel_request", `{"requestId":1}`))
		r.want(failure("1", -32800, "The request was cancelled", "REQUEST_CANCELLED"))
		r.finish()
	})
}

func TestConn_FailingTasksDoNotDisturbOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		admitPanics := Method{Admit: func(context.Context, json.RawMessage) (Task, error) { panic("admit") }}
		admitPanics.Notify = admitPanics.Admit
		secret := errors.New("password=hunter2")
		r := serve(t, methods(Methods{
			"wait":     task(untilCancelled),
			"panics":   task(func(context.Context) (any, error) { panic("boom") }),
			"exits":    task(func(context.Context) (any, error) { runtime.Goexit(); return nil, nil }),
			"admit":    admitPanics,
			"uncoded":  task(func(context.Context) (any, error) { return nil, secret }),
			"told":     task(func(context.Context) (any, error) { return nil, Observed(secret) }),
			"internal": task(func(context.Context) (any, error) { return nil, domain.WrapError(domain.Internal, secret, "oops") }),
			"result":   task(func(context.Context) (any, error) { return func() {}, nil }),
			"append":   task(func(context.Context) (any, error) { return panicking{}, nil }),
			"then": {Admit: func(context.Context, json.RawMessage) (Task, error) {
				return func(context.Context) (Reply, error) { return Reply{Then: func(context.Context) { panic("then") }}, nil }, nil
			}},
			"note": {Notify: func(context.Context, json.RawMessage) (Task, error) {
				return func(context.Context) (Reply, error) { panic("note") }, nil
			}},
		})).open()
		r.send(call("1", "wait", `{}`))
		for i, method := range []string{"panics", "exits", "admit", "uncoded", "internal", "result", "append", "told"} {
			id := fmt.Sprint(i + 2)
			r.send(call(id, method, `{}`))
			r.want(failure(id, -32603, "Internal error", "INTERNAL_ERROR"))
		}
		r.send(call("99", "then", `{}`))
		r.want(result("99", `{}`))
		r.send(note("note", `{}`), note("admit", `{}`), note("$/cancel_request", `{"requestId":1}`))
		r.want(failure("1", -32800, "The request was cancelled", "REQUEST_CANCELLED"))
		r.finish()
		seen := map[string]bool{}
		for _, trouble := range r.all() {
			seen[trouble.Where] = true
			var p *PanicError
			if errors.As(trouble.Err, &p) && !strings.Contains(string(p.Stack), "conn_test.go") {
				t.Errorf("%s: the stack does not show where: %s", trouble.Where, p.Stack)
			}
		}
		for _, where := range []string{"panics", "exits", "admit", "uncoded", "internal", "result", "append", "after then", "notification note", "notification admit"} {
			if !seen["jsonrpc: "+where] {
				t.Errorf("the observer was not told about %q, only %v", where, seen)
			}
		}
		if seen["jsonrpc: told"] {
			t.Error("the observer was told again what it knew")
		}
	})
}

// A store that does not work is its host's business, so the observer is told;
// other refusals are between the peer and the handler.
func TestConn_TellsOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(code domain.Code) Method {
			return task(func(context.Context) (any, error) { return nil, domain.Errorf(code, "so it is") })
		}
		r := serve(t, methods(Methods{
			"full": of(domain.StoreUnavailable), "broken": of(domain.StoreCorrupt), "wrong": of(domain.InvalidArgument), "limit": of(domain.RateLimited),
			"known": task(func(context.Context) (any, error) {
				return nil, Observed(domain.Errorf(domain.StoreUnavailable, "so it is"))
			}),
		})).open()
		for i, tt := range []struct {
			method, reason string
			code           int
		}{
			{"full", "STORE_ERROR", -32603}, {"broken", "STORE_CORRUPT", -32603}, {"known", "STORE_ERROR", -32603},
			{"wrong", "INVALID_PARAMS", -32602}, {"limit", "RATE_LIMITED", -32603},
		} {
			id := fmt.Sprint(i + 1)
			r.send(call(id, tt.method, `{}`))
			r.want(failure(id, tt.code, "so it is", tt.reason))
		}
		r.finish()
		var told []string
		for _, trouble := range r.all() {
			told = append(told, trouble.Where)
		}
		if want := []string{"jsonrpc: full", "jsonrpc: broken"}; !slices.Equal(told, want) {
			t.Errorf("the observer was told about %q, want %q", told, want)
		}
	})
}

// panicking is a result that cannot be encoded.
type panicking struct{}

func (panicking) AppendJSON([]byte) []byte { panic("append") }

func TestConn_IDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, methods(Methods{
			"wait": task(untilCancelled),
			"echo": task(func(context.Context) (any, error) { return nil, nil }),
		})).open()
		// Every kind of id comes back as it was written.
		for _, id := range []string{`0`, `-7`, `9223372036854775807`, `""`, `"\u00e4"`, `"ä"`, `null`} {
			r.send(call(id, "echo", `{}`))
			r.want(result(id, `{}`))
		}
		// An id in use is refused, in any spelling, and keeps its request.
		r.send(call(`"x"`, "wait", `{}`), call(`"\u0078"`, "echo", `{}`))
		r.want(failure(`"\u0078"`, -32600, "A request with this id is still running", "DUPLICATE_ID"))
		r.send(note("$/cancel_request", `{"requestId":"x"}`))
		r.want(failure(`"x"`, -32800, "The request was cancelled", "REQUEST_CANCELLED"))
		r.send(call(`"x"`, "echo", `{}`))
		r.want(result(`"x"`, `{}`))
		r.finish()
	})
}

// TestConn_IDIsFreeWithItsAnswer uses the same id again the moment the answer
// is there.
func TestConn_IDIsFreeWithItsAnswer(t *testing.T) {
	r := serve(t, methods(Methods{"echo": task(func(context.Context) (any, error) { return nil, nil })})).open()
	for range 5_000 {
		r.send(call("1", "echo", `{}`))
		r.want(result("1", `{}`))
	}
	r.finish()
}

func TestConn_TooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, methods(Methods{"wait": task(untilCancelled), "note": {Notify: task(untilCancelled).Admit}}),
			func(o *Options) { o.MaxTasks = 2 }).open()
		r.send(call("1", "wait", `{}`), call("2", "wait", `{}`), call("3", "wait", `{}`), note("note", `{}`))
		r.want(failure("3", -32603, "More than 2 requests are running on this connection; wait for answers first", "TOO_MANY_REQUESTS", `"limit":2`))
		r.send(note("$/cancel_request", `{"requestId":1}`))
		r.want(failure("1", -32800, "The request was cancelled", "REQUEST_CANCELLED"))
		synctest.Wait()
		r.send(call("4", "wait", `{}`), note("$/cancel_request", `{"requestId":4}`), note("$/cancel_request", `{"requestId":2}`))
		r.recv()
		r.recv()
		r.finish()
		if len(r.all()) != 1 {
			t.Errorf("the observer saw %v, want the notification that was turned away", r.all())
		}
	})
}

func TestConn_TooLongMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pipe, in := io.Pipe()
		out, pipeW := io.Pipe()
		conn := NewConn(NewStdio(pipe, pipeW, 100), Options{})
		served := make(chan error)
		go func() { served <- conn.Serve(t.Context(), methods(nil)) }()
		r := &rig{t: t, in: in, out: out, lines: newReader(out), conn: conn}
		go r.send(strings.Repeat("x", 1<<20), call("1", "initialize", `{}`))
		r.want(failure("null", -32600, "message is longer than 100 bytes", "MESSAGE_TOO_LARGE", `"limit":100`),
			result("1", `{"protocolVersion":1}`))
		_ = in.Close()
		r.want("")
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
