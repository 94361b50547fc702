package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/bridge"
)

// errCut is what both ends of a socket get that was cut, errClosed the one that
// closed it.
var errCut, errClosed = errors.New("cut"), errors.New("closed")

// socket is one end of a socket in memory.
type socket struct {
	in, out chan string
	over    chan struct{} // closed when either end closed
	lost    chan struct{} // closed by a cut
	once    *sync.Once
	cut     *sync.Once
	mine    atomic.Bool // this end closed
	peer    *socket
	stuck   chan struct{} // if set, what this end writes waits for it, also when it is closed
}

func newSocket(room int) (a, b *socket) {
	x, y := make(chan string, room), make(chan string, room)
	over, lost := make(chan struct{}), make(chan struct{})
	var once, cut sync.Once
	a = &socket{in: x, out: y, over: over, lost: lost, once: &once, cut: &cut}
	b = &socket{in: y, out: x, over: over, lost: lost, once: &once, cut: &cut, peer: a}
	a.peer = b
	return a, b
}

func (s *socket) Read() ([]byte, error) {
	select {
	case <-s.lost:
		return nil, errCut
	default:
	}
	select {
	case f := <-s.in:
		return []byte(f), nil
	default:
	}
	select {
	case f := <-s.in:
		return []byte(f), nil
	case <-s.lost:
		return nil, errCut
	case <-s.over:
		if s.mine.Load() {
			return nil, errClosed
		}
		select {
		case <-s.lost: // the other end has seen that, and closed what it has of it
			return nil, errCut
		default:
		}
		select {
		case f := <-s.in:
			return []byte(f), nil
		default:
			return nil, io.EOF
		}
	}
}

func (s *socket) Write(frame []byte) error {
	if s.stuck != nil {
		<-s.stuck
	}
	select {
	case <-s.lost:
		return errCut
	case <-s.over:
		return errCut
	default:
	}
	select {
	case s.out <- string(frame):
		return nil
	case <-s.lost:
		return errCut
	case <-s.over:
		return errCut
	}
}

func (s *socket) Close() error {
	s.mine.Store(true)
	s.once.Do(func() { close(s.over) })
	return nil
}

// Cut loses the socket.
func (s *socket) Cut() { s.cut.Do(func() { close(s.lost) }) }

// rig is a bridge between an editor and gateways, both played by the test.
type rig struct {
	t      *testing.T
	editor *socket      // the editor's end
	dialed chan *socket // the gateway's ends
	refuse error        // what dialling gives instead
	mu     sync.Mutex
	stop   context.CancelFunc
	done   chan error
}

// bubble runs fn with a bridge in a bubble.
func bubble(t *testing.T, cfg bridge.Config, fn func(t *testing.T, r *rig)) {
	t.Helper()
	bubbleWithout(t, cfg, nil, fn)
}

// bubbleWithout is bubble, where dialling gives refuse from the first time on:
// when fn begins, the bridge may have dialled already.
func bubbleWithout(t *testing.T, cfg bridge.Config, refuse error, fn func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mine, theirs := newSocket(64)
		r := &rig{t: t, editor: mine, dialed: make(chan *socket, 16), refuse: refuse, done: make(chan error, 1)}
		cfg.Dial = func(context.Context, string, string) (bridge.Dialled, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.refuse != nil {
				return bridge.Dialled{}, r.refuse
			}
			a, b := newSocket(64)
			r.dialed <- b
			return bridge.Dialled{Frames: a, Connection: "c"}, nil
		}
		cfg.Info = bridge.Info{Name: "berth", Title: "Berth", Version: "1"}
		ctx, cancel := context.WithCancel(context.Background())
		r.stop = cancel
		over := make(chan struct{})
		go func() {
			defer close(over)
			r.done <- bridge.New(theirs, cfg).Run(ctx)
		}()
		defer func() {
			cancel()
			<-over
			_ = mine.Close()
		}()
		fn(t, r)
	})
}

func (r *rig) refusing(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = err
}

func (r *rig) say(frame string) {
	r.t.Helper()
	if err := r.editor.Write([]byte(frame)); err != nil {
		r.t.Fatalf("the editor cannot write: %v", err)
	}
}

// want reads the next frame of an end.
func want(t *testing.T, s *socket, frame string) {
	t.Helper()
	got, err := s.Read()
	if err != nil || string(got) != frame {
		t.Fatalf("read\n%s, %v; want\n%s", got, err, frame)
	}
}

// silent checks that an end has nothing to read.
func silent(t *testing.T, s *socket) {
	t.Helper()
	synctest.Wait()
	if len(s.in) > 0 {
		t.Fatalf("unexpected: %s", <-s.in)
	}
}

func write(t *testing.T, s *socket, frames ...string) {
	t.Helper()
	for _, f := range frames {
		if err := s.Write([]byte(f)); err != nil {
			t.Fatalf("write %s: %v", f, err)
		}
	}
}

const (
	hello      = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"e"}}}`
	helloAgain = `{"jsonrpc":"2.0","id":"bridge-%d","method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"e"}}}`
	offer      = `"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"_meta":{"berth":{"methods":["_berth/session/await"]}}}}`
	welcome    = `{"jsonrpc":"2.0","id":0,` + offer
	newSession = `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`
	isNew      = `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`
	prompt     = `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}}`
	reload     = `{"jsonrpc":"2.0","id":"bridge-%d","method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[],"_meta":{"berth":{"takeover":true}}}}`
)

// open brings an editor and a gateway to an open session.
func (r *rig) open() *socket {
	r.t.Helper()
	r.say(hello)
	g := <-r.dialed
	want(r.t, g, hello)
	write(r.t, g, welcome)
	want(r.t, r.editor, welcome)
	r.say(newSession)
	want(r.t, g, newSession)
	write(r.t, g, isNew)
	want(r.t, r.editor, isNew)
	return g
}

func chunk(id, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q},"messageId":%q}}}`, text, id)
}

func said(id, text string) string {
	return strings.Replace(chunk(id, text), "agent_message_chunk", "user_message_chunk", 1)
}

func call(id, status string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":%q,"title":"t","status":%q}}}`, id, status)
}

func plan(entry string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":%q}]}}}`, entry)
}

func title(s string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"session_info_update","title":%q}}}`, s)
}

// over is how a history tells that a turn was cancelled.
func over(turn string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"session_info_update",`+
		`"_meta":{"berth":{"turnId":%q,"stopReason":"cancelled"}}}}}`, turn)
}

func ended(id, status string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":%q,"status":%q}}}`, id, status)
}

func question(id, call string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":%q},"options":[]}}`, id, call)
}

// TestPasses says that frames pass as they are.
func TestPasses(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		g := r.open()
		for _, frame := range []string{
			`{ "id" : 7 , "jsonrpc":"2.0", "method":"x/y","params":{"é":"\u00e9","n":1.50}, "more":true}`,
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`,
			`{"jsonrpc":"2.0","id":"zc-out-9","result":null}`,
			`[1,2]`,
			`{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":"no object"}`,
			`{"link":{"received":3}}`,
		} {
			r.say(frame)
			want(t, g, frame)
		}
		for _, frame := range []string{
			chunk("m", "\u2028 x"),
			question(`"zc-out-1"`, "c"),
			`{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no","data":{"method":"x/y"}}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch"}}`,
		} {
			write(t, g, frame)
			want(t, r.editor, frame)
		}
	})
}

// TestNoise says that what is no message reaches no editor.
func TestNoise(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		g := r.open()
		write(t, g, "\x1b]0;title\x07", `"hi"`, `{"jsonrpc":"2.0","id":99,"result":{}}`, chunk("m", "x"))
		want(t, r.editor, chunk("m", "x"))
	})
}

// TestBeforeInitialize says what is answered in the place of a gateway, which
// would end the connection.
// TestBadRequest says that what is no request and has an id is answered by it,
// also while another one with that id is open.
func TestBadRequest(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		g := r.open()
		r.say(prompt)
		want(t, g, prompt)
		r.say(`{"jsonrpc":"1.0","id":6,"method":"x"}`)
		want(t, r.editor, `{"jsonrpc":"2.0","id":6,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\"","data":{"reason":"INVALID_REQUEST"}}}`)
		r.say(`{"id":2,"method":"x"}`)
		want(t, r.editor, `{"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\"","data":{"reason":"INVALID_REQUEST"}}}`)
		silent(t, g)
		write(t, g, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
		want(t, r.editor, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
	})
}

func TestBeforeInitialize(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		for _, c := range [][2]string{
			{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Send initialize before any other request","data":{"reason":"NOT_INITIALIZED"}}}`},
			{`{`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the message is not valid JSON in UTF-8","data":{"reason":"PARSE_ERROR"}}}`},
		} {
			r.say(c[0])
			want(t, r.editor, c[1])
		}
		r.say(`{"jsonrpc":"2.0","method":"session/cancel"}`)
		g := r.open()
		r.say("{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"\xff\"}")
		want(t, r.editor, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the message is not valid JSON in UTF-8","data":{"reason":"PARSE_ERROR"}}}`)
		silent(t, g)
	})
}

// TestInitializeAgain says that an initialize that was refused can be mended.
func TestInitializeAgain(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		const wrong = `{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":"1"}}`
		const refused = `{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"no"}}`
		r.say(wrong)
		r.say(hello)
		g := <-r.dialed
		want(t, g, wrong)
		write(t, g, refused)
		want(t, r.editor, refused)
		want(t, g, hello)
		write(t, g, welcome)
		want(t, r.editor, welcome)
		g.Cut()
		g = <-r.dialed
		want(t, g, fmt.Sprintf(helloAgain, 1))
	})
}

func TestFlags(t *testing.T) {
	all := bridge.SessionFlags{Agent: "a", Key: "k", Label: "l", Reset: true, RequireExisting: true}
	tests := []struct {
		name               string
		flags              bridge.SessionFlags
		provenance         string
		method, give, want string
	}{
		{"nothing", bridge.SessionFlags{}, "", "session/new", `{"cwd":"/w"}`, `{"cwd":"/w"}`},
		{"everything", all, "", "session/new", `{"cwd":"/w"}`,
			`{"cwd":"/w","_meta":{"berth":{"agent":"a","sessionKey":"k","sessionLabel":"l","resetSession":true,"requireExisting":true}}}`},
		{"the request has its way", all, "", "session/new", `{"agentAlias":"b","_meta":{"sessionKey":"x","berth":{"resetSession":false,"requireExisting":false}}}`,
			`{"agentAlias":"b","_meta":{"sessionKey":"x","berth":{"resetSession":false,"requireExisting":false}}}`},
		{"other members stay", all, "", "session/new", `{"_meta":{"a":1,"berth":{"b":2}},"z":3}`,
			`{"_meta":{"a":1,"berth":{"b":2,"agent":"a","sessionKey":"k","sessionLabel":"l","resetSession":true,"requireExisting":true}},"z":3}`},
		{"load", all, "", "session/load", `{"sessionId":"s"}`, `{"sessionId":"s","_meta":{"berth":{"requireExisting":true}}}`},
		{"other methods", all, "meta", "session/list", `{"cwd":"/w"}`, `{"cwd":"/w"}`},
		{"provenance", bridge.SessionFlags{}, "meta", "session/prompt", `{"sessionId":"s","prompt":[]}`,
			`{"sessionId":"s","prompt":[],"_meta":{"berth":{"provenance":{"kind":"external_user","originSessionId":"s","sourceChannel":"acp","sourceTool":"berth_bridge"}}}}`},
		{"receipt", bridge.SessionFlags{}, "meta+receipt", "session/prompt", `{"sessionId":"s","prompt":"hi"}`,
			`{"sessionId":"s","prompt":[{"type":"text","text":"[Source receipt]\nbridge: berth\nhost: h\ncwd: \nsession: s\n[/Source receipt]"},{"type":"text","text":"hi"}],"_meta":{"berth":{"provenance":{"kind":"external_user","originSessionId":"s","sourceChannel":"acp","sourceTool":"berth_bridge"}}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, bridge.Config{Sessions: tt.flags, Provenance: tt.provenance, Host: "h"}, func(t *testing.T, r *rig) {
				r.say(hello)
				g := <-r.dialed
				want(t, g, hello)
				write(t, g, welcome)
				want(t, r.editor, welcome)
				frame := `{"jsonrpc":"2.0","id":5,"method":"` + tt.method + `","params":`
				r.say(frame + tt.give + `}`)
				want(t, g, frame+tt.want+`}`)
			})
		})
	}
	t.Run("only the first session is reset", func(t *testing.T) {
		bubble(t, bridge.Config{Sessions: bridge.SessionFlags{Reset: true}}, func(t *testing.T, r *rig) {
			r.say(hello)
			g := <-r.dialed
			want(t, g, hello)
			write(t, g, welcome)
			want(t, r.editor, welcome)
			r.say(newSession)
			want(t, g, `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[],"_meta":{"berth":{"resetSession":true}}}}`)
			r.say(strings.Replace(newSession, `"id":1`, `"id":2`, 1))
			want(t, g, strings.Replace(newSession, `"id":1`, `"id":2`, 1))
		})
	})
}

// memory remembers one answer.
type memory struct {
	mu     sync.Mutex
	result string
}

func (m *memory) Recall([]byte) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []byte(m.result), m.result != ""
}

func (m *memory) Keep(_, result []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.result = string(result)
}

func TestEarly(t *testing.T) {
	none := errors.New("nobody there")
	t.Run("nothing is promised that is not known", func(t *testing.T) {
		m := &memory{}
		bubbleWithout(t, bridge.Config{Memory: m}, none, func(t *testing.T, r *rig) {
			start := time.Now()
			r.say(hello)
			want(t, r.editor, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[],"agentInfo":{"name":"berth","title":"Berth","version":"1"},"_meta":{"berth":{"early":true}}}}`)
			if d := time.Since(start); d != 4*time.Second {
				t.Errorf("it took %v", d)
			}
			r.say(newSession) // waits
			r.refusing(nil)
			g := <-r.dialed
			want(t, g, hello)
			write(t, g, welcome)
			want(t, g, newSession)
			write(t, g, isNew)
			want(t, r.editor, isNew) // and no second answer to initialize
			if !strings.Contains(m.result, "loadSession") {
				t.Errorf("remembered: %s", m.result)
			}
		})
	})
	t.Run("what is known", func(t *testing.T) {
		bubbleWithout(t, bridge.Config{Memory: &memory{result: `{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`}}, none, func(t *testing.T, r *rig) {
			r.say(hello)
			want(t, r.editor, `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true},"_meta":{"berth":{"early":true}}}}`)
		})
	})
	t.Run("a gateway that refuses afterwards", func(t *testing.T) {
		bubbleWithout(t, bridge.Config{}, none, func(t *testing.T, r *rig) {
			r.say(hello)
			_, _ = r.editor.Read()
			r.say(newSession)
			r.refusing(nil)
			g := <-r.dialed
			want(t, g, hello)
			write(t, g, `{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"not you"}}`)
			if err := <-r.done; err == nil || !strings.Contains(err.Error(), "not you") {
				t.Errorf("Run: %v", err)
			}
			got, _ := r.editor.Read()
			if !strings.Contains(string(got), `"id":1,"error"`) {
				t.Errorf("the open request was answered %s", got)
			}
		})
	})
	t.Run("a gateway in time", func(t *testing.T) {
		bubble(t, bridge.Config{Memory: &memory{result: `{"protocolVersion":1}`}}, func(t *testing.T, r *rig) {
			r.open()
			time.Sleep(time.Minute)
			silent(t, r.editor)
		})
	})
}

func TestGone(t *testing.T) {
	t.Run("for good", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			r.refusing(errors.New("nobody there"))
			g.Cut()
			err := <-r.done
			if err == nil || err.Error() != "no gateway for 2m0s: nobody there" {
				t.Errorf("Run: %v", err)
			}
			want(t, r.editor, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The gateway is gone: no gateway for 2m0s: nobody there","data":{"reason":"CONNECTION_LOST","sessionId":"s"}}}`)
		})
	})
	t.Run("refused", func(t *testing.T) {
		bubbleWithout(t, bridge.Config{}, &bridge.Refused{Err: errors.New("wrong token")}, func(t *testing.T, r *rig) {
			if err := <-r.done; err == nil || err.Error() != "wrong token" {
				t.Errorf("Run: %v", err)
			}
		})
	})
	t.Run("closed by the gateway", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			_ = r.open().Close()
			if err := <-r.done; err == nil || err.Error() != "the gateway ended the connection" {
				t.Errorf("Run: %v", err)
			}
		})
	})
}

func TestEnd(t *testing.T) {
	within := func(t *testing.T, r *rig, most time.Duration) {
		t.Helper()
		start := time.Now()
		if err := <-r.done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if d := time.Since(start); d > most {
			t.Errorf("it took %v", d)
		}
	}
	t.Run("nothing was said", func(t *testing.T) {
		bubbleWithout(t, bridge.Config{}, errors.New("nobody there"), func(t *testing.T, r *rig) {
			_ = r.editor.Close()
			within(t, r, 0)
		})
	})
	t.Run("idle", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.hangUp()
			within(t, r, 0)
			if _, err := g.Read(); !errors.Is(err, io.EOF) {
				t.Errorf("the gateway sees %v", err)
			}
		})
	})
	t.Run("what was sent is answered", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			r.hangUp()
			time.Sleep(time.Second)
			write(t, g, chunk("m", "x"), `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
			within(t, r, 0)
			want(t, r.editor, chunk("m", "x"))
			want(t, r.editor, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
		})
	})
	t.Run("a turn that would go on is cancelled", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			r.hangUp()
			want(t, g, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`)
			within(t, r, 1500*time.Millisecond) // of three seconds in all
			want(t, r.editor, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The gateway is gone: the time for the last answers is over","data":{"reason":"CONNECTION_LOST","sessionId":"s"}}}`)
		})
	})
	t.Run("there never was a gateway", func(t *testing.T) {
		bubbleWithout(t, bridge.Config{}, errors.New("nobody there"), func(t *testing.T, r *rig) {
			r.say(hello)
			r.say(`{"jsonrpc":"2.0","id":7,"method":"session/list"}`)
			synctest.Wait()
			r.hangUp()
			if err := <-r.done; err == nil || err.Error() != "nobody there" {
				t.Errorf("Run: %v", err)
			}
			want(t, r.editor, `{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"No connection: nobody there","data":{"reason":"CONNECTION_LOST"}}}`)
			want(t, r.editor, `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"No connection: nobody there","data":{"reason":"CONNECTION_LOST"}}}`)
		})
	})
	t.Run("before the gateway has said anything", func(t *testing.T) {
		bubbleWithout(t, bridge.Config{}, errors.New("not yet"), func(t *testing.T, r *rig) {
			r.say(hello)
			time.Sleep(900 * time.Millisecond) // by now the waits between two attempts are long
			r.hangUp()
			time.Sleep(bridge.DrainLimit - 300*time.Millisecond)
			r.refusing(nil)
			g := <-r.dialed
			want(t, g, hello)
			write(t, g, welcome)
			within(t, r, 0)
			want(t, r.editor, welcome)
		})
	})
	t.Run("a signal is the same", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			r.open()
			r.stop()
			within(t, r, 0)
		})
	})
}

// hangUp ends the editor's input; it still reads.
func (r *rig) hangUp() { r.stop() }

// TestRecover cuts the socket of a gateway without links.
func TestRecover(t *testing.T) {
	// again brings the second gateway to where it loads the session.
	again := func(t *testing.T, r *rig) *socket {
		t.Helper()
		g := <-r.dialed
		want(t, g, fmt.Sprintf(helloAgain, 1))
		write(t, g, `{"jsonrpc":"2.0","id":"bridge-1",`+offer)
		want(t, g, fmt.Sprintf(reload, 2))
		return g
	}
	loaded := func(meta string) string {
		return `{"jsonrpc":"2.0","id":"bridge-2","result":{` + meta + `}}`
	}
	t.Run("idle", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			r.open().Cut()
			g := again(t, r)
			write(t, g, said("old-u", "old"), chunk("old-m1", "answer"), loaded(""))
			r.say(prompt)
			want(t, g, prompt)
			silent(t, r.editor)
		})
	})
	t.Run("within a turn", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			write(t, g, chunk("t-m1", "Hello "), call("c1", "pending"), question(`"q1"`, "c1"))
			want(t, r.editor, chunk("t-m1", "Hello "))
			want(t, r.editor, call("c1", "pending"))
			want(t, r.editor, question(`"q1"`, "c1"))
			g.Cut()
			g = again(t, r)
			want(t, r.editor, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"q1"}}`)
			write(t, g, said("old-u", "old"), chunk("old-m1", "x"), said("t-u", "go"), chunk("t-m1", "Hello world"), call("c1", "pending"),
				call("c2", "pending"), loaded(`"_meta":{"berth":{"running":"t"}}`))
			want(t, r.editor, chunk("t-m1", "world"))
			want(t, r.editor, call("c2", "pending"))
			want(t, g, `{"jsonrpc":"2.0","id":2,"method":"_berth/session/await","params":{"sessionId":"s","turnId":"t"}}`)
			// The same id again, while the editor has not taken the first one back.
			write(t, g, question(`"q1"`, "c1"))
			want(t, r.editor, question(`"again-1"`, "c1"))
			r.say(`{"jsonrpc":"2.0","id":"q1","result":{"outcome":{"outcome":"cancelled"}}}`)
			r.say(`{"jsonrpc":"2.0","id":"again-1","result":{"outcome":{"outcome":"selected","optionId":"a"}}}`)
			want(t, g, `{"jsonrpc":"2.0","id":"q1","result":{"outcome":{"outcome":"selected","optionId":"a"}}}`)
			write(t, g, ended("c1", "completed"), `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
			want(t, r.editor, ended("c1", "completed"))
			want(t, r.editor, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
		})
	})
	t.Run("a turn that begins after the cut", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			g.Cut()
			g = again(t, r)
			write(t, g, loaded(`"_meta":{"berth":{"queued":[{"turnId":"t"}]}}`), said("t-u", "go"), chunk("t-m1", "Hello"), said("x-u", "by another"))
			want(t, g, `{"jsonrpc":"2.0","id":2,"method":"_berth/session/await","params":{"sessionId":"s","turnId":"t"}}`)
			want(t, r.editor, chunk("t-m1", "Hello"))
			want(t, r.editor, said("x-u", "by another"))
		})
	})
	t.Run("states that are older than what the editor has", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			write(t, g, plan("first"), plan("second"))
			want(t, r.editor, plan("first"))
			want(t, r.editor, plan("second"))
			g.Cut()
			g = again(t, r)
			write(t, g, said("old-u", "old"), plan("first"), plan("second"), loaded(""))
			r.say(prompt)
			want(t, g, prompt)
			silent(t, r.editor)
		})
	})
	t.Run("states that are newer", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			write(t, g, plan("second"))
			want(t, r.editor, plan("second"))
			g.Cut()
			g = again(t, r)
			write(t, g, plan("first"), plan("second"), plan("third"), plan("fourth"), loaded(""))
			want(t, r.editor, plan("fourth"))
			silent(t, r.editor)
		})
	})
	t.Run("ends of turns, which are no state", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			write(t, g, title("T"), chunk("old-m1", "x"))
			want(t, r.editor, title("T"))
			want(t, r.editor, chunk("old-m1", "x"))
			g.Cut()
			g = again(t, r)
			write(t, g, chunk("old-m1", "x"), over("old"), chunk("new-m1", "y"), title("T"), over("new"), loaded(""))
			want(t, r.editor, chunk("new-m1", "y"))
			silent(t, r.editor)
		})
	})
	t.Run("ends of turns in a history that the editor asked for", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			const load = `{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}`
			g := r.open()
			r.say(load)
			want(t, g, load)
			write(t, g, chunk("a-m1", "x"), over("a"), over("b"))
			want(t, r.editor, chunk("a-m1", "x"))
			want(t, r.editor, over("a"))
			want(t, r.editor, over("b"))
			g.Cut()
			g = again(t, r)
			write(t, g, loaded(""))
			want(t, g, load)
			write(t, g, chunk("a-m1", "x"), over("a"), over("b"), chunk("c-m1", "y"), over("c"), title("T"))
			want(t, r.editor, chunk("c-m1", "y"))
			want(t, r.editor, over("c"))
			want(t, r.editor, title("T"))
		})
	})
	t.Run("a prompt that never arrived", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			g.Cut()
			g = again(t, r)
			write(t, g, loaded(""))
			want(t, g, `{"jsonrpc":"2.0","id":2,"method":"_berth/session/await","params":{"sessionId":"s"}}`)
			write(t, g, `{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"none","data":{"reason":"NOT_FOUND"}}}`)
			want(t, g, prompt)
			write(t, g, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
			want(t, r.editor, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
		})
	})
	t.Run("a prompt that ends every connection", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			for i := 1; i <= 5; i += 2 {
				want(t, g, prompt)
				g.Cut()
				g = <-r.dialed
				want(t, g, fmt.Sprintf(helloAgain, i))
				write(t, g, fmt.Sprintf(`{"jsonrpc":"2.0","id":"bridge-%d",`, i)+offer)
				want(t, g, fmt.Sprintf(reload, i+1))
				write(t, g, fmt.Sprintf(`{"jsonrpc":"2.0","id":"bridge-%d","result":{}}`, i+1))
				want(t, g, `{"jsonrpc":"2.0","id":2,"method":"_berth/session/await","params":{"sessionId":"s"}}`)
				write(t, g, `{"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"none","data":{"reason":"NOT_FOUND"}}}`)
			}
			got, _ := r.editor.Read()
			if !strings.Contains(string(got), "longer than the gateway takes") {
				t.Errorf("the prompt was answered %s", got)
			}
		})
	})
	t.Run("a cancel is not forgotten", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			const cancel = `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`
			g := r.open()
			r.say(prompt)
			r.say(cancel)
			want(t, g, prompt)
			want(t, g, cancel)
			g.Cut()
			g = again(t, r)
			write(t, g, loaded(`"_meta":{"berth":{"running":"t"}}`))
			want(t, g, `{"jsonrpc":"2.0","id":2,"method":"_berth/session/await","params":{"sessionId":"s","turnId":"t"}}`)
			want(t, g, cancel)
		})
	})
	t.Run("what may be asked twice is", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			const list, other = `{"jsonrpc":"2.0","id":5,"method":"session/list"}`, `{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"/"}}`
			r.say(list)
			r.say(other)
			want(t, g, list)
			want(t, g, other)
			g.Cut()
			g = again(t, r)
			write(t, g, loaded(""))
			want(t, g, list)
			want(t, r.editor, `{"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"The connection to the gateway was lost before session/new was answered. It may have been done; ask again if it was not.","data":{"reason":"CONNECTION_LOST"}}}`)
		})
	})
	t.Run("a session that does not come back", func(t *testing.T) {
		bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
			g := r.open()
			r.say(prompt)
			want(t, g, prompt)
			g.Cut()
			g = again(t, r)
			write(t, g, `{"jsonrpc":"2.0","id":"bridge-2","error":{"code":-32002,"message":"gone"}}`)
			want(t, r.editor, `{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"The connection to the gateway was lost, and the session did not come back: gone","data":{"reason":"CONNECTION_LOST","sessionId":"s"}}}`)
		})
	})
}

// TestSlowEnds says that an end that does not read slows the other down.
func TestSlowEnds(t *testing.T) {
	bubble(t, bridge.Config{}, func(t *testing.T, r *rig) {
		g := r.open()
		big := `{"jsonrpc":"2.0","method":"x","params":{"a":"` + strings.Repeat("x", 100<<10) + `"}}`
		sent := make(chan int, 1)
		go func() {
			n := 0
			for ; n < 500; n++ {
				if r.editor.Write([]byte(big)) != nil {
					break
				}
			}
			sent <- n
		}()
		synctest.Wait()
		if len(sent) > 0 {
			t.Errorf("50 MB were taken for a gateway that does not read")
		}
		got := 0
		for range 500 {
			frame, err := g.Read()
			if err != nil || string(frame) != big {
				t.Fatalf("frame %d: %d bytes, %v", got, len(frame), err)
			}
			got++
		}
		if diff := cmp.Diff(500, <-sent); diff != "" {
			t.Error(diff)
		}
	})
}
