package openclaw_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

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
