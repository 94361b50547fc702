package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/google/go-cmp/cmp"
)

// pair returns the two ends of a connection in memory.
func pair(t testing.TB) (*Stdio, *Stdio) {
	t.Helper()
	aR, bW := io.Pipe()
	bR, aW := io.Pipe()
	return NewStdio(aR, aW, 0), NewStdio(bR, bW, 0)
}

// endings is a handler that notes when and why the input ended.
type endings struct {
	Methods
	mu  sync.Mutex
	log []string
}

func (e *endings) InputEnded(why error) { e.note("input ended: " + why.Error()) }

func (e *endings) note(s string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log = append(e.log, s)
}

func newEndings() *endings {
	e := &endings{}
	e.Methods = methods(Methods{
		"wait": task(func(ctx context.Context) (any, error) {
			<-ctx.Done()
			e.note("wait: " + context.Cause(ctx).Error())
			return map[string]string{"cause": context.Cause(ctx).Error()}, nil
		}),
		"second": task(func(ctx context.Context) (any, error) {
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Second):
				e.note("second: done")
				return nil, nil
			}
		}),
	})
	return e
}

func (e *endings) want(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, e.log); d != "" {
		t.Error(d)
	}
}

func TestServe_EndOfInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndings()
		r := serve(t, e).open()
		r.send(call("1", "wait", `{}`), call("2", "second", `{}`))
		start := time.Now()
		_ = r.in.Close()
		r.want(result("2", `{}`), result("1", `{"cause":"the client disconnected"}`))
		r.want("")
		if err := <-r.served; err != nil {
			t.Error(err)
		}
		<-r.conn.Done()
		e.want(t, "input ended: EOF", "second: done", "wait: the client disconnected")
		if d := time.Since(start); d != 1500*time.Millisecond {
			t.Errorf("it took %v, want the time to linger", d)
		}
	})
}

func TestServe_EndOfInputWithNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, newEndings()).open()
		start := time.Now()
		r.send(call("2", "second", `{}`))
		_ = r.in.Close()
		r.want(result("2", `{}`), "")
		<-r.conn.Done()
		if d := time.Since(start); d != time.Second {
			t.Errorf("it took %v, want no longer than the request", d)
		}
	})
}

// TestServe_LastLineWithoutNewline: the last request counts if it is whole.
func TestServe_LastLineWithoutNewline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, newEndings()).open()
		go func() {
			_, _ = io.WriteString(r.in, call("2", "second", `{}`))
			_ = r.in.Close()
		}()
		r.want(result("2", `{}`), "")
	})
}

func TestServe_Shutdown(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(cancel context.CancelCauseFunc, c *Conn)
		why  string
	}{
		{"context", func(cancel context.CancelCauseFunc, _ *Conn) { cancel(nil) }, "the agent is shutting down"},
		{"context with a cause", func(cancel context.CancelCauseFunc, _ *Conn) { cancel(domain.SessionClosed) }, "the session was closed"},
		{"context with another cause", func(cancel context.CancelCauseFunc, _ *Conn) { cancel(errors.New("signal")) }, "the agent is shutting down"},
		{"close", func(_ context.CancelCauseFunc, c *Conn) { c.Close(domain.SessionClosed); c.Close(nil) }, "the session was closed"},
		{"close without a cause", func(_ context.CancelCauseFunc, c *Conn) { c.Close(nil) }, "the client disconnected"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndings()
				ctx, cancel := context.WithCancelCause(t.Context())
				r := serveIn(ctx, t, e).open()
				r.send(call("1", "wait", `{}`))
				synctest.Wait()
				tt.end(cancel, r.conn)
				r.want(result("1", fmt.Sprintf(`{"cause":%q}`, tt.why)), "")
				if err := <-r.served; err != nil {
					t.Error(err)
				}
				if len(e.log) != 2 || !strings.Contains(strings.Join(e.log, ";"), "input ended: "+tt.why) {
					t.Errorf("got %q", e.log)
				}
				if _, err := r.in.Write([]byte("x")); err == nil {
					t.Error("the input is still open")
				}
				if err := r.conn.Notify(t.Context(), "late", nil); err == nil {
					t.Error("a notification after the end was taken")
				}
			})
		})
	}
}

func TestServe_ShutdownWhileLingering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := serveIn(ctx, t, newEndings()).open()
		r.send(call("1", "wait", `{}`))
		_ = r.in.Close()
		synctest.Wait()
		cancel()
		start := time.Now()
		r.want(result("1", `{"cause":"the agent is shutting down"}`), "")
		if <-r.served; time.Since(start) != 0 {
			t.Errorf("it took %v more", time.Since(start))
		}
	})
}

// TestServe_PeerStopsReading: the output pipe breaks while a request runs.
func TestServe_PeerStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndings()
		r := serve(t, e).open()
		r.send(call("1", "wait", `{}`))
		synctest.Wait()
		_ = r.out.CloseWithError(io.ErrClosedPipe)
		if err := r.conn.Notify(t.Context(), "update", nil); err != nil {
			t.Error(err)
		}
		start := time.Now()
		if err := <-r.served; err != nil {
			t.Errorf("Serve: %v; a peer that is gone is no failure", err)
		}
		if time.Since(start) != 0 {
			t.Errorf("it took %v", time.Since(start))
		}
		if len(e.log) != 2 || !strings.Contains(strings.Join(e.log, ";"), "wait: the client disconnected") {
			t.Errorf("got %q", e.log)
		}
	})
}

func TestServe_ReadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("reset by peer")
		pr, pw := io.Pipe()
		go func() { _, _ = io.Copy(io.Discard, pr) }()
		e := newEndings()
		in := io.MultiReader(strings.NewReader(call("0", "initialize", `{}`)+"\n"+call("1", "wait", `{}`)+"\n"), iotest.ErrReader(broken))
		err := NewConn(NewStdio(in, pw, 0), Options{}).Serve(t.Context(), e)
		if !errors.Is(err, broken) {
			t.Errorf("Serve: %v", err)
		}
		e.want(t, "input ended: reset by peer", "wait: the client disconnected")
	})
}

// TestServe_PeerDoesNotRead: a peer that never reads holds the shutdown up for
// the time to drain and no longer, and its cancels are still seen.
func TestServe_PeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndings()
		ctx, cancel := context.WithCancel(t.Context())
		var conn *Conn
		e.Methods["flood"] = task(func(ctx context.Context) (any, error) {
			for {
				if err := conn.Notify(ctx, "update", json.RawMessage(`{"text":"`+strings.Repeat("x", 1000)+`"}`)); err != nil {
					e.note("flood: " + context.Cause(ctx).Error())
					return nil, err
				}
			}
		})
		r := serveIn(ctx, t, e).open()
		conn = r.conn
		r.send(call("1", "flood", `{}`))
		synctest.Wait()
		r.send(note("$/cancel_request", `{"requestId":1}`))
		synctest.Wait()
		e.want(t, "flood: request cancelled by the client")
		start := time.Now()
		cancel()
		if err := <-r.served; err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("it took %v, want the time to drain", d)
		}
	})
}

// TestServe_GarbageFromAPeerThatDoesNotRead: error answers without an id are
// dropped beyond a bound, and that is said once.
func TestServe_GarbageFromAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, methods(nil), func(o *Options) { o.QueueFrames = 1 }).open()
		for range 1000 {
			r.send("garbage")
		}
		synctest.Wait()
		if n := r.conn.anonymous.Load(); n != maxAnonymous {
			t.Errorf("%d answers wait, want %d", n, maxAnonymous)
		}
		got := 0
		go func() { _ = r.in.Close() }()
		for r.recv() != "" {
			got++
		}
		if want := maxAnonymous + 2; got != want { // and one in the queue, one in the transport
			t.Errorf("%d answers came, want %d", got, want)
		}
		<-r.served
		dropped := 0
		for _, trouble := range r.all() {
			if strings.Contains(trouble.Where, "dropped") {
				dropped++
			}
		}
		if dropped != 1 {
			t.Errorf("that answers were dropped was said %d times", dropped)
		}
	})
}

// TestServe_RequestsFromAPeerThatDoesNotRead: refusals that name a request are
// never dropped, so a peer that piles them up loses the connection.
func TestServe_RequestsFromAPeerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, newEndings(), func(o *Options) { o.QueueFrames = 1; o.MaxTasks = 10 }).open()
		go func() {
			for i := range 100 {
				if _, err := fmt.Fprintln(r.in, call(fmt.Sprint(i), "none", `{}`)); err != nil {
					return
				}
			}
		}()
		if err := <-r.served; err != nil {
			t.Error(err)
		}
		if len(r.all()) != 1 {
			t.Errorf("the observer saw %v", r.all())
		}
	})
}

// stuck is a transport whose Read does not notice Close, like a blocking
// standard input.
type stuck struct {
	Frames
	free chan struct{}
}

func (s *stuck) Read() ([]byte, error) { <-s.free; return []byte(call("1", "wait", `{}`)), nil }

func TestServe_ReadThatCannotBeUnblocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEndings()
		a, _ := pair(t)
		s := &stuck{a, make(chan struct{})}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		conn := NewConn(s, Options{})
		go func() { served <- conn.Serve(ctx, e) }()
		synctest.Wait()
		start := time.Now()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("it took %v", d)
		}
		close(s.free) // what comes now is not handled
		synctest.Wait()
		e.want(t, "input ended: the agent is shutting down")
	})
}

func TestServe_HandlerPanicsAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, panicsAtEnd{})
		r.finish()
		if len(r.all()) != 1 {
			t.Errorf("the observer saw %v", r.all())
		}
	})
}

type panicsAtEnd struct{ Methods }

func (panicsAtEnd) InputEnded(error) { panic("end") }

// TestServe_AdmittedTasksRun: a task that was admitted runs exactly once, also
// when the connection is closed in the same moment.
func TestServe_AdmittedTasksRun(t *testing.T) {
	for range 200 {
		var mu sync.Mutex
		admitted, ran := 0, 0
		r := serve(t, methods(Methods{"m": {Admit: func(context.Context, json.RawMessage) (Task, error) {
			mu.Lock()
			defer mu.Unlock()
			admitted++
			return func(context.Context) (Reply, error) {
				mu.Lock()
				defer mu.Unlock()
				ran++
				return Reply{}, nil
			}, nil
		}}})).open()
		go func() { _, _ = io.Copy(io.Discard, r.out) }()
		go r.conn.Close(nil)
		for i := range 20 {
			if _, err := fmt.Fprintln(r.in, call(fmt.Sprint(i), "m", `{}`)); err != nil {
				break
			}
		}
		<-r.served
		mu.Lock()
		if admitted != ran {
			t.Fatalf("%d requests were admitted, %d ran", admitted, ran)
		}
		mu.Unlock()
	}
}
