package transcript

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

const opening = `> initialize {"protocolVersion":1,"clientCapabilities":{}}
< {"protocolVersion":1}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
`

// cancelDuringTool is the example of the design.
const cancelDuringTool = opening + `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"go"}]}
<! session/update {"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"Let me look."}}}
<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$call","status":"pending"}}
<? session/request_permission @q {"toolCall":{"toolCallId":"$call"}}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
<! session/update {"update":{"toolCallId":"$call","status":"in_progress"}}
>! session/cancel {"sessionId":"$sid"}
<! session/update {"update":{"toolCallId":"$call","status":"failed"}}
< @p {"stopReason":"cancelled"}
quiet
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"hi"}]}
says "Hello again."
< {"stopReason":"end_turn"}
quiet
`

// bubble plays a script in a bubble, with a minute of its time.
func bubble(t *testing.T, script string, change ...func(*Options)) (run *Run, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		run, err = newWorld(t).play(ctx, script, change...)
	})
	return run, err
}

func TestPlay_Example(t *testing.T) {
	run, err := bubble(t, cancelDuringTool)
	if err != nil {
		t.Fatal(err)
	}
	if run.Vars["sid"] != "s-1" || run.Vars["call"] != "c-1" || fmt.Sprint(run.Vars["@p"]) != "3" {
		t.Errorf("variables %v", run.Vars)
	}
}

// TestPlay_InRealTime plays the same outside a bubble.
func TestPlay_InRealTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for range 50 {
		if _, err := newWorld(t).play(ctx, cancelDuringTool); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlay_Words(t *testing.T) {
	hi := `> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"hi"}]}` + "\n"
	for _, tt := range []struct{ name, script string }{
		{"nothing", "\n# only a comment\n"},
		{"any order", opening + `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"hi"}]}
> nothing @n
any {
	< @n error {"code":-32601,"data":{"method":"nothing"}}
	{
		says "Hello again."
		< @p {}
	}
}
`},
		{"answers inside any", opening + `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"go"}]}
any {
	{
		says "Let me look."
		<! session/update {"update":{"status":"pending"}}
		<? session/request_permission @q
		>= @q {"outcome":{"optionId":"reject-once"}}
		<! session/update {"update":{"status":"failed"}}
	}
	< @p {"stopReason":"end_turn"}
}
`},
		{"malformed lines", opening + ">> {\n< #null error {\"code\":-32700}\n>> [1]\n< #null error {\"code\":-32600}\n" +
			"raw \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":\\\"r\\\",\\\"method\\\":\\\"none\\\"}\\n\"\n< #\"r\" error {\"code\":-32601}\nquiet\n"},
		{"ids of one's own", opening + "> none #\"x\"\n< #\"x\" error {\"code\":-32601,\"message\":\"~not found\"}\n"},
		{"answer to nothing", opening + ">= #\"zc-out-99\" {}\nquiet\n"},
		{"two answers", opening + `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"go"}]}
says "Let me look."
<! session/update
<? session/request_permission @q
>= @q {"outcome":{"optionId":"reject-once"}}
>= @q {"outcome":{"optionId":"allow-once"}}
<! session/update {"update":{"status":"failed"}}
< @p {"stopReason":"end_turn"}
`},
		{"ids in texts", opening + `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"go"}]}
says "Let me look."
<! session/update
<? session/request_permission @q
>! session/cancel {"sessionId":"$sid"}
<! $/cancel_request {"requestId":"$@q"}
<! session/update {"update":{"status":"failed"}}
< @p {"stopReason":"cancelled"}
>! $/cancel_request {"requestId":"$@p"}
quiet
`},
		{"end of input", opening + strings.Replace(hi, "hi", "wait", 1) + "eof\n< {\"stopReason\":\"cancelled\"}\nend\nexit 0\n"},
		{"cut", opening + hi + "drop\nexit 0\nrestart\n" + opening},
		{"kill and restart", opening + hi + "kill\nexit 0\nrestart\n" + opening + hi + "says \"Hello again.\"\n< {}\n"},
		{"drop and reconnect", opening + hi + "drop\nreconnect\n" + opening + hi + "says \"Hello again.\"\n< {}\n"},
		{"restart alone", opening + "restart\n" + opening},
		{"two clients", opening + "client b\n> initialize {}\n< {}\nclient main\n" + hi + "says \"Hello again.\"\nclient b\n> session/new\n< {\"sessionId\":\"$other\"}\nclient main\n< {}\n"},
		{"slow reader", opening + "hold\n" + hi + "release\nsays \"Hello again.\"\n< {}\n"},
		{"loose", opening + "loose\n" + hi + "< {\"stopReason\":\"end_turn\"}\n"},
		{"skip", opening + "skip session/update {\"update\":{\"sessionUpdate\":\"agent_message_chunk\"}}\n" + hi + "< {}\n"},
		{"strict with everything named", opening + "strict\n" + hi + "says \"Hello again.\"\n<! session/update {\"update\":{\"sessionUpdate\":\"usage_update\"}}\n< {}\n"},
		{"ambient again", opening + "strict\nambient\n" + hi + "says \"Hello again.\"\n< {}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := bubble(t, tt.script); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPlay_TimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := newWorld(t).play(t.Context(), opening+"after 1h30m\nquiet\n", func(o *Options) {
			o.After = func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }
			o.Settle = func(context.Context) error { time.Sleep(time.Minute); return nil }
		})
		if d := time.Since(start); err != nil || d != 91*time.Minute {
			t.Errorf("%v passed, %v", d, err)
		}
	})
}

// TestPlay_Hold: while the client does not read, at most the frame that a Read
// in progress takes arrives.
func TestPlay_Hold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		during := 0
		script := opening + `hold
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"hi"}]}
after 1s
release
says "Hello again."
< {}
`
		_, err := newWorld(t).play(t.Context(), script, func(o *Options) {
			o.After = func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }
			o.Monitor = func(f Frame) {
				if f.Dir == ToClient && strings.Contains(string(f.Data), "Hello") || strings.Contains(string(f.Data), "again") {
					if f.Time.Sub(start) < time.Second {
						during++
					}
				}
			}
		})
		if err != nil || during > 1 {
			t.Errorf("%d frames arrived while the client did not read; %v", during, err)
		}
	})
}

func TestPlay_Failures(t *testing.T) {
	prompt := func(text string) string {
		return opening + `> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"` + text + `"}]}` + "\n"
	}
	for _, tt := range []struct {
		name, script string
		line         int
		verdict      Verdict
		why          string
		change       func(*Options)
	}{
		{"wrong result", "> initialize\n< {\"protocolVersion\":2}", 2, Unmeetable, "protocolVersion: want 2, got 1", nil},
		{"error for a result", "> session/new\n< {}", 2, Unmeetable, "want a result, got error -32600: Send initialize", nil},
		{"result for an error", "> initialize\n< error", 2, Unmeetable, "want an error, got a result", nil},
		{"wrong code", opening + "> none\n< error {\"code\":-32602}", 6, Unmeetable, "code: want -32602, got -32601", nil},
		{"wrong text", prompt("hi") + `says "Goodbye."`, 6, Unmeetable, `text: want "Goodbye.", got "Hello "`, nil},
		{"text cut short", prompt("hi") + `says "Hello again. And more."`, 6, Unmeetable, "want a notification, got a response", nil},
		{"text for a thought", prompt("hi") + `thinks "Hello again."`, 6, Unmeetable, "want text as agent_thought_chunk", nil},
		{"update not named", prompt("hi") + `< {}`, 6, Unmeetable, "want a response, got a notification", nil},
		{"ambient but strict", prompt("hi") + "strict\nsays \"Hello again.\"\n< {}", 8, Unmeetable, "want a response, got a notification", nil},
		{"response not awaited", opening + "> none @a\n> none @b\n< @b error", 7, Unmeetable, "want the response to request 4, got that to 3", nil},
		{"question not awaited", prompt("go") + "loose\n< {}", 7, Unmeetable, "want a response, got a request", nil},
		{"other method", prompt("hi") + "<! session/other", 6, Unmeetable, "want session/other, got session/update", nil},
		{"nothing comes", prompt("wait") + "< {}", 6, Unmet, "nothing came: context deadline exceeded", nil},
		{"nothing comes for some", prompt("wait") + "any {\n< {}\n<! m\n}", 6, Unmet, "waiting for\n    line 7: < {}\n    line 8: <! m", nil},
		{"none of any", prompt("hi") + "any {\n< {}\n<! m\n}", 6, Unmeetable, "no line of any wants it:\n    line 7: want a response, got a notification\n    line 8: want m, got session/update", nil},
		{"not quiet", prompt("late") + "< {}\nafter 1s\nquiet", 8, Unmeetable, "nothing should come here", func(o *Options) {
			o.After = func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }
		}},
		{"not quiet, seen later", prompt("late") + "< {}\nquiet", 7, Unmeetable, "nothing should come here", func(o *Options) {
			o.Settle = func(context.Context) error { time.Sleep(time.Second); return nil }
		}},
		{"not at the end", opening + "> none\neof\nend", 7, Unmeetable, "nothing should come here", nil},
		{"no end", opening + "end", 5, Unmet, "nothing came", nil},
		{"end instead", opening + "eof\n<! m", 6, Unmeetable, "the agent's side ended", nil},
		{"no network to cut", opening + "cut", 5, Unmeetable, "no network", nil},
		{"no connection", opening + "drop\n> m", 6, Unmeetable, "closed pipe", nil},
		{"no message", opening + "> noise\n< {}", 6, Unmeetable, "the agent sent what is no message", nil},
		{"other status", opening + "eof\nexit 3", 6, Unmeetable, "exit status: want 3, got 0", nil},
		{"unknown variable", `> m {"a":"$none"}`, 1, Unmeetable, "$none has no value yet", nil},
		{"answer too early", opening + "any {\n<! m\n{\n<? a @q\n>= @q\n}\n}\n", 5, Unmet, "nothing came", nil},
		{"nothing to kill", "kill", 1, Unmeetable, "no process to kill", func(o *Options) { o.Kill = nil }},
		{"nothing to exit", "exit 0", 1, Unmeetable, "no process that could exit", func(o *Options) { o.Exit = nil }},
		{"no time", "after 1s", 1, Unmeetable, "cannot make time pass", nil},
		{"kill fails", "kill", 1, Unmeetable, "not permitted", func(o *Options) {
			o.Kill = func(context.Context, string) error { return errors.New("not permitted") }
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var change []func(*Options)
			if tt.change != nil {
				change = append(change, tt.change)
			}
			_, err := bubble(t, tt.script, change...)
			var f *Failure
			if !errors.As(err, &f) {
				t.Fatalf("played to the end (%v)", err)
			}
			if f.Line != tt.line || f.Verdict != tt.verdict || !strings.Contains(f.Why, tt.why) {
				t.Errorf("got line %d, %s: %s\nwant line %d, %s: %s", f.Line, f.Verdict, f.Why, tt.line, tt.verdict, tt.why)
			}
		})
	}
}

// TestPlay_WrongAnswersFailAtOnce: in a bubble no time has passed.
func TestPlay_WrongAnswersFailAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := newWorld(t).play(ctx, "> initialize\n< {\"protocolVersion\":2}"); err == nil {
			t.Error("it passed")
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("it took %v", d)
		}
	})
}

func TestFailure_TellsTheStory(t *testing.T) {
	_, err := bubble(t, opening+"> none\n< {}\n")
	want := `line 6: < {}
  unmeetable: want a result, got error -32601: Method not found
  got: {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found","data":{"reason":"METHOD_NOT_FOUND","method":"none"}}}
  recent frames:
       0.000s > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
       0.000s < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"small"}}}
       0.000s > {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}
       0.000s < {"jsonrpc":"2.0","id":2,"result":{"sessionId":"s-1","modes":null}}
       0.000s > {"jsonrpc":"2.0","id":3,"method":"none"}
       0.000s < {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found","data":{"reason":"METHOD_NOT_FOUND","method":"none"}}}`
	if err == nil {
		t.Fatal("it passed")
	}
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Error(d)
	}
}

func TestPlay_MonitorSeesEverything(t *testing.T) {
	var seen []Frame
	run, err := bubble(t, cancelDuringTool, func(o *Options) { o.Monitor = func(f Frame) { seen = append(seen, f) } })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(run.Frames, seen); d != "" {
		t.Error(d)
	}
	counts := map[string]int{}
	for _, f := range seen {
		m, err := jsonrpc.Parse(f.Data)
		if err != nil {
			t.Fatal(err)
		}
		counts[string(f.Dir)+" "+m.Kind.String()]++
		if f.Client != "main" || f.Time.IsZero() {
			t.Errorf("frame of %q at %v", f.Client, f.Time)
		}
		if strings.Contains(string(f.Data), "usage_update") {
			counts["skipped"]++
		}
	}
	want := map[string]int{"> request": 6, "> notification": 1, "> response": 1, "< response": 6, "< request": 1, "< notification": 8, "skipped": 2}
	if d := cmp.Diff(want, counts); d != "" {
		t.Error(d)
	}
}

func TestPlay_Update(t *testing.T) {
	old := opening + `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"hi"}]}
<! session/update {"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"Hi!"},"messageId":"*"}}
<! session/update {"update":{"sessionUpdate":"agent_message_chunk","gone":1}}
<! session/update {"update":{"sessionUpdate":"usage_update","used":1,"size":"*"}}
any {
	< @p {"stopReason":"refusal"}
}
`
	want := opening + `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"hi"}]}
<! session/update {"update":{"content":{"text":"Hello "},"messageId":"*","sessionUpdate":"agent_message_chunk"}}
<! session/update {"update":{"sessionUpdate":"agent_message_chunk"}}
<! session/update {"update":{"sessionUpdate":"usage_update","size":"*","used":10}}
any {
	< @p {"stopReason":"end_turn"}
}
`
	run, err := bubble(t, old, func(o *Options) { o.Update = true })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, run.Script.String()); d != "" {
		t.Error(d)
	}
	if _, err := bubble(t, run.Script.String()); err != nil {
		t.Error(err)
	}
}

func TestPlay_ConnectFails(t *testing.T) {
	s, _ := Parse("> m")
	_, err := Play(t.Context(), s, Options{Connect: func(context.Context, string) (jsonrpc.Frames, error) { return nil, errors.New("refused") }})
	if err == nil || !strings.Contains(err.Error(), "connect client main: refused") {
		t.Error(err)
	}
}

// TestPlay_AgentThatDoesNotRead: a send that blocks ends with the context.
func TestPlay_AgentThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := newWorld(t)
		_, err := w.play(ctx, "> m", func(o *Options) {
			o.Connect = func(context.Context, string) (jsonrpc.Frames, error) {
				f, err := w.connect(ctx, "")
				return deaf{f, make(chan struct{})}, err
			}
		})
		var f *Failure
		if !errors.As(err, &f) || f.Line != 1 {
			t.Errorf("got %v", err)
		}
	})
}

type deaf struct {
	jsonrpc.Frames
	closed chan struct{}
}

func (d deaf) Write([]byte) error { <-d.closed; return errors.New("closed while writing") }

func (d deaf) Close() error {
	select {
	case <-d.closed:
	default:
		close(d.closed)
	}
	return d.Frames.Close()
}
