package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

func TestChecklist_001_one_message_a_line(t *testing.T) {
	t.Parallel()
	o := scene{
		model:  "text \"a\\nb\\r\\nc\\u2028d\\u0085e\"\ncall read_file {\"path\":\"a.txt\"}\n--- next\ntext \"ok\"",
		files:  map[string]string{"a.txt": "1\n2\r\n3\u2029\n"},
		script: session + turn + "eof\nend\nexit 0\n",
	}.play(t)
	kept, whole := o.agents[0].stdout.bytes()
	if !whole || !bytes.HasSuffix(kept, []byte("\n")) || bytes.Contains(kept, []byte("\n\n")) {
		t.Errorf("whole: %v; %q", whole, kept)
	}
	if n := bytes.Count(kept, []byte("\n")); n != len(o.fromAgent()) {
		t.Errorf("%d lines for %d messages", n, len(o.fromAgent()))
	}
}

// A pipe that is full and that nobody empties takes no log line. The agent
// serves and ends all the same.
func TestChecklist_003_logs_disturb_nothing(t *testing.T) {
	t.Parallel()
	unread, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	if err := full.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Skip("this system's pipes have no deadlines: ", err)
	}
	for err == nil {
		_, err = full.Write(make([]byte, 4096))
	}
	for err = nil; err == nil; {
		_, err = full.Write([]byte{0}) // to the last byte
	}
	o := scene{
		model:  "--- next always\ntext \"ok\"\n",
		launch: launch{stderr: full, args: []string{"--log-level", "trace"}},
		script: session + strings.Repeat(turn, 20) + `> session/new {"cwd":"relative","mcpServers":[]}
< error {"code":-32602}
eof
end
exit 0
`,
	}.play(t)
	full.Close()
	if n := len(o.updates("agent_message_chunk")); n != 20 {
		t.Errorf("%d answers", n)
	}
}

func TestChecklist_004_responses_are_well_formed(t *testing.T) {
	t.Parallel()
	s := conversation()
	s.script = strings.Replace(s.script, "eof\n", `> session/new {"mcpServers":[]}
< error {}
> _acme/x [1]
< error {}
> session/prompt {}
< error {}
>> [1,2]
< #null error {}
eof
`, 1)
	n := 0
	for _, m := range s.play(t).fromAgent() {
		if m.Kind == jsonrpc.Response {
			envelope(t, m.raw)
			n++
		}
	}
	if n < 12 {
		t.Errorf("%d responses", n)
	}
}

func TestChecklist_005_ids_round_trip(t *testing.T) {
	t.Parallel()
	playFile(t, "request_ids_round_trip")
	ids := []string{
		`0`, `-1`, `9223372036854775807`, `-9223372036854775808`, `9007199254740993`,
		`""`, `"0"`, `"9007199254740993"`, `"ünï"`, `"a\"b\\c"`, `"` + strings.Repeat("x", 1000) + `"`,
	}
	var script strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&script, "> session/list #%s {}\n< #%s {\"sessions\":[]}\n> session/fly #%s {}\n< #%s error {\"code\":-32601}\n", id, id, id, id)
	}
	var got []string
	for _, m := range (scene{script: hello + script.String()}).play(t).fromAgent()[1:] {
		got = append(got, string(m.ID))
	}
	for i, id := range got {
		var a, b any
		_ = json.Unmarshal([]byte(ids[i/2]), &a)
		_ = json.Unmarshal([]byte(id), &b)
		if a != b || id[0] != '"' && id != ids[i/2] {
			t.Errorf("id %s came back as %s", ids[i/2], id)
		}
	}
}

func TestChecklist_006_null_is_an_id(t *testing.T) {
	t.Parallel()
	scene{script: hello + `> session/list #null {}
< #null {"sessions":[]}
> session/new #null {"cwd":"$WORK","mcpServers":[]}
< #null {"sessionId":"$sid"}
> session/fly #null {}
< #null error {"code":-32601}
`}.play(t)
}

func TestChecklist_007_notifications_are_not_answered(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	for _, method := range []string{
		"session/cancel", "session/prompt", "session/new", "session/list", "session/load", "initialize", "authenticate",
		"session/fly", "_acme/x", "$/odd", "$/cancel_request", "logout", "session/update",
	} {
		for _, params := range []string{`{}`, `{"sessionId":"gone"}`, `{"sessionId":5}`, `[]`} {
			fmt.Fprintf(&script, ">> {\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":%s}\n", method, params)
		}
		fmt.Fprintf(&script, ">> {\"jsonrpc\":\"2.0\",\"method\":%q}\n", method)
	}
	o := scene{script: session + commands + script.String() + "strict\nquiet\n"}.play(t)
	if n := len(o.fromAgent()); n != 4 { // initialize, session/new and its commands, quiet's own
		t.Errorf("%d messages", n)
	}
}

func TestChecklist_008_malformed_json(t *testing.T) {
	t.Parallel()
	playFile(t, "malformed_line_then_valid")
	scene{script: hello + `>> {"jsonrpc":"2.0","id":1,"method":"session/list",}
< #null error {"code":-32700}
>> nonsense
< #null error {"code":-32700}
>> {"jsonrpc":"2.0","id":1,"method":"session/list"
< #null error {"code":-32700}
raw "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/\xff\"}\n"
< #null error {"code":-32700}
` + session[len(hello):]}.play(t)
}

// A message without a method may be a response of the client's, so its id is
// not known to be the client's own and is not echoed.
func TestChecklist_009_json_that_is_no_request(t *testing.T) {
	t.Parallel()
	scene{script: hello + `>> 5
< #null error {"code":-32600}
>> "text"
< #null error {"code":-32600}
>> null
< #null error {"code":-32600}
>> {}
< #null error {"code":-32600}
>> {"jsonrpc":"2.0","id":7}
< #null error {"code":-32600}
>> {"jsonrpc":"2.0","id":"seven","method":7}
< #"seven" error {"code":-32600}
>> {"jsonrpc":"1.0","id":8,"method":"session/list"}
< #8 error {"code":-32600}
>> {"id":9,"method":"session/list"}
< #9 error {"code":-32600}
>> {"jsonrpc":"2.0","id":{"a":1},"method":"session/list"}
< #null error {"code":-32600}
>> {"jsonrpc":"2.0","id":1.5,"method":"session/list"}
< #null error {"code":-32600}
` + session[len(hello):]}.play(t)
}

func TestChecklist_010_batches(t *testing.T) {
	t.Parallel()
	playFile(t, "batch_is_refused_whole")
	scene{script: hello + `>> []
< #null error {"code":-32600}
>> [{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"$WORK","mcpServers":[]}},{"jsonrpc":"2.0","id":2,"method":"session/list"}]
< #null error {"code":-32600}
strict
quiet
> session/list {}
< {"sessions":[]}
`}.play(t)
}

func TestChecklist_011_unknown_methods(t *testing.T) {
	t.Parallel()
	playFile(t, "unknown_methods")
	scene{script: hello + `>> {"jsonrpc":"2.0","id":"none","method":""}
< #"none" error {"code":-32601}
> Session/new {}
< error {"code":-32601}
> $/unknown {}
< error {"code":-32601}
> rpc.discover {}
< error {"code":-32601}
>! rpc.discover {}
>! $/unknown {}
strict
quiet
`}.play(t)
}

func TestChecklist_012_stray_responses(t *testing.T) {
	t.Parallel()
	scene{
		model: "call write_file {\"path\":\"a.txt\",\"content\":\"x\\n\"}\n--- next\ntext \"ok\"", want: map[string]string{"a.txt": "x\n"},
		script: session + `>> {"jsonrpc":"2.0","id":"zc-out-999","result":{}}
>> {"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"x"}}
>> {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}
loose
` + prompt + `<? session/request_permission @q {}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
>= @q {"outcome":{"outcome":"selected","optionId":"reject-once"}}
>= @q error {"code":1,"message":"late"}
< @p {"stopReason":"end_turn"}
strict
quiet
`,
	}.play(t)
}

func TestChecklist_013_absent_params(t *testing.T) {
	t.Parallel()
	scene{script: hello + `> session/list
< {"sessions":[]}
> session/list null
< {"sessions":[]}
> session/list {}
< {"sessions":[]}
> logout
< error {"code":-32601}
`}.play(t)
}

func TestChecklist_014_positional_params(t *testing.T) {
	t.Parallel()
	playFile(t, "array_params_are_invalid")
	scene{script: `> initialize [1]
< error {"code":-32602}
` + hello + `> session/new ["$WORK",[]]
< error {"code":-32602}
> session/prompt []
< error {"code":-32602}
> session/list "x"
< error {"code":-32602}
> session/list 5
< error {"code":-32602}
> session/list {}
< {"sessions":[]}
`}.play(t)
}

// Three sessions stream at once while answers are given in between. The watch
// reads every line; here none may be lost either.
func TestChecklist_019_writes_are_whole(t *testing.T) {
	t.Parallel()
	o := scene{
		model: "--- next always\nchunks 400 \"" + strings.Repeat("x", 300) + "\"\n",
		script: hello + `> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$a"}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$b"}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$c"}
> session/prompt @a {"sessionId":"$a","prompt":"go"}
> session/prompt @b {"sessionId":"$b","prompt":"go"}
> session/prompt @c {"sessionId":"$c","prompt":"go"}
loose
any {
< @a {"stopReason":"end_turn"}
< @b {"stopReason":"end_turn"}
< @c {"stopReason":"end_turn"}
{
> session/list @l1 {}
< @l1 {"sessions":["..."]}
> session/list @l2 {}
< @l2 {"sessions":["..."]}
}
}
`,
	}.play(t)
	said := 0
	for _, u := range o.updates("agent_message_chunk") {
		said += len(text(u, "content", "text"))
	}
	if said != 3*400*300 {
		t.Errorf("%d characters arrived, want %d", said, 3*400*300)
	}
}

func TestChecklist_020_order_is_kept(t *testing.T) {
	t.Parallel()
	playFile(t, "many_chunks_keep_their_order")
	o := scene{
		model: "text \"1\"\nthought \"2\"\ntext \"3\"\ncall read_file {\"path\":\"a.txt\"}\n--- next\ntext \"4\"\ncall update_plan {\"entries\":[{\"content\":\"x\",\"status\":\"pending\"}]}\n--- next\ntext \"5\"",
		files: map[string]string{"a.txt": "x\n"}, script: session + turn,
	}.play(t)
	var order []string
	for _, u := range o.updates("") {
		switch kind := text(u, "sessionUpdate"); kind {
		case "agent_message_chunk", "agent_thought_chunk":
			order = append(order, text(u, "content", "text"))
		case "tool_call", "plan":
			order = append(order, kind)
		}
	}
	if got := strings.Join(order, " "); got != "1 2 3 tool_call 4 tool_call plan 5" {
		t.Errorf("order: %s", got)
	}
}

// Names are those of the schema: the watch compares every member; here the
// spelling rules are held against everything a long conversation sends.
func TestChecklist_023_names(t *testing.T) {
	t.Parallel()
	camel, snake := regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`), regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case []any:
			for _, el := range v {
				walk(path, el)
			}
		case map[string]any:
			for name, value := range v {
				if name == "_meta" || name == "rawInput" || name == "rawOutput" || name == "data" {
					continue // what stands there is not the protocol's
				}
				if !camel.MatchString(name) {
					t.Errorf("%s has a member %q", path, name)
				}
				switch name {
				case "sessionUpdate", "kind", "status", "type", "stopReason", "priority":
					if s, ok := value.(string); ok && !snake.MatchString(s) {
						t.Errorf("%s.%s is %q", path, name, s)
					}
				}
				walk(path+"."+name, value)
			}
		}
	}
	for _, m := range conversation().play(t).fromAgent() {
		walk(m.Method, decode(m.raw))
	}
}

func TestChecklist_024_no_members_of_our_own(t *testing.T) {
	t.Parallel()
	o := scene{model: `text "ok"`, script: loaded}.play(t)
	onlyMembers(t, "initialize", o.result(t, "initialize"), "protocolVersion", "agentCapabilities", "authMethods", "agentInfo")
	onlyMembers(t, "session/new", o.result(t, "session/new"), "sessionId")
	onlyMembers(t, "session/prompt", o.result(t, "session/prompt"), "stopReason")
	if find(o.result(t, "initialize"), "_meta", "berth") == nil {
		t.Error("what we add has no place in _meta.berth")
	}
	for _, u := range o.updates("agent_message_chunk") {
		onlyMembers(t, "agent_message_chunk", u, "sessionUpdate", "content", "messageId")
	}
}

func TestChecklist_158_meta_is_accepted(t *testing.T) {
	t.Parallel()
	playFile(t, "meta_is_accepted_everywhere")
	const meta = `"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=b","baggage":"c=d","acme.dev":{"x":[1]}}`
	scene{
		model: "call write_file {\"path\":\"a.txt\",\"content\":\"x\"}\n--- next\ntext \"ok\"",
		script: `> initialize {"protocolVersion":1,"clientCapabilities":{"fs":{` + meta + `},` + meta + `},"clientInfo":{"name":"x","version":"1",` + meta + `},` + meta + `}
< {}
> authenticate {"methodId":"local",` + meta + `}
< {}
> session/new {"cwd":"$WORK","mcpServers":[{"name":"m","command":"true","args":[],"env":[],` + meta + `}],` + meta + `}
< {"sessionId":"$sid"}
loose
> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"x",` + meta + `},{"type":"resource","resource":{"uri":"file:///x","text":"y",` + meta + `},` + meta + `}],` + meta + `}
<? session/request_permission @q {}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once",` + meta + `},` + meta + `}
< @p {"stopReason":"end_turn"}
>! session/cancel {"sessionId":"$sid",` + meta + `}
>! $/cancel_request {"requestId":"none",` + meta + `}
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[],` + meta + `}
< {}
> session/resume {"sessionId":"$sid","cwd":"$WORK",` + meta + `}
< {}
> session/list {` + meta + `}
< {"sessions":[{"sessionId":"$sid"}]}
> session/close {"sessionId":"$sid",` + meta + `}
< {}
> session/delete {"sessionId":"$sid",` + meta + `}
< {}
`,
	}.play(t)
}

func TestChecklist_159_custom_methods(t *testing.T) {
	t.Parallel()
	scene{script: hello + `> _acme.dev/ping {"x":1}
< error {"code":-32601,"data":{"method":"_acme.dev/ping"}}
> _berth/nothing
< error {"code":-32601}
>! _acme.dev/note {"x":1}
>! _berth/nothing
strict
quiet
`}.play(t)
}

// The longest conversation passes the strict checker, and the published schema
// where one was named; a frame that is wrong does not.
func TestChecklist_160_everything_fits_the_schema(t *testing.T) {
	t.Parallel()
	conversation().play(t)
	for _, wrong := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"finished"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn","content":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":"x"}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c"}}}`,
	} {
		w := newWatch(false)
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":0,"method":"session/resume","params":{"sessionId":"s"}}`,
			`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}`,
		} {
			w.frame(transcript.Frame{Dir: transcript.ToAgent, Data: []byte(line)})
		}
		w.frame(transcript.Frame{Dir: transcript.ToClient, Data: []byte(wrong)})
		if len(w.broken) == 0 {
			t.Errorf("passed: %s", wrong)
		}
		if schema != nil && !strings.Contains(strings.Join(w.broken, " "), "published schema") {
			t.Errorf("passed the published schema: %s", wrong)
		}
	}
}
