package openclaw_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/openclaw"
	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

func TestTurn(t *testing.T) {
	type script = func(r *openclawtest.Run)
	tests := []struct {
		name   string
		script script
		told   []string
		stop   string // of a good end
		code   int    // of an error
		words  string // of it
	}{
		{"text", func(r *openclawtest.Run) { r.Say("one", " two", "\n") }, []string{"say one two\n"}, "end_turn", 0, ""},
		{"text of the chat alone", func(r *openclawtest.Run) { r.Chat("é", "€", "😀") }, []string{"say é€😀"}, "end_turn", 0, ""},
		{"nothing", func(*openclawtest.Run) {}, nil, "end_turn", 0, ""},
		{
			"thoughts, a tool and what is said around it", func(r *openclawtest.Run) {
				r.Think("let me ", "see")
				r.Preamble("I look.")
				r.Tool("read", map[string]any{"path": "a.txt"}, "text", false)
				r.Think("more")
				r.Say("It is", " so.")
			}, []string{
				"think let me see", "say I look.", "call call_1 read Use read /ws/a.txt", "done call_1 completed content:text",
				"think more", "say It is so.",
			}, "end_turn", 0, "",
		},
		{
			"a preamble that was text", func(r *openclawtest.Run) {
				r.Say("I look.")
				r.Preamble("I look.")
				r.Tool("exec", map[string]any{"command": "ls -l"}, "no", true)
			}, []string{"say I look.", "call call_1 execute ls -l", "done call_1 failed content:no"}, "end_turn", 0, "",
		},
		{
			"an edit", func(r *openclawtest.Run) {
				r.Tool("edit", map[string]any{"path": "/ws/a", "oldText": " x", "newText": "y"}, "ok", false)
			}, []string{"call call_1 edit Use edit /ws/a", "done call_1 completed diff: content:ok"}, "end_turn", 0, "",
		},
		{
			"the same words before and after a tool", func(r *openclawtest.Run) {
				r.Say("ok")
				r.Tool("read", nil, "r", false)
				r.Say("ok")
			}, []string{"say ok", "call call_1 read Use read", "done call_1 completed content:r", "say ok"}, "end_turn", 0, "",
		},
		{"a plan", func(r *openclawtest.Run) { r.Plan("completed: look", "in_progress: write", "odd: end") }, []string{"plan [{look completed} {write in_progress} {end pending}]"}, "end_turn", 0, ""},
		{"a revision", func(r *openclawtest.Run) { r.Say("Hello"); r.Replace("Goodbye") }, []string{"say Hello", "say Goodbye"}, "end_turn", 0, ""},
		{"a new attempt", func(r *openclawtest.Run) { r.Say("Hel"); r.Replace(""); r.Say("Hello") }, []string{"say Hel", "say Hello"}, "end_turn", 0, ""},
		{"out of tokens", func(r *openclawtest.Run) { r.Say("a"); r.End("length") }, []string{"say a"}, "max_tokens", 0, ""},
		{"a refusal", func(r *openclawtest.Run) { r.Fail("refusal", "no") }, nil, "refusal", 0, ""},
		{"a filter", func(r *openclawtest.Run) { r.End("content_filter") }, nil, "refusal", 0, ""},
		{"no credentials", func(r *openclawtest.Run) { r.Fail("", "the key is bad") }, nil, "", -32603, "the key is bad"},
		{"a limit", func(r *openclawtest.Run) { r.Fail("rate_limit", "wait") }, nil, "", -32603, "wait"},
		{"too long", func(r *openclawtest.Run) { r.Fail("context_length", "too long") }, nil, "", -32603, "too long"},
		{
			"events that the gateway left out", func(r *openclawtest.Run) {
				r.Say("one ")
				r.Skip("two ")
				r.Say("three")
			}, []string{"say one two three"}, "end_turn", 0, "",
		},
		{
			"the end of what it left out", func(r *openclawtest.Run) {
				r.Say("one ")
				r.Skip("two")
			}, []string{"say one two"}, "end_turn", 0, "",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, with{gateway: openclawtest.Config{Script: tt.script}}, func(r *rig) {
				id := r.open()
				out, err := r.try("session/prompt", says(id, "hi"))
				told := r.told()
				if n := len(told); n > 0 && strings.HasPrefix(told[n-1], "usage ") {
					told = told[:n-1]
				}
				if len(told) == 0 {
					told = nil
				}
				if d := cmp.Diff(tt.told, told); d != "" {
					t.Errorf("told (-want +got):\n%s", d)
				}
				switch {
				case tt.code != 0 && (code(err) != tt.code || !strings.Contains(err.Error(), tt.words)):
					t.Errorf("error %v, want %d %q", err, tt.code, tt.words)
				case tt.code == 0 && (err != nil || out["stopReason"] != tt.stop):
					t.Errorf("answer %v, %v, want %s", out, err, tt.stop)
				}
			})
		})
	}
}

// TestCut cuts the connection at every place of a turn.
func TestCut(t *testing.T) {
	steps := []func(r *openclawtest.Run){
		func(r *openclawtest.Run) { r.Think("hm ", "hm") },
		func(r *openclawtest.Run) { r.Say("same", " words") },
		func(r *openclawtest.Run) { r.Say(" here") },
		func(r *openclawtest.Run) { r.Tool("read", map[string]any{"path": "/ws/a"}, "text", false) },
		func(r *openclawtest.Run) { r.Say("same") },
		func(r *openclawtest.Run) { r.Say(" words here", " and END") },
	}
	want := []string{
		"say same words here", "call call_1 read", "done call_1 completed content:text", "say same words here and END",
	}
	for from := range len(steps) + 1 {
		for to := from; to <= len(steps); to++ {
			t.Run(strings.Repeat(".", from)+strings.Repeat("x", to-from), func(t *testing.T) {
				var at chan int
				var next chan struct{}
				script := func(r *openclawtest.Run) {
					for i, step := range steps {
						at <- i
						<-next
						step(r)
					}
					at <- len(steps)
					<-next
				}
				play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
					at, next = make(chan int), make(chan struct{}) // of the bubble
					id := r.open()
					answer := r.later("session/prompt", says(id, "hi"))
					for i := range len(steps) + 1 {
						<-at
						synctest.Wait()
						if i == from {
							r.gw.Shut(true)
						}
						if i == to {
							r.gw.Shut(false)
							time.Sleep(20 * time.Second) // it comes back
							synctest.Wait()
						}
						next <- struct{}{}
					}
					out, err := answer()
					if err != nil || out["stopReason"] != "end_turn" {
						t.Errorf("answer %v, %v", out, err)
					}
					var told, thoughts []string
					for _, l := range r.told() {
						if strings.HasPrefix(l, "usage ") {
							continue
						}
						if strings.HasPrefix(l, "call ") {
							l = "call call_1 read"
						}
						if strings.HasPrefix(l, "think ") {
							// A thought that was missed is known when its message is written
							// down, behind the text of it.
							thoughts = append(thoughts, l)
							continue
						}
						told = append(told, strings.TrimRight(l, " "))
					}
					if d := cmp.Diff(want, told); d != "" {
						t.Errorf("told (-want +got):\n%s", d)
					}
					if d := cmp.Diff([]string{"think hm hm"}, thoughts); d != "" {
						t.Errorf("thoughts (-want +got):\n%s", d)
					}
					if n := len(r.gw.Requests("chat.send")); n != 1 {
						t.Errorf("the prompt was sent %d times", n)
					}
				})
			})
		}
	}
}

func TestRestart(t *testing.T) {
	script := func(r *openclawtest.Run) { r.Say("half"); r.Hold(nil) }
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		r.gw.Restart()
		_, err := answer()
		if code(err) != -32603 || !strings.Contains(err.Error(), "started anew") {
			t.Errorf("error %v", err)
		}
		if d := cmp.Diff([]string{"say half"}, r.told()); d != "" {
			t.Error(d)
		}
	})
}

// TestRestart_Recovered has the gateway go on with the turn in another run.
func TestRestart_Recovered(t *testing.T) {
	script := func(r *openclawtest.Run) { r.Say("half"); r.Hold(nil) }
	for name, late := range map[string]bool{"while the bridge is there": true, "before it is back": false} {
		t.Run(name, func(t *testing.T) {
			play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
				id := r.open()
				answer := r.later("session/prompt", says(id, "hi"))
				r.gw.Restart()
				if !late {
					r.gw.Shut(true)
				} else {
					time.Sleep(5 * time.Second)
				}
				r.gw.Recover("agent:main:acp-bridge:"+id, "heir", func(r *openclawtest.Run) { r.Say("the rest"); r.End("length") })
				synctest.Wait()
				r.gw.Shut(false)
				if out, err := answer(); err != nil || out["stopReason"] != "max_tokens" {
					t.Errorf("answer %v, %v", out, err)
				}
				told := r.told()
				if !slices.ContainsFunc(told, func(l string) bool { return strings.TrimSpace(l) == "say the rest" }) || told[0] != "say half" {
					t.Errorf("told %q", told)
				}
			})
		})
	}
}

func TestLostLimit(t *testing.T) {
	script := func(r *openclawtest.Run) { r.Hold(nil) }
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		r.gw.Shut(true)
		if _, err := answer(); code(err) != -32603 {
			t.Errorf("error %v", err)
		}
		if err := r.end(); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("ended with %v, want one line", err)
		}
	})
}

func TestCancel(t *testing.T) {
	script := func(r *openclawtest.Run) {
		if strings.Contains(r.Message, "quick") {
			r.Say("quick")
			return
		}
		r.Say("half")
		r.Hold(nil)
	}
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		id := r.open()
		first := r.later("session/prompt", says(id, "hi"))
		second := r.later("session/prompt", says(id, "behind it"))
		before := time.Now()
		if err := r.conn.Notify(r.t.Context(), "session/cancel", json.RawMessage(`{"sessionId":"`+id+`"}`)); err != nil {
			t.Fatal(err)
		}
		for _, answer := range []func() (map[string]any, error){first, second} {
			if out, err := answer(); err != nil || out["stopReason"] != "cancelled" {
				t.Errorf("answer %v, %v", out, err)
			}
		}
		if d := time.Since(before); d != 0 {
			t.Errorf("it took %s", d)
		}
		out := r.call("session/prompt", says(id, "quick"))
		if out["stopReason"] != "end_turn" {
			t.Errorf("the next one: %v", out)
		}
		if n := len(r.gw.Requests("chat.send")); n != 2 {
			t.Errorf("%d prompts were sent, want 2: the one that waited is not", n)
		}
		if n := len(r.gw.Requests("chat.abort")); n == 0 {
			t.Error("the gateway was not told")
		}
		if d := cmp.Diff([]string{"say half", "say quick", "usage 100/1000"}, r.told()); d != "" {
			t.Error(d)
		}
	})
}

// TestCancel_Early cancels a prompt that the gateway has not looked at yet.
func TestCancel_Early(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		script := func(r *openclawtest.Run) { r.Say("never"); r.Hold(nil) }
		r := newRig(t, with{gateway: openclawtest.Config{Gate: gate, Script: script}})
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		if err := r.conn.Notify(t.Context(), "session/cancel", json.RawMessage(`{"sessionId":"`+id+`"}`)); err != nil {
			t.Fatal(err)
		}
		if out, err := answer(); err != nil || out["stopReason"] != "cancelled" {
			t.Errorf("answer %v, %v", out, err)
		}
		time.Sleep(100 * time.Millisecond)
		close(gate)
		time.Sleep(time.Second)
		if n := r.gw.Running(); n != 0 {
			t.Errorf("%d runs go on", n)
		}
		if told := r.told(); len(told) != 0 {
			t.Errorf("told %q", told)
		}
		_ = r.end()
		r.gw.Close()
	})
}

// TestEnd ends the editor's input in the middle of a turn.
func TestEnd(t *testing.T) {
	script := func(r *openclawtest.Run) { r.Hold(nil) }
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		id := r.open()
		r.later("session/prompt", says(id, "hi"))
		before := time.Now()
		if err := r.end(); err != nil {
			t.Errorf("ended with %v", err)
		}
		if d := time.Since(before); d > 3*time.Second {
			t.Errorf("it took %s", d)
		}
		if n := len(r.gw.Requests("chat.abort")); n == 0 {
			t.Error("the gateway was not told")
		}
	})
}

func TestPermission(t *testing.T) {
	all := []string{"allow-once", "allow-always", "deny"}
	pick := func(id string) func(context.Context, json.RawMessage) (any, error) {
		return func(context.Context, json.RawMessage) (any, error) {
			return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": id}}, nil
		}
	}
	tests := []struct {
		name    string
		offered []string
		answer  func(context.Context, json.RawMessage) (any, error)
		want    string
	}{
		{"yes", all, pick("allow-once"), "allow-once"},
		{"always", all, pick("allow-always"), "allow-always"},
		{"no", all, pick("deny"), "deny"},
		{"an option that was not offered", []string{"allow-once", "deny"}, pick("allow-always"), "deny"},
		{"cancelled", all, func(context.Context, json.RawMessage) (any, error) {
			return map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}, nil
		}, "deny"},
		{"an error", all, func(context.Context, json.RawMessage) (any, error) {
			return nil, &jsonrpc.Error{Code: -32601, Message: "no"}
		}, "deny"},
		{"nonsense", all, func(context.Context, json.RawMessage) (any, error) { return []any{}, nil }, "deny"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			script := func(r *openclawtest.Run) { got = r.Exec("rm -rf x", tt.offered...) }
			play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
				var asked json.RawMessage
				r.answer = func(ctx context.Context, p json.RawMessage) (any, error) {
					asked = p
					return tt.answer(ctx, p)
				}
				id := r.open()
				r.call("session/prompt", says(id, "hi"))
				if got != tt.want {
					t.Errorf("the gateway was told %q, want %q", got, tt.want)
				}
				for _, want := range []string{`"call_1"`, "rm -rf x", "/ws", "Deletes files"} {
					if !strings.Contains(string(asked), want) {
						t.Errorf("the editor was not told %s: %s", want, asked)
					}
				}
			})
		})
	}
}

// TestPermission_Withdrawn has requests that are over before they are answered.
func TestPermission_Withdrawn(t *testing.T) {
	tests := []struct {
		name string
		over func(r *rig, session string)
		want string // the decision at the gateway; "deny": no more than that
	}{
		{"answered elsewhere", func(r *rig, _ string) { r.gw.Resolve(r.gw.Asks()[0], "allow-once") }, "allow-once"},
		{"answered while the connection was lost", func(r *rig, _ string) {
			r.gw.Shut(true)
			r.gw.Resolve(r.gw.Asks()[0], "allow-once")
			r.gw.Shut(false)
			time.Sleep(20 * time.Second)
		}, "allow-once"},
		{"cancelled", func(r *rig, id string) {
			_ = r.conn.Notify(r.t.Context(), "session/cancel", json.RawMessage(`{"sessionId":"`+id+`"}`))
		}, "deny"}, // or it hears of the cancel first, and of nothing then
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			var on chan struct{} // the turn goes on behind the request
			script := func(r *openclawtest.Run) {
				got = r.Exec("rm", "allow-once", "deny")
				r.Hold(on)
			}
			play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
				on = make(chan struct{})
				withdrawn := make(chan struct{})
				r.answer = func(ctx context.Context, _ json.RawMessage) (any, error) {
					<-ctx.Done()
					close(withdrawn)
					return nil, context.Cause(ctx)
				}
				id := r.open()
				answer := r.later("session/prompt", says(id, "hi"))
				tt.over(r, id)
				<-withdrawn
				close(on)
				if _, err := answer(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if got != tt.want && (tt.want != "deny" || got != "") {
					t.Errorf("the gateway was told %q, want %q", got, tt.want)
				}
				if n := len(r.gw.Asks()); n != 0 {
					t.Errorf("%d requests are open", n)
				}
			})
		})
	}
}

// TestPermission_Kept has an answer that the gateway does not get at first.
func TestPermission_Kept(t *testing.T) {
	got := ""
	script := func(r *openclawtest.Run) { got = r.Exec("rm", "allow-once", "deny") }
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		asked := 0
		r.answer = func(context.Context, json.RawMessage) (any, error) {
			asked++
			r.gw.Shut(true)
			time.AfterFunc(10*time.Second, func() { r.gw.Shut(false) })
			return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "allow-once"}}, nil
		}
		id := r.open()
		r.call("session/prompt", says(id, "hi"))
		if got != "allow-once" || asked != 1 {
			t.Errorf("the gateway was told %q, the editor was asked %d times", got, asked)
		}
	})
}

// TestObserved has another client begin a run in the editor's session.
func TestObserved(t *testing.T) {
	play(t, with{gateway: openclawtest.Config{Script: func(r *openclawtest.Run) { r.Say("hello ", "all") }}}, func(r *rig) {
		id := r.open()
		other := newRig(r.t, with{bridge: func(c *openclaw.Config) { c.Dial = r.gw.Dial }})
		other.begin()
		other.call("session/resume", `{"sessionId":"`+id+`","cwd":"/ws","mcpServers":[]}`)
		other.call("session/prompt", says(id, "from afar"))
		if d := cmp.Diff([]string{"user from afar", "say hello all"}, r.told()); d != "" {
			t.Error(d)
		}
		_ = other.end()
	})
}
