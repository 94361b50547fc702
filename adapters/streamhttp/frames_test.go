package streamhttp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/framestest"
	"github.com/berth-dev/berth/adapters/streamhttp"
)

// The suite's frames are any JSON, the transport's are messages: both ends of
// a test wrap and unwrap them.
const (
	before = `{"jsonrpc":"2.0","method":"frame","params":{"f":`
	behind = `}}`
)

func wrap(frame []byte) []byte { return append(append([]byte(before), frame...), behind...) }

func unwrap(message []byte) ([]byte, error) {
	inside, ok := bytes.CutPrefix(message, []byte(before))
	inside, ok2 := bytes.CutSuffix(inside, []byte(behind))
	if !ok || !ok2 {
		return nil, fmt.Errorf("got %.80s", message)
	}
	return inside, nil
}

// serverEnd is the end under test.
type serverEnd struct{ *served }

func (s serverEnd) Read() ([]byte, error) {
	message, err := s.frames.Read()
	if err != nil {
		return nil, err
	}
	return unwrap(message)
}

func (s serverEnd) Write(frame []byte) error { return s.frames.Write(wrap(frame)) }

func (s serverEnd) Close() error {
	defer func() {
		select {
		case <-s.done:
		default:
			close(s.done)
		}
	}()
	return s.frames.Close()
}

// clientEnd is a plain client.
type clientEnd struct {
	r      *rig
	id     string
	ctx    context.Context
	cancel context.CancelFunc
	stream io.ReadCloser
	in     *bufio.Reader
	end    func() error // DELETE, once
}

func newClientEnd(r *rig, id string) *clientEnd {
	c := &clientEnd{r: r, id: id}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	res, err := r.http.Do(r.request(http.MethodGet, "", "Accept", "text/event-stream", "Acp-Connection-Id", id).WithContext(c.ctx))
	if err != nil || res.StatusCode != http.StatusOK {
		r.t.Fatalf("GET: %v, %v", res, err)
	}
	c.stream, c.in = res.Body, bufio.NewReader(res.Body)
	c.end = sync.OnceValue(func() error {
		res, err := r.http.Do(r.request(http.MethodDelete, "", "Acp-Connection-Id", id).WithContext(context.Background()))
		if err != nil {
			return err
		}
		return res.Body.Close()
	})
	return c
}

func (c *clientEnd) Read() ([]byte, error) {
	for {
		line, err := c.in.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			return unwrap(bytes.TrimSuffix(data, []byte{'\n'}))
		}
	}
}

func (c *clientEnd) Write(frame []byte) error {
	res, err := c.r.http.Do(c.r.request(http.MethodPost, string(wrap(frame)), "Acp-Connection-Id", c.id).WithContext(c.ctx))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		_ = c.Close()
		return errors.New(res.Status)
	}
	return nil
}

func (c *clientEnd) CloseWrite() error { return c.end() }

func (c *clientEnd) Close() error {
	c.cancel()
	_ = c.end()
	return c.stream.Close()
}

func TestFrames(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP 1": false, "HTTP 2 in clear text": true} {
		t.Run(name, func(t *testing.T) {
			framestest.Run(t, func(tb framestest.TB, maxBytes int) (a, b jsonrpc.Frames) {
				r := newRig(tb.(*testing.T), func(o *streamhttp.Options) {
					o.MaxMessageBytes = maxBytes + len(before) + len(behind)
					o.MaxBufferedBytes = 8 << 20
				})
				if h2 {
					r.useHTTP2()
				}
				id, server := r.open()
				return newClientEnd(r, id), serverEnd{server}
			})
		})
	}
}

// TestHTTP2 has a hundred streams share one connection of the network.
func TestHTTP2(t *testing.T) {
	r := newRig(t)
	r.useHTTP2()
	res, err := r.http.Do(r.request(http.MethodPost, "{"))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.ProtoMajor != 2 {
		t.Fatalf("the protocol is %s", res.Proto)
	}
	id, server := r.open()
	var streams []*sse
	for i := range 100 {
		streams = append(streams, r.listen(id, fmt.Sprintf("s%d", i)))
	}
	for round := range 3 {
		for i := range streams {
			server.write(t, update(fmt.Sprintf("s%d", i), fmt.Sprint(round)))
		}
	}
	for i, s := range streams {
		for round := range 3 {
			s.want(update(fmt.Sprintf("s%d", i), fmt.Sprint(round)))
		}
	}
	_ = server.frames.Close()
	for _, s := range streams {
		s.want("end")
	}
}

// TestConn is a peer of the product over the transport: calls both ways,
// notifications, a cancel, and the end.
func TestConn(t *testing.T) {
	r := newRig(t)
	got := make(chan answer, 1)
	go func() { got <- r.do(http.MethodPost, initialize) }()
	server := r.serve()
	defer close(server.done)
	conn := jsonrpc.NewConn(server.frames, jsonrpc.Options{IDs: jsonrpc.NewIDs("zc-out-")})
	var serving sync.WaitGroup
	var ended error
	serving.Go(func() { ended = conn.Serve(server.ctx, echo(conn)) })
	a := <-got
	id := a.head.Get("Acp-Connection-Id")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"result"`) {
		t.Fatalf("initialize: %d %s", a.status, a.body)
	}
	main, one := r.listen(id, ""), r.listen(id, "s1")
	r.post(id, "s1", call("1", "session/prompt", `{"sessionId":"s1"}`))
	one.want(update("s1", "working"), call(`"zc-out-1"`, "session/request_permission", `{"sessionId":"s1"}`))
	r.post(id, "s1", result(`"zc-out-1"`, `"yes"`))
	one.want(result("1", `"yes"`))
	r.post(id, "", call("2", "nothing", `{}`))
	if got := main.next(); !strings.Contains(got, `"code":-32601`) {
		t.Errorf("got %s", got)
	}
	r.post(id, "s1", call("3", "session/prompt", `{"sessionId":"s1"}`))
	one.want(update("s1", "working"), call(`"zc-out-2"`, "session/request_permission", `{"sessionId":"s1"}`))
	r.post(id, "", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`)
	main.want(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"zc-out-2"}}`)
	if got := one.next(); !strings.Contains(got, `"code":-32800`) {
		t.Errorf("got %s", got)
	}
	if a := r.do(http.MethodDelete, "", "Acp-Connection-Id", id); a.status != http.StatusAccepted {
		t.Errorf("DELETE: %d", a.status)
	}
	main.want("end")
	one.want("end")
	serving.Wait()
	if ended != nil {
		t.Errorf("Serve: %v", ended)
	}
}

// echo serves a prompt that says something, asks something and answers with
// what it was told.
func echo(conn *jsonrpc.Conn) jsonrpc.Methods {
	type object = json.RawMessage
	return jsonrpc.Methods{
		"initialize": {Flags: jsonrpc.Opens, Admit: func(context.Context, object) (jsonrpc.Task, error) {
			return func(context.Context) (jsonrpc.Reply, error) { return jsonrpc.Reply{}, nil }, nil
		}},
		"session/prompt": {Admit: func(context.Context, object) (jsonrpc.Task, error) {
			return func(ctx context.Context) (jsonrpc.Reply, error) {
				if err := conn.Send(ctx, []byte(update("s1", "working"))); err != nil {
					return jsonrpc.Reply{}, err
				}
				told, err := conn.Call(ctx, "session/request_permission", object(`{"sessionId":"s1"}`))
				return jsonrpc.Reply{Result: told}, err
			}, nil
		}},
	}
}
