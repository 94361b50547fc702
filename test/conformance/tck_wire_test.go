package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"
)

// conversation is a turn with everything that goes over the wire in one:
// thoughts, text beyond ASCII, a read, an edit with its diff and permission, a
// plan, usage, and a load of it all.
func conversation() scene {
	return scene{
		model: `thought "Grübeln …"
text "héllo 中文 😀\nline two\r\nline three\u2028end"
call read_file {"path":"a.txt"}
usage input=100 output=20
--- next
call edit_file {"path":"a.txt","edits":[{"old_text":"one","new_text":"two"}]}
--- next
call update_plan {"entries":[{"content":"look","status":"completed"},{"content":"mend","status":"in_progress"}]}
--- next
call read_file {"path":"missing.txt"}
--- next
text "Done."
`,
		config: "[providers.script.models.test]\ncontext_window = 1000\n",
		files:  map[string]string{"a.txt": "one\n"},
		want:   map[string]string{"a.txt": "two\n"},
		script: session + `loose
> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"hello é中文 😀"}]}
<? session/request_permission @q {"sessionId":"$sid"}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
< @p {"stopReason":"end_turn"}
> session/list {}
< {"sessions":[{"sessionId":"$sid"}]}
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
< {}
> session/resume {"sessionId":"$sid","cwd":"$WORK"}
< {}
> session/prompt {"sessionId":"nobody","prompt":[{"type":"text","text":"x"}]}
< error {"code":-32002}
> session/close {"sessionId":"$sid"}
< {}
> session/delete {"sessionId":"$sid"}
< {}
eof
end
exit 0
`,
	}
}

func TestTCK_ACP_TRANSPORT_001(t *testing.T) {
	t.Parallel()
	o := conversation().play(t) // which judges every byte of standard output
	kept, whole := o.agents[0].stdout.bytes()
	if !whole || bytes.Count(kept, []byte("\n")) != len(o.fromAgent()) {
		t.Errorf("%d lines, %d messages, whole: %v", bytes.Count(kept, []byte("\n")), len(o.fromAgent()), whole)
	}
}

func TestTCK_ACP_TRANSPORT_002(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := scene{
		model:  "call list_directory {}\ncall read_file {\"path\":\"latin1.txt\"}\n--- next\ntext \"é中文😀\"\n",
		script: session + turn + "eof\nend\n",
	}
	w.configure(t, s.model, "")
	write(t, filepath.Join(w.work, "latin1.txt"), "caf\xe9 \xff\n")
	// Not every file system takes such a name.
	if os.WriteFile(filepath.Join(w.work, "bad\xff\xfename"), nil, 0o600) != nil {
		t.Log("the file system takes no name that is not UTF-8")
	}
	o := s.playIn(t, w)
	if kept, _ := o.agents[0].stdout.bytes(); len(kept) == 0 || !utf8.Valid(kept) {
		t.Errorf("standard output is not UTF-8: %q", kept)
	}
}

func TestTCK_ACP_JSONRPC_001(t *testing.T) {
	t.Parallel()
	scene{script: `> initialize #424242 {"protocolVersion":1,"clientCapabilities":{}}
< #424242 {"protocolVersion":1}
> session/new #"tck-string-id" {"cwd":"$WORK","mcpServers":[]}
< #"tck-string-id" {"sessionId":"*"}
`}.play(t)
}

func TestTCK_ACP_JSONRPC_002(t *testing.T) {
	t.Parallel()
	o := scene{script: hello + `> session/new {"mcpServers":[]}
< error {"code":-32602}
> _tck/does_not_exist
< error {"code":-32601}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {}
`}.play(t)
	n := 0
	for _, m := range o.fromAgent() {
		if m.Method == "" {
			envelope(t, m.raw)
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d responses, want 4", n)
	}
}

func TestTCK_ACP_JSONRPC_003(t *testing.T) {
	t.Parallel()
	scene{watch: quietPeriod, script: session + commands + `>! session/cancel {"sessionId":"$sid"}
strict
quiet
> session/list {}
< {"sessions":["..."]}
`}.play(t)
}

func TestTCK_ACP_JSONRPC_004(t *testing.T) {
	t.Parallel()
	scene{script: hello + `> _tck/does_not_exist
< error {"code":-32601}
> tck/does_not_exist {}
< error {"code":-32601}
`}.play(t)
}

func TestTCK_ACP_JSONRPC_005(t *testing.T) {
	t.Parallel()
	scene{model: `text "ok"`, script: hello + `> _tck/does_not_exist
< error {"code":-32601}
> session/new {"cwd":"relative","mcpServers":[]}
< error {"code":-32602}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
` + turn}.play(t)
}

func TestTCK_ACP_INIT_001(t *testing.T) {
	t.Parallel()
	o := scene{script: hello}.play(t)
	if v, ok := find(o.result(t, "initialize"), "protocolVersion").(json.Number); !ok || v != "1" {
		t.Errorf("protocolVersion %v", v)
	}
}

func TestTCK_ACP_INIT_002(t *testing.T) {
	t.Parallel()
	scene{script: hello}.play(t)
}

func TestTCK_ACP_INIT_003(t *testing.T) {
	t.Parallel()
	scene{script: `client reference
` + hello + `client future
> initialize {"protocolVersion":65535,"clientCapabilities":{},"info":{"name":"acp-tck","version":"1"},"capabilities":{"session":{},"terminal":[]}}
< {"protocolVersion":1}
`}.play(t)
}

func TestTCK_ACP_INIT_004(t *testing.T) {
	t.Parallel()
	scene{script: `> initialize {"protocolVersion":1,"clientCapabilities":{}}
< {"agentInfo":{"name":"berth","title":"Berth","version":"~."}}
`}.play(t)
}

// The checks of ACP-SCHEMA-001 and -002 are the watch's, and hold in every
// test of this package; these two show that the longest conversation passes.
func TestTCK_ACP_SCHEMA_001(t *testing.T) {
	t.Parallel()
	o := conversation().play(t)
	kinds := map[string]bool{}
	for _, u := range o.updates("") {
		kinds[text(u, "sessionUpdate")] = true
	}
	for _, kind := range []string{
		"agent_thought_chunk", "agent_message_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan", "usage_update",
	} {
		if !kinds[kind] {
			t.Errorf("the conversation shows no %s", kind)
		}
	}
}

func TestTCK_ACP_SCHEMA_002(t *testing.T) {
	t.Parallel()
	o := conversation().play(t)
	for method, members := range map[string][]string{
		"initialize":  {"protocolVersion", "agentCapabilities", "authMethods", "agentInfo"},
		"session/new": {"sessionId"}, "session/prompt": {"stopReason"}, "session/list": {"sessions"},
		"session/load": {}, "session/resume": {}, "session/close": {}, "session/delete": {},
	} {
		onlyMembers(t, method, o.result(t, method), members...)
	}
}

func TestTCK_ACP_EXT_001(t *testing.T) {
	t.Parallel()
	scene{script: hello + `> _tck/unknown
< error {"code":-32601,"data":{"method":"_tck/unknown"}}
> _tck/unknown {"any":["thing"]}
< error {"code":-32601}
`}.play(t)
}

func TestTCK_ACP_META_001(t *testing.T) {
	t.Parallel()
	scene{model: `text "ok"`, script: session + `> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"hello"}],"_meta":{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tck":true}}
says "ok"
< {"stopReason":"end_turn"}
`}.play(t)
}

func TestTCK_ACP_ERROR_001(t *testing.T) {
	t.Parallel()
	o := scene{script: hello + `> _tck/does_not_exist
< error {}
> session/new {"mcpServers":[]}
< error {}
> session/prompt {"sessionId":"multi\nline\rid","prompt":[]}
< error {}
> session/prompt {"sessionId":"gone","prompt":[{"type":"text","text":"x"}]}
< error {}
>> {"not":"closed"
< #null error {}
`}.play(t)
	errors := 0
	for _, m := range o.fromAgent() {
		if m.Error == nil {
			continue
		}
		errors++
		if m.Error.Message == "" || bytes.ContainsAny([]byte(m.Error.Message), "\r\n\u2028") {
			t.Errorf("message %q", m.Error.Message)
		}
	}
	if errors != 5 {
		t.Errorf("%d errors, want 5", errors)
	}
}

func TestTCK_ACP_SHUTDOWN_001(t *testing.T) {
	t.Parallel()
	o := scene{script: session + "eof\nend\nexit 0\n"}.play(t)
	if took := time.Since(o.frames[len(o.frames)-1].Time); took > 3*time.Second+slack {
		t.Errorf("the agent needed %v to end", took)
	}
}

// The kit records how much an ordinary exchange writes to standard error. We
// demand that it is nothing.
func TestTCK_ACP_STDERR_001(t *testing.T) {
	t.Parallel()
	if o := (scene{model: `text "ok"`, script: session + turn + "eof\nend\n"}).play(t); o.log != "" {
		t.Errorf("standard error: %s", o.log)
	}
}

// invalid is a line that is no request, and that the connection lives on. For
// the three behaviours that the kit only records, JSON-RPC and the protocol's
// newest page on errors say what they should be.
const invalid = `>> %s
< #null error {"code":%d}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"*"}
`

func TestTCK_ACP_INFO_PARSE_001(t *testing.T) {
	t.Parallel()
	scene{script: hello + fmt.Sprintf(invalid, `{not valid json at all`, -32700)}.play(t)
}

func TestTCK_ACP_INFO_INVALIDREQ_001(t *testing.T) {
	t.Parallel()
	scene{script: hello + fmt.Sprintf(invalid, `{"foo": "bar"}`, -32600)}.play(t)
}

func TestTCK_ACP_INFO_UNKNOWNSESSION_001(t *testing.T) {
	t.Parallel()
	scene{script: session + `> session/prompt {"sessionId":"tck-does-not-exist","prompt":[{"type":"text","text":"hi"}]}
< error {"code":-32002,"data":{"sessionId":"tck-does-not-exist"}}
`}.play(t)
}
