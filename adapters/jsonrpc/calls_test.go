package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// asked starts a Call and returns where its outcome will be.
func (r *rig) asked(ctx context.Context, method string, params any) <-chan string {
	out := make(chan string, 1)
	go func() {
		got, err := r.conn.Call(ctx, method, params)
		if err != nil {
			out <- "error: " + err.Error()
		} else {
			out <- string(got)
		}
	}()
	return out
}

func TestCall_Answers(t *testing.T) {
	for _, tt := range []struct{ name, answer, want string }{
		{"result", `{"jsonrpc":"2.0","id":"zc-out-1","result":{"a":1}}`, `{"a":1}`},
		{"null", `{"jsonrpc":"2.0","id":"zc-out-1","result":null}`, `null`},
		{"escaped id", `{"jsonrpc":"2.0","id":"zc\u002dout-1","result":1}`, `1`},
		{"error", `{"jsonrpc":"2.0","id":"zc-out-1","error":{"code":-32601,"message":"no such"}}`,
			"error: call ask: peer answered error -32601: no such"},
		{"both", `{"jsonrpc":"2.0","id":"zc-out-1","result":1,"error":{"code":1,"message":"x"}}`,
			"error: call ask: bad answer: the response has both a result and an error"},
		{"repeated member", `{"jsonrpc":"2.0","id":"zc-out-1","result":{"a":1,"a":2}}`,
			"error: call ask: bad answer: a member of the response occurs twice in one object"},
		{"no version", `{"id":"zc-out-1","result":{}}`, `error: call ask: bad answer: "jsonrpc" must be "2.0"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := serve(t, methods(nil))
				got := r.asked(t.Context(), "ask", map[string]string{"q": "<?>"})
				r.want(call(`"zc-out-1"`, "ask", `{"q":"<?>"}`))
				r.send(tt.answer)
				if got := <-got; got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if len(r.all()) != 0 {
					t.Errorf("the observer saw %v", r.all())
				}
				// A second answer is nobody's.
				r.send(tt.answer)
				r.finish()
				if len(r.all()) != 1 {
					t.Errorf("the observer saw %v, want the second answer", r.all())
				}
			})
		})
	}
}

func TestCall_AnswersToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, methods(nil)).open()
		lines := []string{
			`{"jsonrpc":"2.0","id":"zc-out-1","result":{}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":"x"}}`,
			`{"jsonrpc":"2.0","error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","id":{},"result":1}`,
		}
		r.send(lines...)
		r.finish() // nothing is answered
		if len(r.all()) != len(lines) {
			t.Errorf("the observer saw %d troubles, want %d: %v", len(r.all()), len(lines), r.all())
		}
	})
}

func TestCall_GivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, methods(nil)).open()
		ctx, cancel := context.WithCancelCause(t.Context())
		got := r.asked(ctx, "ask", nil)
		r.want(call(`"zc-out-1"`, "ask", `{}`))
		cancel(domain.CancelledByClient)
		r.want(note("$/cancel_request", `{"requestId":"zc-out-1"}`))
		if got := <-got; got != "error: call ask: cancelled by the client" {
			t.Errorf("got %s", got)
		}
		// The late answer passes without a word, a second one does not.
		late := `{"jsonrpc":"2.0","id":"zc-out-1","result":{}}`
		r.send(late)
		synctest.Wait()
		if len(r.all()) != 0 {
			t.Errorf("the late answer made trouble: %v", r.all())
		}
		if got := <-r.asked(ctx, "ask", nil); got != "error: call ask: cancelled by the client" {
			t.Errorf("a call whose context was over: %s", got)
		}
		r.send(late)
		r.finish() // nothing was sent for the call that came too late
		if len(r.all()) != 1 {
			t.Errorf("the observer saw %v", r.all())
		}
	})
}

func TestCall_GivenUpWhileThePeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, methods(nil), func(o *Options) { o.QueueFrames = 1 })
		ctx, cancel := context.WithCancel(t.Context())
		first := r.asked(ctx, "ask", nil) // in the transport
		synctest.Wait()
		second := r.asked(ctx, "ask", nil) // in the queue
		synctest.Wait()
		third := r.asked(ctx, "ask", nil) // waiting for room
		synctest.Wait()
		cancel()
		for _, got := range []<-chan string{first, second, third} {
			if got := <-got; got != "error: call ask: context canceled" {
				t.Errorf("got %s", got)
			}
		}
		var got []string
		for range 4 {
			got = append(got, r.recv())
		}
		for _, want := range []string{call(`"zc-out-1"`, "ask", `{}`), call(`"zc-out-2"`, "ask", `{}`),
			note("$/cancel_request", `{"requestId":"zc-out-1"}`), note("$/cancel_request", `{"requestId":"zc-out-2"}`)} {
			if !strings.Contains(strings.Join(got, "\n"), want) {
				t.Errorf("%s is missing in %q", want, got)
			}
		}
		r.finish()
	})
}

func TestCall_EndOfInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, methods(Methods{"wait": task(untilCancelled)}))
		got := r.asked(t.Context(), "ask", nil)
		r.want(call(`"zc-out-1"`, "ask", `{}`))
		r.finish()
		if got := <-got; got != "error: call ask: the client disconnected" {
			t.Errorf("got %s", got)
		}
		if _, err := r.conn.Call(t.Context(), "ask", nil); !errors.Is(err, domain.Disconnected) {
			t.Errorf("a call afterwards: %v", err)
		}
	})
}

// TestCall_EndOfInputFreesTasks: a request that waits for the peer's answer is
// not held up until the time to linger is over.
func TestCall_EndOfInputFreesTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var conn *Conn
		r := serve(t, methods(Methods{"ask": task(func(ctx context.Context) (any, error) {
			_, err := conn.Call(ctx, "permission", nil)
			return map[string]bool{"disconnected": errors.Is(err, domain.Disconnected)}, nil
		})})).open()
		conn = r.conn
		r.send(call("1", "ask", `{}`))
		r.want(call(`"zc-out-1"`, "permission", `{}`))
		start := time.Now()
		_ = r.in.Close()
		r.want(result("1", `{"disconnected":true}`), "")
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %v", d)
		}
	})
}

// TestCall_BothWays has two ends that call each other at once, each from
// within the other's request.
func TestCall_BothWays(t *testing.T) {
	a, b := pair(t)
	var wg sync.WaitGroup
	handler := func(self **Conn) Methods {
		return Methods{"down": {Admit: func(_ context.Context, params json.RawMessage) (Task, error) {
			return func(ctx context.Context) (Reply, error) {
				var n int
				for _, v := range Members(params) {
					_ = json.Unmarshal(v, &n)
				}
				if n == 0 {
					return Reply{Result: json.RawMessage(`{"end":true}`)}, nil
				}
				got, err := (*self).Call(ctx, "down", map[string]int{"n": n - 1})
				return Reply{Result: got}, err
			}, nil
		}}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ids := NewIDs("out-")
	ca := NewConn(a, Options{Client: true, IDs: ids})
	cb := NewConn(b, Options{Client: true, IDs: ids})
	wg.Go(func() { _ = ca.Serve(ctx, handler(&ca)) })
	wg.Go(func() { _ = cb.Serve(ctx, handler(&cb)) })
	var calls sync.WaitGroup
	for i := range 32 {
		for _, c := range []*Conn{ca, cb} {
			calls.Go(func() {
				got, err := c.Call(ctx, "down", map[string]int{"n": i})
				if err != nil || string(got) != `{"end":true}` {
					t.Errorf("got %s, %v", got, err)
				}
			})
		}
	}
	calls.Wait()
	cancel()
	wg.Wait()
}

// TestClient_UpdatesBeforeTheResponse: what stands before a response was
// handled, in order, when the call returns.
func TestClient_UpdatesBeforeTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		r := serve(t, Methods{"update": {Notify: func(_ context.Context, p json.RawMessage) (Task, error) {
			seen = append(seen, string(p))
			return nil, nil
		}}}, func(o *Options) { o.Client = true; o.IDs = NewIDs("") })
		got := make(chan int)
		go func() {
			if _, err := r.conn.Call(t.Context(), "prompt", nil); err != nil {
				t.Error(err)
			}
			got <- len(seen)
		}()
		r.want(call("1", "prompt", `{}`))
		var lines []string
		for i := range 50 {
			lines = append(lines, note("update", fmt.Sprint(`{"n":`, i, `}`)))
		}
		r.send(append(lines, result("1", `{}`))...)
		if n := <-got; n != 50 {
			t.Errorf("%d updates were handled before the call returned, want 50", n)
		}
		for i, p := range seen {
			if p != fmt.Sprint(`{"n":`, i, `}`) {
				t.Fatalf("update %d is %s", i, p)
			}
		}
		r.finish()
	})
}

// TestClient_Noise: what an agent prints beside the protocol is reported and
// not answered, and a good line behind it counts.
func TestClient_Noise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, Methods{}, func(o *Options) { o.Client = true; o.IDs = NewIDs("") })
		got := r.asked(t.Context(), "ask", nil)
		r.want(call("1", "ask", `{}`))
		r.send("\x1b]0;agent\x07", "", `"hi"`, result("1", `{"ok":true}`)+"\r")
		if got := <-got; got != `{"ok":true}` {
			t.Errorf("got %s", got)
		}
		r.finish()
		if len(r.all()) != 2 {
			t.Errorf("the observer saw %v, want two troubles", r.all())
		}
	})
}

func TestIDs(t *testing.T) {
	for prefix, want := range map[string]string{"": "1 2", "zc-out-": `"zc-out-1" "zc-out-2"`, `a"`: `"a\"1" "a\"2"`} {
		ids := NewIDs(prefix)
		if got := string(ids.Next() + " " + ids.Next()); got != want {
			t.Errorf("prefix %q: got %s, want %s", prefix, got, want)
		}
	}
}

func TestCalls_RetiredAreForgottenInTime(t *testing.T) {
	c, ids := newCalls(), NewIDs("")
	for range 3 * maxRetired {
		id := ids.Next()
		if _, err := c.add(id); err != nil || !c.retire(id) {
			t.Fatal("not retired")
		}
	}
	if len(c.retired) != maxRetired || len(c.order) != maxRetired {
		t.Errorf("%d ids are remembered", len(c.retired))
	}
	if c.settle("1", answer{}) {
		t.Error("the oldest id is remembered")
	}
	if last := ids.n.Load(); !c.settle(ID(fmt.Sprint(last)), answer{}) {
		t.Error("the last id is forgotten")
	}
}
