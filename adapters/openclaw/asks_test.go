package openclaw_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

// asking is a run that asks for permission as the payload says, which has %s
// for the run, and waits.
func asking(payloads ...string) func(r *openclawtest.Run) {
	return func(r *openclawtest.Run) {
		r.Say("hm")
		for _, p := range payloads {
			r.Raw("exec.approval.requested", fmt.Sprintf(p, r.ID))
		}
		r.Hold(nil)
	}
}

// asked counts the requests that the editor gets, and those that are withdrawn.
type asked struct {
	open, gone int
	last       json.RawMessage
}

func (a *asked) answer(r *rig) func(context.Context, json.RawMessage) (any, error) {
	return func(ctx context.Context, p json.RawMessage) (any, error) {
		r.mu.Lock()
		a.open, a.last = a.open+1, p
		r.mu.Unlock()
		<-ctx.Done()
		r.mu.Lock()
		a.open, a.gone = a.open-1, a.gone+1
		r.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

func TestPermission_Odd(t *testing.T) {
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"a%d","request":{"command":"ls","runId":"%%s"}}`, i)
	}
	tests := []struct {
		name       string
		payloads   []string
		after      time.Duration
		open, gone int
		with       string // part of what the editor was asked
	}{
		{"no call is named", []string{`{"id":"a","request":{"command":"ls","runId":"%s"}}`}, 0, 1, 0, `"toolCallId":"approval:a"`},
		{
			"a clock that is behind ours", []string{`{"id":"a","createdAtMs":1000,"expiresAtMs":61000,"request":{"command":"ls","runId":"%s"}}`},
			59 * time.Second, 1, 0, "ls",
		},
		{
			"too late", []string{`{"id":"a","createdAtMs":1000,"expiresAtMs":61000,"request":{"command":"ls","runId":"%s"}}`},
			61 * time.Second, 0, 1, "ls",
		},
		{"twice", []string{`{"id":"a","request":{"command":"ls","runId":"%s"}}`, `{"id":"a","request":{"command":"ls","runId":"%s"}}`}, 0, 1, 0, "ls"},
		{"without end", many, 0, 64, 0, "ls"},
		{"wrong types", []string{`{"id":5,"request":"%s"}`, `{"id":"a","request":{"runId":["%s"]}}`}, 0, 0, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, with{gateway: openclawtest.Config{Script: asking(tt.payloads...)}}, func(r *rig) {
				a := &asked{}
				r.answer = a.answer(r)
				id := r.open()
				r.later("session/prompt", says(id, "hi"))
				time.Sleep(tt.after)
				synctest.Wait()
				if a.open != tt.open || a.gone != tt.gone || !strings.Contains(string(a.last), tt.with) {
					t.Errorf("%d are open and %d withdrawn, want %d and %d; asked %s", a.open, a.gone, tt.open, tt.gone, a.last)
				}
				for _, l := range r.told() {
					if strings.HasPrefix(l, "call  ") {
						t.Errorf("a call without an id: %s", l)
					}
				}
			})
		})
	}
}

// TestPermission_Review has a gateway that tells something while the list of
// open requests is on its way: that is newer than the list.
func TestPermission_Review(t *testing.T) {
	const ask = `{"id":"%s","request":{"command":"ls","runId":"%s"}}`
	tests := []struct {
		name       string
		meanwhile  func(o *openclawtest.Odd, run string)
		list       func(run string) string
		open, gone int
	}{
		{"a new one", func(o *openclawtest.Odd, run string) {
			o.Send(`{"type":"event","event":"exec.approval.requested","payload":` + fmt.Sprintf(ask, "b", run) + `}`)
		}, func(run string) string { return `[` + fmt.Sprintf(ask, "a", run) + `]` }, 2, 0},
		{"an answer", func(o *openclawtest.Odd, _ string) {
			o.Send(`{"type":"event","event":"exec.approval.resolved","payload":{"id":"c"}}`)
		}, func(run string) string {
			return `[` + fmt.Sprintf(ask, "a", run) + `,` + fmt.Sprintf(ask, "c", run) + `]`
		}, 1, 0},
		{"no list", func(*openclawtest.Odd, string) {}, func(string) string { return `{"pending":{}}` }, 1, 0},
		{"an empty one", func(*openclawtest.Odd, string) {}, func(string) string { return `{"pending":[]}` }, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := ""
			script := func(r *openclawtest.Run) {
				run = r.ID
				r.Raw("exec.approval.requested", fmt.Sprintf(ask, "a", r.ID))
				r.Hold(nil)
			}
			odd := func(o *openclawtest.Odd) bool {
				if o.Method != "exec.approval.list" || run == "" {
					return false
				}
				tt.meanwhile(o, run)
				time.Sleep(time.Second) // it is heard of first
				o.Send(`{"type":"res","id":"` + o.ID + `","ok":true,"payload":` + tt.list(run) + `}`)
				return true
			}
			play(t, with{gateway: openclawtest.Config{Script: script, Odd: odd}}, func(r *rig) {
				a := &asked{}
				r.answer = a.answer(r)
				id := r.open()
				r.later("session/prompt", says(id, "hi"))
				r.gw.Cut()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if a.open != tt.open || a.gone != tt.gone {
					t.Errorf("%d are open and %d withdrawn, want %d and %d", a.open, a.gone, tt.open, tt.gone)
				}
			})
		})
	}
}

// past is a transcript whose entries do not say what run they are of, in which
// the model has given the same name to two calls.
const past = `{"messages":[
 {"role":"user","content":"one"},
 {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"toolCall","id":"call_1","name":"read"}]},
 {"role":"toolResult","toolCallId":"call_1","toolName":"read","content":[{"type":"text","text":"r"}]},
 {"role":"toolResult","toolName":"read","content":[]},
 {"role":"user","content":"two"},
 {"role":"assistant","content":[{"type":"text","text":"b"},{"type":"toolCall","id":"call_1","name":"read"}]},
 {"role":"toolResult","toolCallId":"call_1","toolName":"read","content":[{"type":"text","text":"s"}]},
 {"role":"assistant","__openclaw":{"runId":"known"},"content":[{"type":"toolCall","id":"call_2","name":"read"}]},
 {"role":"toolResult","toolCallId":"call_2","toolName":"read","content":[{"type":"text","text":"t"}]}
],"hasMore":false}`

// TestLoad_Past loads it: no id is of two things.
func TestLoad_Past(t *testing.T) {
	odd := func(o *openclawtest.Odd) bool {
		if o.Method != "chat.history" {
			return false
		}
		o.Send(`{"type":"res","id":"` + o.ID + `","ok":true,"payload":` + strings.ReplaceAll(past, "\n", "") + `}`)
		return true
	}
	play(t, with{gateway: openclawtest.Config{Odd: odd}}, func(r *rig) {
		id := r.open()
		r.call("session/load", `{"sessionId":"`+id+`","cwd":"/ws","mcpServers":[]}`)
		synctest.Wait()
		said := map[string]bool{}
		for _, s := range r.seen {
			if strings.HasPrefix(s, "agent_message_chunk") && said[s] {
				t.Errorf("two messages are %s", s)
			}
			said[s] = true
		}
		want := []string{
			"user one", "say a", "call call_1 read read", "done call_1 completed content:r",
			"user two", "say b", "call call_1@past-2 read read", "done call_1@past-2 completed content:s",
			"call call_2 read read", "done call_2 completed content:t",
		}
		if d := cmp.Diff(want, r.told()); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
	})
}

// TestLoad_Own loads a session in the middle of the editor's own turn: what
// goes on is not told to have failed.
func TestLoad_Own(t *testing.T) {
	var on chan struct{}
	script := func(r *openclawtest.Run) {
		r.Raw("agent", `{"stream":"tool","data":{"phase":"start","toolCallId":"call_1","name":"exec"}}`)
		r.Tool("read", nil, "text", false)
		r.Exec("ls", "allow-once", "deny")
	}
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		on = make(chan struct{})
		r.answer = func(ctx context.Context, _ json.RawMessage) (any, error) {
			<-on
			return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "allow-once"}}, nil
		}
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		r.told()
		r.call("session/load", `{"sessionId":"`+id+`","cwd":"/ws","mcpServers":[]}`)
		for _, l := range r.told() {
			if strings.Contains(l, "failed") {
				t.Errorf("told %s", l)
			}
		}
		close(on)
		if out, err := answer(); err != nil || out["stopReason"] != "end_turn" {
			t.Errorf("answer %v, %v", out, err)
		}
		if told := r.told(); !strings.Contains(strings.Join(told, "|"), "done call_2 completed content:ran") {
			t.Errorf("told %q", told)
		}
	})
}

// TestLoad_Failed has a session that cannot be loaded: it is not open then.
func TestLoad_Failed(t *testing.T) {
	odd := func(o *openclawtest.Odd) bool {
		if o.Method != "chat.history" {
			return false
		}
		o.Send(`{"type":"res","id":"` + o.ID + `","ok":false,"error":{"code":"UNAVAILABLE","message":"the disk is full"}}`)
		return true
	}
	play(t, with{gateway: openclawtest.Config{Odd: odd}}, func(r *rig) {
		r.gw.Put("agent:main:x", "/ws", "")
		r.begin()
		if _, err := r.try("session/load", `{"sessionId":"agent:main:x","cwd":"/ws","mcpServers":[]}`); code(err) != -32603 || !strings.Contains(err.Error(), "disk is full") {
			t.Errorf("error %v", err)
		}
		if _, err := r.try("session/prompt", says("agent:main:x", "hi")); code(err) != -32002 {
			t.Errorf("error %v", err)
		}
	})
}

// TestList_Moved has a session that comes to the front between two pages of
// one: the pages go on behind it.
func TestList_Moved(t *testing.T) {
	play(t, with{}, func(r *rig) {
		for _, key := range []string{"agent:main:c", "agent:main:b", "agent:main:a"} {
			r.gw.Put(key, "/ws", "")
		}
		r.begin()
		seen := map[any]int{}
		params := `{"_meta":{"limit":1}}`
		for page := 0; page < 10; page++ {
			out := r.call("session/list", params)
			for _, s := range out["sessions"].([]any) {
				seen[s.(map[string]any)["sessionId"]]++
			}
			if page == 0 {
				r.gw.Put("agent:main:c", "/ws", "")
			}
			next, more := out["nextCursor"].(string)
			if !more {
				break
			}
			params = `{"cursor":"` + next + `","_meta":{"limit":1}}`
		}
		if seen["agent:main:a"] != 1 || seen["agent:main:b"] != 1 {
			t.Errorf("seen %v", seen)
		}
	})
}

// TestPermission_TooLate has a yes that the gateway has not heard of when the
// turn is cancelled: it is no yes any more.
func TestPermission_TooLate(t *testing.T) {
	for range 20 { // the order of two goroutines
		play(t, with{gateway: openclawtest.Config{Script: func(r *openclawtest.Run) { r.Exec("rm", "allow-once", "deny") }}}, func(r *rig) {
			r.answer = func(context.Context, json.RawMessage) (any, error) {
				r.gw.Shut(true)
				return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "allow-once"}}, nil
			}
			id := r.open()
			answer := r.later("session/prompt", says(id, "hi"))
			r.cancel(id)
			if out, err := answer(); err != nil || out["stopReason"] != "cancelled" {
				t.Errorf("answer %v, %v", out, err)
			}
			r.gw.Shut(false)
			time.Sleep(10 * time.Second)
			for _, q := range r.gw.Requests("exec.approval.resolve") {
				if strings.Contains(string(q.Params), "allow") {
					t.Errorf("the gateway was told %s", q.Params)
				}
			}
			if n := r.gw.Running(); n != 0 {
				t.Errorf("%d runs go on", n)
			}
		})
	}
}

// TestObserved_Many has a gateway that begins runs and ends none.
func TestObserved_Many(t *testing.T) {
	play(t, with{}, func(r *rig) {
		id := r.open()
		for i := range 300 {
			r.gw.Event("agent", fmt.Sprintf(`{"runId":"r%d","sessionKey":"agent:main:acp-bridge:%s","stream":"tool","data":{"phase":"start","toolCallId":"c%d","name":"read"}}`, i, id, i))
		}
		open := 0
		for _, l := range r.told() {
			switch {
			case strings.HasPrefix(l, "call "):
				open++
			case strings.HasPrefix(l, "done "):
				open--
			}
		}
		if open != 64 {
			t.Errorf("%d calls are open, want 64", open)
		}
	})
}
