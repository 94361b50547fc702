package transcript

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 123456000, time.UTC)

func TestJSONL(t *testing.T) {
	frames := []Frame{
		{noon, ToAgent, "", []byte(`{"jsonrpc":"2.0","id":1,"method":"m"}`)},
		{noon.Add(time.Second), ToClient, "b", []byte(`[1]`)},
		{noon, ToAgent, "", []byte("{ not \"JSON\"\t\n")},
		{noon, ToAgent, "", []byte("")},
	}
	var b []byte
	for _, f := range frames {
		b = f.AppendJSONL(b)
	}
	want := `{"t":"2026-01-02T12:00:00.123456Z","dir":">","msg":{"jsonrpc":"2.0","id":1,"method":"m"}}
{"t":"2026-01-02T12:00:01.123456Z","dir":"<","client":"b","msg":[1]}
{"t":"2026-01-02T12:00:00.123456Z","dir":">","raw":"{ not \"JSON\"\t\n"}
{"t":"2026-01-02T12:00:00.123456Z","dir":">","raw":""}
`
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Error(d)
	}
	back, err := ReadJSONL(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(frames, back); d != "" {
		t.Error(d)
	}
}

func TestJSONL_LinesAreOneLine(t *testing.T) {
	f := Frame{noon, ToClient, "", []byte("{\n  \"a\": \"\\n\"\n}")}
	if got := string(f.AppendJSONL(nil)); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"msg":{"a":"\n"}`) {
		t.Errorf("got %q", got)
	}
}

func TestReadJSONL(t *testing.T) {
	got, err := ReadJSONL(strings.NewReader("\n{\"t\":1.5,\"dir\":\"<\",\"msg\":{}}\n{\"dir\":\">\",\"msg\":1,\"note\":\"x\"}"))
	if err != nil || len(got) != 2 || got[0].Time.Sub(time.Unix(0, 0)) != 1500*time.Millisecond || string(got[1].Data) != "1" {
		t.Errorf("got %v, %v", got, err)
	}
	for in, msg := range map[string]string{
		"x":                                 "line 1",
		"\n{\"dir\":\"?\",\"msg\":1}":       `line 2: "dir" is "?"`,
		`{"dir":">"}`:                       `want "msg" or "raw"`,
		`{"dir":">","msg":1,"raw":"x"}`:     `want "msg" or "raw"`,
		`{"dir":">","msg":1,"t":"noon"}`:    "cannot parse",
		`{"dir":">","msg":1,"t":1e300}`:     "too large",
		`{"dir":">","msg":1,"DIR":"<"} {}x`: "line 1",
	} {
		if _, err := ReadJSONL(strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), msg) {
			t.Errorf("%s: %v, want %s", in, err, msg)
		}
	}
}

func TestTap(t *testing.T) {
	aR, bW := io.Pipe()
	bR, aW := io.Pipe()
	var seen []string
	now := func() time.Time { return noon }
	client := Tap(jsonrpc.NewStdio(aR, aW, 0), ToClient, now, func(f Frame) { seen = append(seen, string(f.Dir)+string(f.Data)) })
	agent := jsonrpc.NewStdio(bR, bW, 0)
	go func() {
		for {
			frame, err := agent.Read()
			if err != nil {
				_ = agent.Close()
				return
			}
			_ = agent.Write(append([]byte("[1,"), append(frame, ']')...))
		}
	}()
	for _, s := range []string{"1", "2"} {
		if err := client.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.(jsonrpc.CloseWriter).CloseWrite(); err != nil {
		t.Error(err)
	}
	if _, err := client.Read(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	_ = client.Close()
	if d := cmp.Diff([]string{">1", "<[1,1]", ">2", "<[1,2]"}, seen); d != "" {
		t.Error(d)
	}
	if _, ok := client.(jsonrpc.BatchWriter); ok {
		t.Error("frames could pass in a batch, unseen")
	}
	if _, ok := Tap(onlyFrames{client}, ToAgent, now, nil).(jsonrpc.CloseWriter); ok {
		t.Error("the tap closes one direction of a transport that cannot")
	}
}

type onlyFrames struct{ jsonrpc.Frames }

// TestFromFrames records a play and turns it into a script, which must read
// well and play the same again.
func TestFromFrames(t *testing.T) {
	run, err := bubble(t, cancelDuringTool)
	if err != nil {
		t.Fatal(err)
	}
	var jsonl []byte
	for _, f := range run.Frames {
		jsonl = f.AppendJSONL(jsonl)
	}
	frames, err := ReadJSONL(bytes.NewReader(jsonl))
	if err != nil {
		t.Fatal(err)
	}
	script := FromFrames(frames).String()
	want := `> initialize {"clientCapabilities":{},"protocolVersion":1}
< {"protocolVersion":1}
> session/new {"cwd":"/w","mcpServers":[]}
< {"sessionId":"$sid"}
> session/prompt @p {"prompt":[{"text":"go","type":"text"}],"sessionId":"$sid"}
says "Let me look."
<! session/update {"sessionId":"$sid","update":{"sessionUpdate":"tool_call","status":"pending","title":"sleep 60","toolCallId":"$call"}}
<? session/request_permission {"options":[{"optionId":"allow-once"},{"optionId":"reject-once"}],"sessionId":"$sid","toolCall":{"toolCallId":"$call"}}
>= {"outcome":{"optionId":"allow-once","outcome":"selected"}}
<! session/update {"sessionId":"$sid","update":{"sessionUpdate":"tool_call_update","status":"in_progress","toolCallId":"$call"}}
>! session/cancel {"sessionId":"$sid"}
<! session/update {"sessionId":"$sid","update":{"sessionUpdate":"tool_call_update","status":"failed","toolCallId":"$call"}}
< @p {"stopReason":"cancelled"}
quiet
> session/prompt @p2 {"prompt":[{"text":"hi","type":"text"}],"sessionId":"$sid"}
says "Hello again."
< @p2 {"stopReason":"end_turn"}
quiet
`
	if d := cmp.Diff(want, script); d != "" {
		t.Error(d)
	}
	if _, err := bubble(t, script); err != nil {
		t.Error(err)
	}
}

func TestFromFrames_Oddities(t *testing.T) {
	line := func(dir Dir, data string) Frame { return Frame{noon, dir, "", []byte(data)} }
	for _, tt := range []struct {
		name   string
		frames []Frame
		want   string
	}{
		{"nothing", nil, ""},
		{"malformed", []Frame{line('>', "{"), line('<', `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`)},
			">> {\n< #null error {\"code\":-32700,\"message\":\"x\"}\n"},
		{"malformed with white space", []Frame{line('>', " {\n")}, "raw \" {\\n\\n\"\n"},
		{"methods no script can name", []Frame{line('>', `{"jsonrpc":"2.0","method":"a b"}`), line('<', `{"jsonrpc":"2.0","method":""}`)},
			">> {\"jsonrpc\":\"2.0\",\"method\":\"a b\"}\n# the agent sent what is no message: {\"jsonrpc\":\"2.0\",\"method\":\"\"}\n"},
		{"noise of the agent", []Frame{line('<', "starting\n up")}, "# the agent sent what is no message: starting up\n"},
		{"answer to nothing", []Frame{line('>', `{"jsonrpc":"2.0","id":9,"result":{}}`)}, ">> {\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n"},
		{"two at once", []Frame{
			line('>', `{"jsonrpc":"2.0","id":1,"method":"a"}`), line('>', `{"jsonrpc":"2.0","id":2,"method":"b"}`),
			line('>', `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2}}`),
			line('<', `{"jsonrpc":"2.0","id":2,"result":{"x":"*"}}`), line('<', `{"jsonrpc":"2.0","id":1,"result":{}}`),
		}, "> a @r\n> b @r2\n>! $/cancel_request {\"requestId\":\"$@r2\"}\n< @r2 {\"x\":\"=*\"}\n< @r {}\n"},
		{"an answer with an agent's own additions", []Frame{
			line('>', `{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}`),
			line('<', `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","_meta":{"x":{"turnId":"t"}}}}`),
		}, "> session/prompt @p {}\n< @p {\"stopReason\":\"end_turn\"}\n"},
		{"two clients", []Frame{line('>', `{"jsonrpc":"2.0","id":1,"method":"a"}`), {noon, '>', "b", []byte(`{"jsonrpc":"2.0","id":1,"method":"a"}`)},
			{noon, '<', "b", []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)}},
			"> a @r\nclient b\n> a\n< {}\n"},
		{"dollar signs", []Frame{line('>', `{"jsonrpc":"2.0","method":"a","params":{"t":"$HOME $$ $5"}}`), line('<', `{"jsonrpc":"2.0","method":"b","params":{"t":"$HOME"}}`)},
			">! a {\"t\":\"$$HOME $$$$ $5\"}\n<! b {\"t\":\"=$HOME\"}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := FromFrames(tt.frames).String()
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if _, err := Parse(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// FuzzFromFrames: whatever was recorded, the script is one.
func FuzzFromFrames(f *testing.F) {
	f.Add(`>{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}
<{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\u0000"}}}}
<{"jsonrpc":"2.0","id":"q","method":"ask","params":{"toolCallId":"$x"}}
>{"jsonrpc":"2.0","id":"q","error":{"code":1,"message":"~"}}
<{"jsonrpc":"2.0","id":1,"result":{}}`)
	f.Add("> {\n<{\n>\n<[]\n>{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":1}")
	f.Fuzz(func(t *testing.T, text string) {
		var frames []Frame
		for line := range strings.Lines(text) {
			dir := ToAgent
			if line[0] == '<' {
				dir = ToClient
			}
			frames = append(frames, Frame{noon, dir, "", []byte(line[1:])})
		}
		script := FromFrames(frames).String()
		if _, err := Parse(script); err != nil {
			t.Fatalf("%v in\n%s", err, script)
		}
	})
}
