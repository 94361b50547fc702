package openclaw_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/acp1"
	"github.com/berth-dev/berth/adapters/openclaw"
	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

// rig is an editor, a bridge and a Gateway in one bubble of time. Every frame
// that the editor gets is held against the schema.
type rig struct {
	t    *testing.T
	gw   *openclawtest.Gateway
	conn *jsonrpc.Conn
	end  func() error // closes the editor's end and returns how the bridge ended

	mu      sync.Mutex
	updates []string // one line for each
	seen    []string // the methods and answers of the editor's, in order
	answer  func(ctx context.Context, params json.RawMessage) (any, error)
	logged  []string
}

// with says how a rig differs.
type with struct {
	gateway openclawtest.Config
	bridge  func(*openclaw.Config)
	shut    bool // nothing listens at the start
}

// play runs a test in a bubble.
func play(t *testing.T, w with, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, w)
		test(r)
		if t.Failed() {
			for _, l := range r.logged {
				t.Log(l)
			}
		}
		_ = r.end()
		r.gw.Close()
	})
}

func newRig(t *testing.T, w with) *rig {
	t.Helper()
	r := &rig{t: t, gw: openclawtest.New(w.gateway)}
	r.gw.Shut(w.shut)
	device, err := openclaw.NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	cfg := openclaw.Config{
		Dial: r.gw.Dial, Name: "test", Trusted: true, Identity: device, Home: "/home/ann",
		Secret: func() (string, error) { return w.gateway.Token, nil },
		NewID: func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			ids++
			return fmt.Sprintf("00000000-0000-4000-8000-%012d", ids)
		},
		Info: openclaw.Info{Name: "berth", Title: "Berth", Version: "1"},
		Log: func(format string, args ...any) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.logged = append(r.logged, fmt.Sprintf(format, args...))
		},
	}
	if w.bridge != nil {
		w.bridge(&cfg)
	}
	near, far := openclawtest.Pipe()
	b := openclaw.New(far, cfg)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(t.Context()) }()
	r.conn = jsonrpc.NewConn(&checked{Frames: near, t: t, check: acp1.NewChecker()}, jsonrpc.Options{Client: true})
	served := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(served)
		_ = r.conn.Serve(ctx, jsonrpc.Methods{
			"session/update":             {Notify: r.update},
			"session/request_permission": {Admit: r.permission},
		})
	}()
	var once sync.Once
	var how error
	r.end = func() error {
		once.Do(func() {
			_ = near.Close()
			how = <-ended
			cancel()
			<-served
		})
		return how
	}
	return r
}

// checked holds what the bridge says against the schema.
type checked struct {
	jsonrpc.Frames
	t     *testing.T
	mu    sync.Mutex
	check *acp1.Checker
}

func (c *checked) Read() ([]byte, error) {
	frame, err := c.Frames.Read()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		// This protocol's ids are any strings; our own agent's are UUIDs.
		plain := keyID.ReplaceAll(frame, []byte(`"sessionId":"11111111-2222-4333-8444-555555555555"`))
		if bad := c.check.Agent(plain); bad != nil {
			c.t.Errorf("%v\n%s", bad, frame)
		}
	}
	return frame, err
}

var keyID = regexp.MustCompile(`"sessionId":"agent:[^"]*"`)

func (c *checked) Write(frame []byte) error {
	c.mu.Lock()
	c.check.Client(frame)
	c.mu.Unlock()
	return c.Frames.Write(frame)
}

func (r *rig) update(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	var p struct {
		Update struct {
			SessionUpdate, Title, Status, ToolCallID, Kind, MessageID, CurrentModeID string
			Content                                                                  json.RawMessage
			Locations                                                                []struct{ Path string }
			Used, Size                                                               int
			AvailableCommands                                                        []struct{ Name string }
			Entries                                                                  []struct{ Content, Status string }
		}
	}
	if err := json.Unmarshal(params, &p); err != nil {
		r.t.Error(err)
	}
	u := p.Update
	var text struct{ Text string }
	_ = json.Unmarshal(u.Content, &text)
	line := ""
	switch u.SessionUpdate {
	case "agent_message_chunk":
		line = "say " + text.Text
	case "agent_thought_chunk":
		line = "think " + text.Text
	case "user_message_chunk":
		line = "user " + text.Text
	case "tool_call":
		line = strings.TrimSpace(fmt.Sprintf("call %s %s %s %s", u.ToolCallID, u.Kind, u.Title, places(u.Locations)))
	case "tool_call_update":
		var list []struct {
			Type    string
			Content struct{ Text string }
		}
		_ = json.Unmarshal(u.Content, &list)
		line = "done " + u.ToolCallID + " " + u.Status
		for _, c := range list {
			line += " " + c.Type + ":" + c.Content.Text
		}
	case "usage_update":
		line = fmt.Sprintf("usage %d/%d", u.Used, u.Size)
	case "current_mode_update":
		line = "mode " + u.CurrentModeID
	case "plan":
		line = fmt.Sprint("plan ", u.Entries)
	case "session_info_update", "available_commands_update", "config_option_update":
		return nil, nil
	default:
		line = u.SessionUpdate
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Pieces of one message are one line.
	if n := len(r.updates); n > 0 && text.Text != "" && r.seen[n-1] == u.SessionUpdate+u.MessageID {
		r.updates[n-1] += text.Text
		return nil, nil
	}
	r.updates, r.seen = append(r.updates, line), append(r.seen, u.SessionUpdate+u.MessageID)
	return nil, nil
}

func places(list []struct{ Path string }) string {
	var out []string
	for _, l := range list {
		out = append(out, l.Path)
	}
	return strings.Join(out, ",")
}

func (r *rig) permission(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	return func(ctx context.Context) (jsonrpc.Reply, error) {
		if r.answer == nil {
			<-ctx.Done()
			return jsonrpc.Reply{}, context.Cause(ctx)
		}
		result, err := r.answer(ctx, params)
		return jsonrpc.Reply{Result: result}, err
	}, nil
}

// told are the updates since the last call.
func (r *rig) told() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.updates
	r.updates, r.seen = nil, nil
	return out
}

// call asks the bridge; it is a failure when that fails.
func (r *rig) call(method, params string) map[string]any {
	r.t.Helper()
	out, err := r.try(method, params)
	if err != nil {
		r.t.Fatalf("%s: %v", method, err)
	}
	return out
}

func (r *rig) try(method, params string) (map[string]any, error) {
	raw, err := r.conn.Call(r.t.Context(), method, json.RawMessage(params))
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		r.t.Fatalf("%s: %v", method, err)
	}
	return out, nil
}

// later asks and returns how to wait for the answer.
func (r *rig) later(method, params string) func() (map[string]any, error) {
	type answer struct {
		out map[string]any
		err error
	}
	got := make(chan answer, 1)
	go func() {
		out, err := r.try(method, params)
		got <- answer{out, err}
	}()
	synctest.Wait()
	return func() (map[string]any, error) { a := <-got; return a.out, a.err }
}

func (r *rig) begin() {
	r.t.Helper()
	r.call("initialize", `{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
}

// open begins and makes a session.
func (r *rig) open() string {
	r.t.Helper()
	r.begin()
	id := r.call("session/new", `{"cwd":"/ws","mcpServers":[]}`)["sessionId"].(string)
	r.told()
	return id
}

// says is the params of a prompt.
func says(session, text string) string {
	raw, _ := json.Marshal(map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": text}}})
	return string(raw)
}

// code is the number of an error answer, 0 for none.
func code(err error) int {
	var e *jsonrpc.RemoteError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
