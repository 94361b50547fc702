package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Ways out of the session's directories: names, links to files, links to
// directories, and a link that appears where a file is to be made.
func TestChecklist_048_escapes_are_prevented(t *testing.T) {
	t.Parallel()
	playFile(t, "path_outside_the_roots_is_refused")
	playFile(t, "forbidden_path_is_refused")
	w := newWorld(t)
	secret := filepath.Join(w.data, "..", "secret")
	write(t, filepath.Join(secret, "key.txt"), "SECRET\n")
	w.fill(t, map[string]string{"one/a.txt": "A\n", "two/b.txt": "B\n"})
	for link, target := range map[string]string{"file.txt": filepath.Join(secret, "key.txt"), "dir": secret, "fresh.txt": filepath.Join(secret, "fresh.txt")} {
		if err := os.Symlink(target, filepath.Join(w.work, "one", link)); err != nil {
			t.Skip("this system has no links for everybody: ", err)
		}
	}
	quoted := func(path string) string { q, _ := json.Marshal(path); return string(q) } // a string always encodes
	w.configure(t, `call read_file {"path":"file.txt"}
call read_file {"path":"dir/key.txt"}
call read_file {"path":"../../secret/key.txt"}
call read_file {"path":`+quoted(filepath.Join(secret, "key.txt"))+`}
call list_directory {"path":"dir"}
call read_file {"path":`+quoted(filepath.Join(w.work, "two", "b.txt"))+`}
call write_file {"path":"dir/new.txt","content":"x"}
call write_file {"path":"fresh.txt","content":"x"}
--- next
refute "SECRET"
expect "B"
text "ok"
`, "[profiles.default]\nauto_approve = [\"write_file\"]\n")
	o := scene{script: hello + `> session/new {"cwd":"$WORK/one","additionalDirectories":["$WORK/two"],"mcpServers":[]}
< {"sessionId":"$sid"}
` + turn}.playIn(t, w)
	ends := map[string]int{}
	for _, u := range o.updates("tool_call_update") {
		ends[text(u, "status")]++
	}
	if ends["failed"] != 7 || ends["completed"] != 1 {
		t.Errorf("calls ended %v, want 7 refused and the one in the other root done", ends)
	}
	for _, name := range []string{"new.txt", "fresh.txt"} {
		if _, err := os.Stat(filepath.Join(secret, name)); err == nil {
			t.Errorf("%s was written outside the roots", name)
		}
	}
}

func TestChecklist_049_additional_directories_are_checked(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	for _, method := range []string{"session/new", "session/load", "session/resume"} {
		sid := "gone"
		if method == "session/new" {
			sid = "unused"
		}
		for _, bad := range []string{`["rel"]`, `["$WORK","rel"]`, `[""]`, `["~"]`, `[5]`, `[null]`, `"$WORK"`, `{}`, `5`} {
			fmt.Fprintf(&script, "> %s {\"sessionId\":\"%s\",\"cwd\":\"$WORK\",\"mcpServers\":[],\"additionalDirectories\":%s}\n< error {\"code\":-32602}\n", method, sid, bad)
		}
	}
	scene{files: map[string]string{"two/x": ""}, script: hello + script.String() + `> session/list {}
< {"sessions":[]}
> session/new {"cwd":"$WORK","mcpServers":[],"additionalDirectories":["$WORK/two"]}
< {"sessionId":"$sid"}
> session/list {}
< {"sessions":[{"sessionId":"$sid","additionalDirectories":["$WORK/two"]}]}
`}.play(t)
}

// A load or resume without a root takes it away, one with it gives it back.
func TestChecklist_050_the_list_sent_is_complete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, _ := json.Marshal(filepath.Join(w.work, "two", "b.txt")) // a string always encodes
	w.fill(t, map[string]string{"one/a.txt": "A\n", "two/b.txt": "B\n"})
	w.configure(t, "--- next always\ntext \"again\"\n"+strings.Repeat("--- next when \"look\"\ncall read_file {\"path\":"+string(other)+"}\n--- next when \"look\"\ntext \"ok\"\n", 5), "")
	look := func(status string) string {
		return `> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"look"}]}
<! session/update {"update":{"sessionUpdate":"tool_call_update","status":"` + status + `"}}
< @p {"stopReason":"end_turn"}
`
	}
	const open = `> %s {"sessionId":"$sid","cwd":"$WORK/one","mcpServers":[]%s}
< {}
`
	with := `,"additionalDirectories":["$WORK/two"]`
	scene{script: hello + `> session/new {"cwd":"$WORK/one","mcpServers":[]` + with + `}
< {"sessionId":"$sid"}
loose
skip session/update {"update":{"sessionUpdate":"tool_call_update","status":"in_progress"}}
` + look("completed") +
		fmt.Sprintf(open, "session/load", "") + look("failed") +
		fmt.Sprintf(open, "session/resume", with) + look("completed") +
		fmt.Sprintf(open, "session/resume", "") + look("failed") +
		fmt.Sprintf(open, "session/load", with) + look("completed")}.playIn(t, w)
}

func TestChecklist_051_fork(t *testing.T) {
	t.Parallel()
	o := scene{script: session + `> session/fork {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
< error {"code":-32601,"data":{"method":"session/fork"}}
`}.play(t)
	if in(o.capabilities(t), "sessionCapabilities", "fork") != nil {
		t.Error("fork is advertised")
	}
}

func TestChecklist_053_no_additional_directories(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	for _, dirs := range []string{``, `,"additionalDirectories":null`, `,"additionalDirectories":[]`} {
		fmt.Fprintf(&script, "> session/new {\"cwd\":\"$WORK\",\"mcpServers\":[]%s}\n< {\"sessionId\":\"$s\"}\n> session/load {\"sessionId\":\"$s\",\"cwd\":\"$WORK\",\"mcpServers\":[]%s}\n< {}\n> session/close {\"sessionId\":\"$s\"}\n< {}\n", dirs, dirs)
	}
	// A variable is captured once, so each round has its own.
	rounds := strings.Split(script.String(), "> session/new ")
	text := hello
	for i, round := range rounds[1:] {
		text += "> session/new " + strings.ReplaceAll(round, "$s\"", fmt.Sprintf("$s%d\"", i))
	}
	scene{script: text}.play(t)
}

// MCP servers on stdio are the one transport that needs no capability. They
// are accepted, checked, and said to be of no use yet.
func TestChecklist_054_mcp_servers(t *testing.T) {
	t.Parallel()
	playFile(t, "mcp_transports_that_are_not_offered_are_refused")
	const server = `{"name":"files","command":"/bin/false","args":["-x"],"env":[{"name":"A","value":"b"}]}`
	o := scene{model: "--- next always\ntext \"ok\"", script: `> initialize {"protocolVersion":1,"clientCapabilities":{"session":{"notices":{}}}}
< {"agentCapabilities":{"mcpCapabilities":{"http":false,"sse":false}}}
> session/new {"cwd":"$WORK","mcpServers":[` + server + `]}
< {"sessionId":"$sid","_meta":{"berth":{"notes":["~files"]}}}
` + turn + `> session/new {"cwd":"$WORK","mcpServers":[{"name":"x","command":5}]}
< error {"code":-32602}
> session/new {"cwd":"$WORK","mcpServers":[{"type":"sse","name":"x","url":"https://x.example","headers":[]}]}
< error {"code":-32602}
`}.play(t)
	if len(o.updates("notice")) == 0 {
		t.Error("nobody was told that the server is not used")
	}
}

func TestChecklist_058_load_of_an_unknown_session(t *testing.T) {
	t.Parallel()
	playFile(t, "load_of_an_unknown_session_fails")
	scene{script: hello + `> session/load {"sessionId":"0a0a0a0a-0000-4000-8000-000000000000","cwd":"$WORK","mcpServers":[]}
< error {"code":-32002,"data":{"sessionId":"0a0a0a0a-0000-4000-8000-000000000000"}}
> session/load {"sessionId":"../../etc/passwd","cwd":"$WORK","mcpServers":[]}
< error {"code":-32002,"data":{"sessionId":"../../etc/passwd"}}
> session/load {"sessionId":"","cwd":"$WORK","mcpServers":[]}
< error {}
strict
quiet
`}.play(t)
}

// remembered is a conversation with a bit of everything. The model of another
// process answers a later question by it.
const remembered = `--- next when "and now"
expect "first question"
expect "Let me look."
expect "Done."
text "I remember."
--- next
thought "Hm."
text "Let me look."
call read_file {"path":"a.txt"}
--- next
call edit_file {"path":"a.txt","edits":[{"old_text":"one","new_text":"two"}]}
--- next
call update_plan {"entries":[{"content":"look","status":"completed"},{"content":"mend","status":"pending"}]}
--- next
text "Done."
`

// A load in another process shows all that the first client saw, in its order,
// with its ids, and the calls as they ended; at the end the plan as it stands.
func TestChecklist_059_load_replays_everything(t *testing.T) {
	t.Parallel()
	playFile(t, "load_replays_then_answers")
	playFile(t, "load_replays_calls_with_final_status")
	scene{model: remembered, files: map[string]string{"a.txt": "one\n"}, script: session + `loose
> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"first question"},{"type":"resource","resource":{"uri":"file:///notes","text":"my notes"}}]}
<! session/update {"update":{"sessionUpdate":"agent_thought_chunk","messageId":"$m1"}}
<! session/update {"update":{"sessionUpdate":"agent_message_chunk","messageId":"$m2"}}
<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$c1","title":"$t1","name":"read_file"}}
<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$c2","title":"$t2","name":"edit_file","content":[{"type":"diff","oldText":"one\n","newText":"two\n"}]}}
<? session/request_permission @q {}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$c3"}}
<! session/update {"update":{"sessionUpdate":"plan"}}
< @p {"stopReason":"end_turn"}
eof
end
restart
` + hello + `ambient
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
<! session/update {"sessionId":"$sid","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"first question"},"messageId":"$u"}}
<! session/update {"update":{"sessionUpdate":"user_message_chunk","messageId":"$u"}}
<! session/update {"update":{"sessionUpdate":"agent_thought_chunk","messageId":"$m1","content":{"text":"Hm."}}}
<! session/update {"update":{"sessionUpdate":"agent_message_chunk","messageId":"$m2","content":{"text":"Let me look."}}}
<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$c1","title":"$t1","name":"read_file"}}
<! session/update {"update":{"sessionUpdate":"tool_call_update","toolCallId":"$c1","status":"completed"}}
<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$c2","title":"$t2","name":"edit_file","content":[{"type":"diff","path":"$WORK/a.txt","oldText":"one\n","newText":"two\n"},"..."]}}
<! session/update {"update":{"sessionUpdate":"tool_call_update","toolCallId":"$c2","status":"completed"}}
<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$c3","name":"update_plan"}}
<! session/update {"update":{"sessionUpdate":"tool_call_update","toolCallId":"$c3","status":"completed"}}
<! session/update {"update":{"sessionUpdate":"plan","entries":[{"content":"look","status":"completed"},{"content":"mend","status":"pending"}]}}
<! session/update {"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"Done."}}}
<! session/update {"update":{"sessionUpdate":"plan","entries":[{"content":"look","status":"completed"},{"content":"mend","status":"pending"}]}}
< {}
quiet
`}.play(t)
}

// The response is an object, after all updates, and then nothing: on the
// connection that made the session and on a new one.
func TestChecklist_060_load_answers_last(t *testing.T) {
	t.Parallel()
	scene{
		model: "thought \"Hm.\"\ntext \"ok\"\nusage input=10 output=2", watch: quietPeriod,
		script: loaded + "strict\nquiet\nambient\nclient two\n" + `> initialize {"protocolVersion":1,"clientCapabilities":{"session":{"notices":{}}}}
< {}
client main
> session/close {"sessionId":"$sid"}
< {}
eof
end
client two
loose
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[{"name":"m","command":"/bin/false","args":[],"env":[]}]}
< {}
strict
quiet
`,
	}.play(t)
}

func TestChecklist_065_resume(t *testing.T) {
	t.Parallel()
	playFile(t, "resume_replays_nothing_and_remembers")
	playFile(t, "resume_of_an_unknown_session_fails")
	scene{model: remembered, files: map[string]string{"a.txt": "one\n"}, script: session + `loose
> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"first question"}]}
<? session/request_permission @q {}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
< @p {"stopReason":"end_turn"}
eof
end
restart
` + hello + `strict
> session/resume {"sessionId":"$sid","cwd":"$WORK"}
< {}
ambient
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"and now?"}]}
says "I remember."
< {"stopReason":"end_turn"}
`}.play(t)
}

func TestChecklist_068_close_cancels(t *testing.T) {
	t.Parallel()
	playFile(t, "close_cancels_the_turn")
	for name, model := range map[string]string{
		"text": `chunks 100000 "tick " every 5ms`, "a silent model": "hang", "a deaf model": "stall 5s",
		"a question": "call write_file {\"path\":\"a.txt\",\"content\":\"x\"}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := ""
			if name == "a question" {
				ask = "<? session/request_permission @q {}\n"
			}
			o := scene{model: model, want: map[string]string{"a.txt": "(absent)"}, script: session + "loose\n" + prompt + ask + `> session/close @c {"sessionId":"$sid"}
< @p {"stopReason":"cancelled"}
< @c {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"*"}
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"x"}]}
< error {"code":-32002,"data":{"sessionId":"$sid"}}
`}.play(t)
			onlyMembers(t, "session/close", o.result(t, "session/close"))
		})
	}
}

// A model that does not listen goes on after its session was closed. Nothing
// of that may reach the client; only waiting for it shows that it does not.
func TestChecklist_070_silence_after_close(t *testing.T) {
	t.Parallel()
	scene{
		launch: broken(), watch: time.Second,
		script: session + strings.Replace(prompt, "go", "deaf", 1) + `says "One"
loose
> session/close @c {"sessionId":"$sid"}
< @p {"stopReason":"cancelled"}
< @c {}
strict
quiet
>! session/cancel {"sessionId":"$sid"}
> session/list {}
< {"sessions":[{"sessionId":"$sid"}]}
`,
	}.play(t)
}

func TestChecklist_071_list(t *testing.T) {
	t.Parallel()
	scene{script: hello + `> session/list {}
< {"sessions":[]}
> session/list
< {"sessions":[]}
> session/list {"cwd":null,"cursor":null}
< {"sessions":[]}
` + session[len(hello):] + `> session/list {}
< {"sessions":[{"sessionId":"$sid"}]}
> session/list {"cwd":"$WORK"}
< {"sessions":[{"sessionId":"$sid"}]}
> session/list {"cwd":"$CONFIG"}
< {"sessions":[]}
`}.play(t)
}

func TestChecklist_072_rows(t *testing.T) {
	t.Parallel()
	playFile(t, "list_shows_stored_sessions")
	o := scene{model: `text "ok"`, files: map[string]string{"sub/x": ""}, script: session + turn + `> session/new {"cwd":"$WORK/sub/../sub","mcpServers":[]}
< {"sessionId":"$two"}
> session/list {}
< {"sessions":[{"sessionId":"$two","cwd":"$WORK/sub"},{"sessionId":"$sid","cwd":"$WORK","title":"go"}]}
`}.play(t)
	rows, _ := find(o.result(t, "session/list"), "sessions").([]any)
	for _, row := range rows {
		at, _ := in(row, "updatedAt").(string)
		if when, err := time.Parse(time.RFC3339, at); err != nil || time.Since(when).Abs() > time.Hour {
			t.Errorf("updatedAt %q", at)
		}
		if cwd, _ := in(row, "cwd").(string); !filepath.IsAbs(cwd) {
			t.Errorf("cwd %q", cwd)
		}
	}
}

// 105 sessions come on pages that are never empty and end without a cursor;
// each session is on exactly one of them.
func TestChecklist_073_pages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(t, "", "[acp]\nmax_sessions = 200\n")
	var script strings.Builder
	script.WriteString(hello)
	for range 105 {
		script.WriteString("> session/new {\"cwd\":\"$WORK\",\"mcpServers\":[]}\n< {\"sessionId\":\"*\"}\n")
	}
	script.WriteString(`> session/list {}
< {"sessions":[{},"..."],"nextCursor":"$c1"}
> session/list {"cursor":"$c1"}
< {"sessions":[{},"..."],"nextCursor":"$c2"}
> session/list {"cursor":"$c2"}
< {"sessions":[{},"..."],"nextCursor":"!"}
`)
	o := scene{script: script.String()}.playIn(t, w)
	made, listed := map[string]bool{}, map[string]int{}
	for _, m := range o.fromAgent() {
		if id := text(m.Result, "sessionId"); id != "" {
			made[id] = true
		}
		rows, _ := find(m.Result, "sessions").([]any)
		for _, row := range rows {
			id, _ := in(row, "sessionId").(string)
			listed[id]++
		}
	}
	for id := range made {
		if listed[id] != 1 {
			t.Errorf("session %s is listed %d times", id, listed[id])
		}
	}
	if len(made) != 105 || len(listed) != 105 {
		t.Errorf("%d made, %d listed", len(made), len(listed))
	}
}
