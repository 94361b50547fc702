package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/bridge"
	"github.com/berth-dev/berth/adapters/jsonrpc"
)

// bridgeScript is a turn with words, thoughts, two tools that ask, and a plan.
const bridgeScript = `
thought "What is there? "
chunks 25 "word " every 500us
call shell {"command":"echo ran >> log.txt"}
--- next
chunks 10 "more " every 500us
call update_plan {"entries":[{"content":"Write","status":"in_progress","priority":"high"}]}
call write_file {"path":"a.txt","content":"one\ntwo\n"}
--- next
chunks 25 "last " every 500us
usage input=10 output=20
`

// tunnel is a way to a gateway that can be cut.
type tunnel struct {
	l     net.Listener
	to    string
	mu    sync.Mutex
	conns map[net.Conn]bool
	shut  bool // nothing gets through
	all   sync.WaitGroup
}

func newTunnel(t *testing.T, to string) *tunnel {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &tunnel{l: l, to: to, conns: map[net.Conn]bool{}}
	u.all.Go(u.serve)
	t.Cleanup(func() {
		_ = l.Close()
		u.cut()
		u.all.Wait()
	})
	return u
}

func (u *tunnel) url() string { return "ws://" + u.l.Addr().String() + "/acp" }

func (u *tunnel) serve() {
	for {
		c, err := u.l.Accept()
		if err != nil {
			return
		}
		u.mu.Lock()
		shut := u.shut
		u.mu.Unlock()
		if shut {
			_ = c.Close()
			continue
		}
		d, err := net.Dial("tcp", u.to)
		if err != nil {
			_ = c.Close()
			continue
		}
		for from, to := range map[net.Conn]net.Conn{c: d, d: c} {
			u.mu.Lock()
			u.conns[from] = true
			u.mu.Unlock()
			u.all.Go(func() {
				_, _ = io.Copy(to, from)
				_ = from.Close()
				_ = to.Close()
				u.mu.Lock()
				delete(u.conns, from)
				u.mu.Unlock()
			})
		}
	}
}

// cut resets every connection; what is under way is lost.
func (u *tunnel) cut() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for c := range u.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
}

// block keeps everything out, or lets it in again.
func (u *tunnel) block(shut bool) {
	u.mu.Lock()
	u.shut = shut
	u.mu.Unlock()
	if shut {
		u.cut()
	}
}

// editor is the far end of a bridge. It keeps what it is told.
type editor struct {
	t      *testing.T
	in     *io.PipeWriter
	frames chan string // what came
	done   chan error  // how the bridge ended
	calls  int
}

// bridged starts a bridge to url.
func bridged(t *testing.T, cfg *Config, o BridgeOptions, plain bool) *editor {
	t.Helper()
	if testing.Verbose() {
		o.Verbose = t.Output()
	}
	find := &gatewayFinder{cfg: cfg, o: o}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e := &editor{t: t, in: inW, frames: make(chan string, 4096), done: make(chan error, 1)}
	b := newBridge(find, jsonrpc.NewStdio(inR, outW, 0), o)
	if plain {
		b = newPlainBridge(find, jsonrpc.NewStdio(inR, outW, 0), o)
	}
	var all sync.WaitGroup
	all.Go(func() {
		err := b.Run(context.Background())
		_ = outW.Close()
		e.done <- err
	})
	all.Go(func() {
		frames := jsonrpc.NewStdio(outR, io.Discard, 0)
		for {
			frame, err := frames.Read()
			if err != nil {
				close(e.frames)
				return
			}
			e.frames <- string(frame)
		}
	})
	t.Cleanup(func() {
		_ = inW.Close()
		all.Wait()
	})
	return e
}

func (e *editor) send(format string, args ...any) {
	e.t.Helper()
	if _, err := fmt.Fprintf(e.in, format+"\n", args...); err != nil {
		e.t.Fatalf("write: %v", err)
	}
}

// patience bounds everything that a test waits for. It matters only when
// something is wrong.
const patience = time.Minute

// frame is a message to the editor, as far as tests look at it.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Options   []struct {
			OptionID string `json:"optionId"`
		} `json:"options"`
		Update   map[string]any `json:"update"`
		ToolCall struct {
			ID string `json:"toolCallId"`
		} `json:"toolCall"`
	} `json:"params"`
	Result map[string]any `json:"result"`
	Error  *struct {
		Code    int
		Message string
	} `json:"error"`
}

// next returns the next frame, raw and read.
func (e *editor) next() (string, frame) {
	e.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case raw, ok := <-e.frames:
		if !ok {
			e.t.Fatalf("the bridge ended: %v", <-e.done)
		}
		var f frame
		if err := json.Unmarshal([]byte(raw), &f); err != nil {
			e.t.Fatalf("%s: %v", raw, err)
		}
		return raw, f
	case <-limit.C:
		e.t.Fatalf("nothing came")
	}
	return "", frame{}
}

// call sends a request, answers what is asked meanwhile, and returns all that
// came until the answer, which is last.
func (e *editor) call(method, params string) (log []string, answer frame) {
	e.t.Helper()
	e.calls++
	id := fmt.Sprint(e.calls)
	e.send(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
	for {
		raw, f := e.next()
		log = append(log, raw)
		if f.Method == "session/request_permission" {
			e.send(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":%q}}}`, f.ID, f.Params.Options[0].OptionID)
		}
		if f.Method == "" && string(f.ID) == id {
			return log, f
		}
	}
}

func (e *editor) initialize() {
	e.t.Helper()
	if _, f := e.call("initialize", `{"protocolVersion":1}`); f.Error != nil {
		e.t.Fatalf("initialize: %s", f.Error.Message)
	}
}

// turn opens a session in a directory of its own, runs the script's turn and
// returns all that the editor saw.
func (e *editor) turn(dir string) []string {
	e.t.Helper()
	log, f := e.call("session/new", `{"cwd":`+quoted(dir)+`,"mcpServers":[]}`)
	for f.Error != nil && strings.Contains(f.Error.Message, "ask again if it was not") { // without links
		log, f = e.call("session/new", `{"cwd":`+quoted(dir)+`,"mcpServers":[]}`)
	}
	if f.Error != nil {
		e.t.Fatalf("session/new: %s", f.Error.Message)
	}
	session := f.Result["sessionId"].(string)
	more, f := e.call("session/prompt", `{"sessionId":"`+session+`","prompt":[{"type":"text","text":"go"}]}`)
	if f.Error != nil {
		e.t.Errorf("session/prompt: %s", f.Error.Message)
	}
	end, f := e.call("session/close", `{"sessionId":"`+session+`"}`)
	if f.Error != nil {
		e.t.Errorf("session/close: %s", f.Error.Message)
	}
	return append(append(log, more...), end...)
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // a string has an encoding
	return string(b)
}

var (
	uuids  = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	outIDs = regexp.MustCompile(`zc-out-\d+`)
	ownIDs = regexp.MustCompile(`^(\{"jsonrpc":"2.0","id":)\d+`)
	times  = regexp.MustCompile(`"updatedAt":"[^"]*",?`)
	spans  = regexp.MustCompile(`\b\d+ ms\b|("duration_ms":)\d+`)
)

// alike makes the logs of two runs of the same turn equal: ids are counted.
func alike(log []string, dir string) []string {
	names := map[string]string{}
	count := func(kind string) func(string) string {
		return func(id string) string {
			if names[id] == "" {
				names[id] = fmt.Sprintf("%s%d", kind, len(names))
			}
			return names[id]
		}
	}
	var out []string
	for _, line := range folded(log) {
		line = strings.ReplaceAll(line, dir, "DIR")
		line = uuids.ReplaceAllStringFunc(line, count("u"))
		line = outIDs.ReplaceAllStringFunc(line, count("z"))
		line = ownIDs.ReplaceAllString(line, "${1}0")
		line = spans.ReplaceAllString(line, "${1}0")
		out = append(out, times.ReplaceAllString(line, ""))
	}
	return out
}

// folded makes logs comparable that differ in what a turn leaves to chance: how
// the text of a message is cut into chunks, whether a short call is seen
// running, and the order of what calls tell that run side by side.
func folded(log []string) []string {
	var out []string
	var texts map[string]any // of the message at the end of out
	start := 0               // of what is told side by side
	for _, line := range log {
		var whole map[string]any
		if json.Unmarshal([]byte(line), &whole) != nil {
			out = append(out, "no JSON: "+line)
			continue
		}
		params, _ := whole["params"].(map[string]any)
		update, _ := params["update"].(map[string]any)
		content, _ := update["content"].(map[string]any)
		text, isText := content["text"].(string)
		if isText && texts != nil && texts["messageId"] == update["messageId"] && texts["sessionUpdate"] == update["sessionUpdate"] {
			before := texts["content"].(map[string]any)
			before["text"] = before["text"].(string) + text
			out[len(out)-1] = encoded(texts)
			continue
		}
		texts = nil
		switch {
		case isText:
			slices.Sort(out[start:])
			texts = update
			out = append(out, encoded(update))
			start = len(out)
		case update["status"] == "in_progress" && len(update) == 3:
		case update == nil: // an answer or a question
			slices.Sort(out[start:])
			out = append(out, line)
			start = len(out)
		default:
			out = append(out, line)
		}
	}
	slices.Sort(out[start:])
	return out
}

// gist is what a log says, however it is cut up: each message as a whole, each
// call with its outcome, each question once, the newest of each state, and the
// answers.
func gist(log []string, dir string) []string {
	var order []string
	things := map[string]string{}
	put := func(key, value string) {
		if _, ok := things[key]; !ok {
			order = append(order, key)
		}
		things[key] = value
	}
	for _, line := range alike(log, dir) {
		var f struct {
			Method string
			Result struct{ StopReason string }
			Error  json.RawMessage
			Params struct {
				Update struct {
					SessionUpdate, MessageID, ToolCallID, Status, Title string
					Content                                             json.RawMessage
				}
				ToolCall struct{ ToolCallID string }
			}
		}
		var chunk struct {
			Content                  struct{ Text string }
			MessageID, SessionUpdate string
		}
		if json.Unmarshal([]byte(line), &chunk) == nil && chunk.MessageID != "" {
			key := chunk.SessionUpdate + " " + chunk.MessageID
			put(key, things[key]+chunk.Content.Text)
			continue
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			put(line, err.Error())
		}
		u := f.Params.Update
		switch {
		case f.Method == "$/cancel_request":
		case f.Method == "session/request_permission":
			put("question "+f.Params.ToolCall.ToolCallID, "asked")
		case f.Method == "":
			put(fmt.Sprintf("answer %d", len(order)), f.Result.StopReason+string(f.Error))
		case u.ToolCallID != "" && u.Status != "completed" && u.Status != "failed":
			put("call "+u.ToolCallID, things["call "+u.ToolCallID])
		case u.ToolCallID != "":
			put("call "+u.ToolCallID, things["call "+u.ToolCallID]+u.Status+string(u.Content))
		default:
			put("state "+u.SessionUpdate, line)
		}
	}
	var out, states []string
	for _, key := range order {
		if strings.HasPrefix(key, "answer") {
			out = append(out, "answer: "+things[key])
		} else if strings.HasPrefix(key, "state") {
			states = append(states, key+": "+things[key])
		} else {
			out = append(out, key+": "+things[key])
		}
	}
	slices.Sort(states)
	return append(out, states...)
}

func encoded(v any) string {
	b, _ := json.Marshal(v) // it was JSON before
	return string(b)
}

// ran checks that every tool of the turn ran once.
func ran(t *testing.T, dir string) {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "log.txt"))
	if err != nil || string(log) != "ran\n" {
		t.Errorf("the command's log holds %q, %v; want one run", log, err)
	}
	if a, err := os.ReadFile(filepath.Join(dir, "a.txt")); err != nil || string(a) != "one\ntwo\n" {
		t.Errorf("a.txt holds %q, %v", a, err)
	}
}

// gatewayFor starts a daemon whose agent plays bridgeScript.
func gatewayFor(t *testing.T, settings string) (*Config, *Daemon) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	script := filepath.Join(t.TempDir(), "turn.script")
	if err := os.WriteFile(script, []byte(bridgeScript), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := load(t, `
[gateway]
listen = "127.0.0.1:0"
`+settings+`
[acp]
max_sessions = 1000
[store]
required = true # a busy machine may take longer than initialize waits
[providers.story]
type = "scripted"
script = `+quoted(script)+`
[agents.default]
model = "story/main"
`)
	d, err := StartDaemon(t.Context(), cfg, WithLog(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return cfg, d
}

// TestBridge_Cuts cuts the socket at random moments of turns with tools and
// questions. The editor must see what it sees when nothing is cut, and no tool
// may run twice: over links, and with a gateway that has none.
func TestBridge_Cuts(t *testing.T) {
	t.Run("a gateway with links", func(t *testing.T) { cutTurns(t, false, 200, 40*time.Millisecond) })
	t.Run("a gateway without links", func(t *testing.T) { cutTurns(t, true, 60, 150*time.Millisecond) })
}

func cutTurns(t *testing.T, plain bool, cuts int, pause time.Duration) {
	if testing.Short() {
		cuts /= 10
	}
	cfg, d := gatewayFor(t, "")
	token, err := BridgeToken(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	way := newTunnel(t, d.Info().Address)
	e := bridged(t, cfg, BridgeOptions{URL: way.url(), Token: NewSecret(token)}, plain)
	e.initialize()
	dir := t.TempDir()
	look := alike
	if plain {
		look = gist
	}
	want := look(e.turn(dir), dir)
	ran(t, dir)

	stop, done := make(chan struct{}), make(chan struct{})
	var cutter sync.WaitGroup
	cutter.Go(func() {
		defer close(done)
		rnd := rand.New(rand.NewPCG(1, 2))
		for range cuts {
			select {
			case <-stop:
				return
			case <-time.After(rand.N(pause) + time.Duration(rnd.IntN(1000))):
				way.cut()
			}
		}
	})
	defer cutter.Wait()
	defer close(stop)
	for turns, over := 0, false; !over; turns++ {
		dir := t.TempDir()
		got := look(e.turn(dir), dir)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("turn %d differs from the undisturbed one (-want +got):\n%s", turns, diff)
		}
		ran(t, dir)
		select {
		case <-done:
			t.Logf("%d cuts in %d turns", cuts, turns+1)
			over = true
		default:
		}
	}
	_ = e.in.Close()
	if err := <-e.done; err != nil {
		t.Errorf("the bridge ended with %v", err)
	}
	e.done <- nil
}

// TestBridge_Away covers what becomes of a session whose bridge is away.
func TestBridge_Away(t *testing.T) {
	cfg, d := gatewayFor(t, "")
	token, err := BridgeToken(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	way := newTunnel(t, d.Info().Address)
	first := bridged(t, cfg, BridgeOptions{URL: way.url(), Token: NewSecret(token)}, false)
	first.initialize()
	_, f := first.call("session/new", `{"cwd":`+quoted(t.TempDir())+`,"mcpServers":[]}`)
	session, _ := f.Result["sessionId"].(string)
	second := bridged(t, cfg, BridgeOptions{}, false)
	second.initialize()
	load := `{"sessionId":"` + session + `","cwd":` + quoted(t.TempDir()) + `,"mcpServers":[]}`
	if _, f := second.call("session/load", load); f.Error == nil || f.Error.Code != -31003 {
		t.Fatalf("a session whose bridge is there was given to another: %+v", f)
	}
	way.block(true)
	deadline := time.Now().Add(patience)
	for {
		if _, f = second.call("session/load", load); f.Error == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a session whose bridge is away is kept: %s", f.Error.Message)
		}
	}
	way.block(false)
	if _, f := first.call("session/prompt", `{"sessionId":"`+session+`","prompt":[{"type":"text","text":"go"}]}`); f.Error == nil || f.Error.Code != -32002 {
		t.Errorf("the first bridge prompts a session that it has lost: %+v", f)
	}
}

// TestBridge_Restart has a daemon start anew, with another port and another
// token for bridges, between two turns and within one.
func TestBridge_Restart(t *testing.T) {
	cfg, d := gatewayFor(t, "")
	e := bridged(t, cfg, BridgeOptions{}, false)
	e.initialize()
	_, f := e.call("session/new", `{"cwd":`+quoted(t.TempDir())+`,"mcpServers":[]}`)
	session, _ := f.Result["sessionId"].(string)
	prompt := `{"sessionId":"` + session + `","prompt":[{"type":"text","text":"go"}]}`
	if log, f := e.call("session/prompt", prompt); f.Result["stopReason"] != "end_turn" {
		t.Fatalf("the turn before: %v", log)
	}
	restart := func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Fatalf("stop: %v", err)
		}
		next, err := StartDaemon(t.Context(), cfg, WithLog(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		*d = *next
	}
	restart()
	log, f := e.call("session/list", `{}`)
	if len(log) != 1 || f.Error != nil {
		t.Errorf("after the restart came %v", log)
	}
	e.send(`{"jsonrpc":"2.0","id":"p","method":"session/prompt","params":%s}`, prompt)
	for asked := false; !asked; { // the turn is under way
		_, f := e.next()
		asked = f.Method == "session/request_permission"
	}
	restart()
	var cancelled, answered bool
	for !answered {
		raw, f := e.next()
		cancelled = cancelled || f.Method == "$/cancel_request"
		if answered = string(f.ID) == `"p"`; answered {
			t.Logf("the turn was answered %s", raw)
		}
	}
	log, f = e.call("session/close", `{"sessionId":"`+session+`"}`)
	if f.Error != nil {
		t.Errorf("the session is not there: %v", log)
	}
	for _, line := range log {
		cancelled = cancelled || strings.Contains(line, "$/cancel_request")
	}
	if !cancelled {
		t.Errorf("the editor still holds the question of the daemon before")
	}
}

// newPlainBridge is a bridge to gateways without links.
func newPlainBridge(find *gatewayFinder, frames jsonrpc.Frames, o BridgeOptions) *bridge.Bridge {
	c := bridgeConfig(find, o)
	c.Dial = func(ctx context.Context, _, _ string) (bridge.Dialled, error) { return find.dial(ctx, "", "") }
	return bridge.New(frames, c)
}
