package openclaw_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

// cancel sends session/cancel.
func (r *rig) cancel(session string) {
	r.t.Helper()
	if err := r.conn.Notify(r.t.Context(), "session/cancel", json.RawMessage(`{"sessionId":"`+session+`"}`)); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

// TestCancel_Away cancels while there is no connection: the gateway is told
// once there is one, and before it gets the next prompt. Prompts that were
// cancelled behind the first one leave their places.
func TestCancel_Away(t *testing.T) {
	script := func(r *openclawtest.Run) {
		if strings.Contains(r.Message, "next") {
			r.Say("next")
			return
		}
		r.Hold(nil)
	}
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		id := r.open()
		for i := range 20 {
			answer := r.later("session/prompt", says(id, "hi"))
			if i == 0 {
				r.gw.Shut(true)
				synctest.Wait()
			}
			before := time.Now()
			r.cancel(id)
			if out, err := answer(); err != nil || out["stopReason"] != "cancelled" || time.Since(before) != 0 {
				t.Fatalf("answer %d: %v, %v after %s", i, out, err, time.Since(before))
			}
		}
		answer := r.later("session/prompt", says(id, "next"))
		time.Sleep(20 * time.Second)
		r.gw.Shut(false)
		if out, err := answer(); err != nil || out["stopReason"] != "end_turn" {
			t.Errorf("the next one: %v, %v", out, err)
		}
		if n := r.gw.Running(); n != 0 {
			t.Errorf("%d runs go on", n)
		}
		if n := len(r.gw.Requests("chat.send")); n != 2 {
			t.Errorf("%d prompts were sent, want 2", n)
		}
	})
}

// TestEnd_Away ends the editor's input while there is no connection.
func TestEnd_Away(t *testing.T) {
	play(t, with{gateway: openclawtest.Config{Script: func(r *openclawtest.Run) { r.Hold(nil) }}}, func(r *rig) {
		id := r.open()
		for _, cancelled := range []bool{true, false} {
			r.later("session/prompt", says(id, "hi"))
			if cancelled {
				r.gw.Shut(true)
				r.cancel(id)
			}
		}
		before := time.Now()
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if d := time.Since(before); d > 3*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}

// TestAborted has a prompt with which the connection ends each time: the
// gateway may have it all the same, and is told that nobody waits for it.
func TestAborted(t *testing.T) {
	odd := func(o *openclawtest.Odd) bool {
		if o.Method == "chat.send" {
			o.Cut()
		}
		return false
	}
	play(t, with{gateway: openclawtest.Config{Odd: odd, Script: func(r *openclawtest.Run) { r.Hold(nil) }}}, func(r *rig) {
		id := r.open()
		if _, err := r.try("session/prompt", says(id, "hi")); code(err) != -32603 {
			t.Errorf("error %v", err)
		}
		time.Sleep(10 * time.Second)
		if n := r.gw.Running(); n != 0 {
			t.Errorf("%d runs go on", n)
		}
	})
}

// TestRenamed has a gateway that calls the run otherwise than the prompt.
func TestRenamed(t *testing.T) {
	odd := func(o *openclawtest.Odd) bool {
		if o.Method == "chat.send" {
			o.Send(`{"type":"res","id":"` + o.ID + `","ok":true,"payload":{"runId":"other","status":"started"}}`)
			return true
		}
		return false
	}
	play(t, with{gateway: openclawtest.Config{Odd: odd}}, func(r *rig) {
		id := r.open()
		key := "agent:main:acp-bridge:" + id
		answer := r.later("session/prompt", says(id, "hi"))
		prompt := fmt.Sprintf("00000000-0000-4000-8000-%012d", 3) // the third id that was made
		r.gw.Event("session.message", `{"sessionKey":"`+key+`","message":{"role":"user","content":"hi","idempotencyKey":"`+prompt+`:user"}}`)
		r.gw.Event("agent", `{"runId":"other","sessionKey":"`+key+`","stream":"assistant","data":{"delta":"a","text":"a"}}`)
		r.gw.Event("chat", `{"runId":"other","sessionKey":"`+key+`","state":"final","message":"a"}`)
		if out, err := answer(); err != nil || out["stopReason"] != "end_turn" {
			t.Errorf("answer %v, %v", out, err)
		}
		r.gw.Event("session.message", `{"sessionKey":"`+key+`","message":{"role":"user","content":"hi","idempotencyKey":"`+prompt+`:user"}}`)
		if d := cmp.Diff([]string{"say a"}, r.told()); d != "" {
			t.Errorf("told (-want +got):\n%s", d)
		}
	})
}

// TestAckLost has a gateway whose answer to the prompt is lost, with a run that
// has ended until the bridge is back: it ended as the transcript says.
func TestAckLost(t *testing.T) {
	first := true
	odd := func(o *openclawtest.Odd) bool {
		if o.Method == "chat.send" && first {
			first = false
			o.Cut()
		}
		return false
	}
	script := func(r *openclawtest.Run) { r.Say("cut"); r.End("length") }
	play(t, with{gateway: openclawtest.Config{Odd: odd, Script: script}}, func(r *rig) {
		out, err := r.try("session/prompt", says(r.open(), "hi"))
		if err != nil || out["stopReason"] != "max_tokens" {
			t.Errorf("answer %v, %v", out, err)
		}
	})
}

// TestRestart_Unsaid has a gateway that does not tell that it was started
// anew.
func TestRestart_Unsaid(t *testing.T) {
	script := func(r *openclawtest.Run) { r.Say("half"); r.Hold(nil) }
	play(t, with{gateway: openclawtest.Config{NoBoot: true, Script: script}}, func(r *rig) {
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		r.gw.Restart()
		if _, err := answer(); code(err) != -32603 || !strings.Contains(err.Error(), "how the turn ended") {
			t.Errorf("error %v", err)
		}
	})
	// One that only seems to be another goes on with the run itself.
	odd := func(o *openclawtest.Odd) bool {
		if o.Method != "chat.history" {
			return false
		}
		o.Send(`{"type":"res","id":"` + o.ID + `","ok":true,"payload":{"messages":[],"hasMore":false}}`)
		return true
	}
	var on chan struct{}
	script = func(r *openclawtest.Run) {
		r.Say("half ")
		r.Hold(on)
		r.Say("and half")
		minute := make(chan struct{})
		time.AfterFunc(time.Minute, func() { close(minute) })
		r.Hold(minute)
	}
	play(t, with{gateway: openclawtest.Config{NoBoot: true, Odd: odd, Script: script}}, func(r *rig) {
		on = make(chan struct{})
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		r.gw.Cut()
		time.Sleep(10 * time.Second)
		close(on)
		if out, err := answer(); err != nil || out["stopReason"] != "end_turn" {
			t.Errorf("answer %v, %v", out, err)
		}
	})
}

// TestObserved_Over has runs of others that are told of no more: the editor
// closes the session, or the gateway is started anew.
func TestObserved_Over(t *testing.T) {
	var on chan struct{}
	for name, over := range map[string]func(r *rig, id string){
		"closed":  func(r *rig, id string) { r.call("session/close", `{"sessionId":"`+id+`"}`) },
		"deleted": func(r *rig, id string) { r.call("session/delete", `{"sessionId":"`+id+`"}`) },
		"started anew": func(r *rig, _ string) {
			r.gw.Restart()
			time.Sleep(10 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, with{}, func(r *rig) {
				on = make(chan struct{})
				id := r.open()
				key := "agent:main:acp-bridge:" + id
				r.gw.Recover(key, "foreign", func(run *openclawtest.Run) {
					run.Raw("agent", `{"stream":"tool","data":{"phase":"start","toolCallId":"c","name":"read"}}`)
					run.Hold(on)
					run.Say("more")
				})
				told := r.told()
				over(r, id)
				close(on)
				told = append(told, r.told()...)
				want := []string{"user [System] Go on.", "call c read read", "done c failed"}
				if d := cmp.Diff(want, told); d != "" {
					t.Errorf("told (-want +got):\n%s", d)
				}
			})
		})
	}
}

// TestModels_Anew asks for the models again once the gateway may be another.
func TestModels_Anew(t *testing.T) {
	play(t, with{}, func(r *rig) {
		r.open()
		r.gw.Restart()
		time.Sleep(5 * time.Second)
		r.call("session/new", `{"cwd":"/ws","mcpServers":[]}`)
		for _, method := range []string{"models.list", "agents.list"} {
			if n := len(r.gw.Requests(method)); n != 2 {
				t.Errorf("%s was asked %d times, want 2", method, n)
			}
		}
	})
}

// TestPrompt_Away sends a prompt while there is no connection. A gateway that
// is slow to take up the session's events gets the prompt when it has: nothing
// of the run would be told otherwise, not even its end.
func TestPrompt_Away(t *testing.T) {
	odd := func(o *openclawtest.Odd) bool {
		if o.Method != "sessions.messages.subscribe" || o.Number() == 1 {
			return false
		}
		o.Later(time.Second)
		return true
	}
	script := func(r *openclawtest.Run) {
		if strings.Contains(r.Message, "first") {
			r.Hold(nil)
		}
		r.Say("here")
	}
	play(t, with{gateway: openclawtest.Config{Odd: odd, Script: script}}, func(r *rig) {
		id := r.open()
		r.later("session/prompt", says(id, "first"))
		r.gw.Shut(true)
		r.cancel(id)
		answer := r.later("session/prompt", says(id, "behind it"))
		r.gw.Shut(false)
		if out, err := answer(); err != nil || out["stopReason"] != "end_turn" {
			t.Errorf("answer %v, %v", out, err)
		}
		if told := r.told(); len(told) == 0 || told[0] != "say here" {
			t.Errorf("told %q", told)
		}
	})
}
