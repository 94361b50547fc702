package transcript

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
)

// agent is a small ACP agent for the player to talk to. Prompts do what their
// text says.
type agent struct {
	t    *testing.T
	conn *jsonrpc.Conn

	mu       sync.Mutex
	sessions int
	turns    map[string]context.CancelCauseFunc
}

// world starts agents for a player and joins them.
type world struct {
	t      *testing.T
	agents sync.WaitGroup
	ids    *jsonrpc.IDs
	exit   chan int
	kill   func()
}

func newWorld(t *testing.T) *world {
	return &world{t: t, ids: jsonrpc.NewIDs("zc-out-"), exit: make(chan int, 10)}
}

func (w *world) connect(context.Context, string) (jsonrpc.Frames, error) {
	aR, cW := io.Pipe()
	cR, aW := io.Pipe()
	a := &agent{t: w.t, turns: map[string]context.CancelCauseFunc{}}
	frames := jsonrpc.NewStdio(aR, aW, 0)
	w.kill = func() { _ = frames.Close() }
	a.conn = jsonrpc.NewConn(frames, jsonrpc.Options{IDs: w.ids, Linger: time.Second})
	w.agents.Go(func() {
		_ = a.conn.Serve(context.Background(), a)
		w.exit <- 0
	})
	return jsonrpc.NewStdio(cR, cW, 0), nil
}

// play plays a script against a fresh agent, in a bubble or out of it.
func (w *world) play(ctx context.Context, script string, change ...func(*Options)) (*Run, error) {
	s, err := Parse(script)
	if err != nil {
		w.t.Fatal(err)
	}
	o := Options{
		Connect: w.connect,
		Vars:    map[string]string{"WORK": "/w"},
		Kill:    func(context.Context, string) error { w.kill(); return nil },
		Exit:    func(context.Context) (int, error) { return <-w.exit, nil },
	}
	for _, f := range change {
		f(&o)
	}
	run, err := Play(ctx, s, o)
	w.agents.Wait()
	return run, err
}

func (a *agent) InputEnded(error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.turns {
		cancel(domain.Disconnected)
	}
}

func (a *agent) Method(name string) (jsonrpc.Method, bool) {
	answer := func(flags jsonrpc.Flags, f func() string) jsonrpc.Method {
		return jsonrpc.Method{Flags: flags, Admit: func(context.Context, json.RawMessage) (jsonrpc.Task, error) {
			return func(context.Context) (jsonrpc.Reply, error) {
				return jsonrpc.Reply{Result: json.RawMessage(f())}, nil
			}, nil
		}}
	}
	m := map[string]jsonrpc.Method{
		"initialize": answer(jsonrpc.Opens, func() string { return `{"protocolVersion":1,"agentInfo":{"name":"small"}}` }),
		"session/new": answer(0, func() string {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.sessions++
			return fmt.Sprintf(`{"sessionId":"s-%d","modes":null}`, a.sessions)
		}),
		"session/prompt": {Admit: a.prompt},
		"session/cancel": {Notify: func(_ context.Context, params json.RawMessage) (jsonrpc.Task, error) {
			var p struct{ SessionID string }
			_ = json.Unmarshal(params, &p)
			a.mu.Lock()
			defer a.mu.Unlock()
			if cancel := a.turns[p.SessionID]; cancel != nil {
				cancel(domain.CancelledByClient)
			}
			return nil, nil
		}},
		"noise": {Admit: func(context.Context, json.RawMessage) (jsonrpc.Task, error) {
			return func(ctx context.Context) (jsonrpc.Reply, error) {
				return jsonrpc.Reply{}, a.conn.Send(ctx, []byte("starting up..."))
			}, nil
		}},
	}[name]
	return m, m.Admit != nil || m.Notify != nil
}

// prompt admits a turn whose text chooses what happens.
func (a *agent) prompt(ctx context.Context, params json.RawMessage) (jsonrpc.Task, error) {
	var p struct {
		SessionID string
		Prompt    []struct{ Text string }
	}
	if err := json.Unmarshal(params, &p); err != nil || len(p.Prompt) == 0 {
		return nil, domain.Errorf(domain.InvalidArgument, "prompt must be a list of blocks")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a.mu.Lock()
	a.turns[p.SessionID] = cancel
	a.mu.Unlock()
	turn := &turn{a, ctx, p.SessionID}
	return func(context.Context) (jsonrpc.Reply, error) {
		defer cancel(nil)
		switch p.Prompt[0].Text {
		case "go":
			return turn.tool()
		case "late":
			return jsonrpc.Reply{Result: json.RawMessage(`{"stopReason":"end_turn"}`), Then: func(ctx context.Context) {
				turn.text(ctx, "late")
			}}, nil
		case "wait":
			<-ctx.Done()
			return jsonrpc.Reply{Result: json.RawMessage(`{"stopReason":"cancelled"}`)}, nil
		}
		turn.say("Hello ", "again.")
		return jsonrpc.Reply{Result: json.RawMessage(`{"stopReason":"end_turn"}`)}, nil
	}, nil
}

type turn struct {
	*agent
	ctx     context.Context
	session string
}

func (t *turn) text(ctx context.Context, s string) {
	_ = t.conn.Notify(ctx, "session/update", map[string]any{"sessionId": t.session, "update": map[string]any{
		"sessionUpdate": "agent_message_chunk", "messageId": "m-1", "content": map[string]string{"type": "text", "text": s}}})
}

func (t *turn) update(update string) {
	err := t.conn.Notify(context.Background(), "session/update", json.RawMessage(fmt.Sprintf(`{"sessionId":%q,"update":%s}`, t.session, update)))
	if err != nil && t.ctx.Err() == nil {
		t.t.Errorf("the agent could not send: %v", err)
	}
}

func (t *turn) say(pieces ...string) {
	for _, s := range pieces {
		t.text(t.ctx, s)
	}
	t.update(`{"sessionUpdate":"usage_update","used":10,"size":100}`)
}

// tool asks for a permission, starts a call and is cancelled in it.
func (t *turn) tool() (jsonrpc.Reply, error) {
	t.say("Let me look.")
	t.update(`{"sessionUpdate":"tool_call","toolCallId":"c-1","title":"sleep 60","status":"pending"}`)
	got, err := t.conn.Call(t.ctx, "session/request_permission", json.RawMessage(
		`{"sessionId":"`+t.session+`","toolCall":{"toolCallId":"c-1"},"options":[{"optionId":"allow-once"},{"optionId":"reject-once"}]}`))
	var answer struct{ Outcome struct{ OptionID string } }
	if err == nil && json.Unmarshal(got, &answer) == nil && answer.Outcome.OptionID == "allow-once" {
		t.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"in_progress"}`)
		<-t.ctx.Done()
	}
	t.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c-1","status":"failed"}`)
	if t.ctx.Err() != nil {
		return jsonrpc.Reply{Result: json.RawMessage(`{"stopReason":"cancelled"}`)}, nil
	}
	return jsonrpc.Reply{Result: json.RawMessage(`{"stopReason":"end_turn"}`)}, nil
}
