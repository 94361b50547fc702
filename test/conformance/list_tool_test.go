package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/adapters/jsonrpc/transcript"
)

// A provider that numbers its calls afresh in each reply does not make the
// client see one id twice, in this process or the next.
func TestChecklist_113_call_ids_are_unique(t *testing.T) {
	t.Parallel()
	const model = "--- next always\ntext \"ok\"\n" +
		"--- next\ncall @call_0 read_file {\"path\":\"a.txt\"}\ncall @call_0 read_file {\"path\":\"a.txt\"}\n" +
		"--- next\ncall @call_0 read_file {\"path\":\"a.txt\"}\n"
	o := scene{model: model, files: map[string]string{"a.txt": "A\n"}, script: session + turn + `eof
end
restart
` + hello + `> session/resume {"sessionId":"$sid","cwd":"$WORK"}
< {}
` + strings.ReplaceAll(turn, "@p", "@again")}.play(t)
	ids := map[string]bool{}
	calls := o.updates("tool_call")
	for _, u := range calls {
		ids[text(u, "toolCallId")] = true
	}
	if len(calls) != 6 || len(ids) != 6 {
		t.Errorf("%d calls with %d ids", len(calls), len(ids))
	}
}

func TestChecklist_114_calls_are_announced_first(t *testing.T) {
	t.Parallel()
	o := conversation().play(t)
	announced, asked := map[string]bool{}, 0
	for _, m := range o.fromAgent() {
		switch id := text(m.Params, "update", "toolCallId"); {
		case text(m.Params, "update", "sessionUpdate") == "tool_call":
			announced[id] = true
		case id != "" && !announced[id]:
			t.Errorf("%s comes before its call was announced", m.raw)
		case m.Method == "session/request_permission":
			asked++
			if id := text(m.Params, "toolCall", "toolCallId"); !announced[id] {
				t.Errorf("permission for %s, which was not announced", id)
			}
		}
	}
	if len(announced) < 4 || asked == 0 {
		t.Errorf("%d calls, %d questions", len(announced), asked)
	}
}

func TestChecklist_116_one_final_status(t *testing.T) {
	t.Parallel()
	playFile(t, "parallel_reads_all_end_before_the_response")
	o := scene{
		model: `call read_file {"path":"a.txt"}
call read_file {"path":"missing.txt"}
call no_such_tool {}
call write_file {"path":"b.txt","content":"x"}
--- next
text "ok"
`, files: map[string]string{"a.txt": "A\n"},
		script: session + `loose
` + prompt + `<? session/request_permission @q {}
>= @q {"outcome":{"outcome":"selected","optionId":"reject-once"}}
< @p {"stopReason":"end_turn"}
`,
	}.play(t)
	final := map[string][]string{}
	for _, u := range append(o.updates("tool_call"), o.updates("tool_call_update")...) {
		if s := text(u, "status"); s == "completed" || s == "failed" {
			final[text(u, "toolCallId")] = append(final[text(u, "toolCallId")], s)
		}
	}
	counts := map[string]int{}
	for id, statuses := range final {
		if len(statuses) != 1 {
			t.Errorf("call %s ended %q", id, statuses)
		}
		counts[statuses[0]]++
	}
	if counts["completed"] != 1 || counts["failed"] != 3 {
		t.Errorf("calls ended %v, want 1 completed and 3 failed", counts)
	}
}

func TestChecklist_117_text_is_wrapped(t *testing.T) {
	t.Parallel()
	o := scene{
		model: "call read_file {\"path\":\"a.txt\"}\ncall read_file {\"path\":\"missing.txt\"}\n--- next\ntext \"ok\"",
		files: map[string]string{"a.txt": "AAA\n"}, script: session + turn,
	}.play(t)
	n := 0
	for _, u := range o.updates("tool_call_update") {
		content, _ := find(u, "content").([]any)
		for _, c := range content {
			n++
			said, _ := in(c, "content", "text").(string)
			if in(c, "type") != "content" || in(c, "content", "type") != "text" || said == "" {
				t.Errorf("content %v", c)
			}
		}
	}
	if n < 2 {
		t.Errorf("%d pieces of content", n)
	}
}

func TestChecklist_118_diffs(t *testing.T) {
	t.Parallel()
	playFile(t, "write_makes_a_new_file")
	o := scene{
		model: "call write_file {\"path\":\"sub/new.txt\",\"content\":\"n\\n\"}\n--- next\ncall edit_file {\"path\":\"a.txt\",\"edits\":[{\"old_text\":\"one\",\"new_text\":\"two\"}]}\n--- next\ncall write_file {\"path\":\"a.txt\",\"content\":\"\"}\n--- next\ntext \"ok\"",
		files: map[string]string{"a.txt": "one\n"}, want: map[string]string{"sub/new.txt": "n\n", "a.txt": ""},
		config: "[profiles.default]\nauto_approve = [\"write_file\", \"edit_file\"]\n", script: session + turn,
	}.play(t)
	var got []string
	for _, u := range o.updates("tool_call") {
		content, _ := find(u, "content").([]any)
		for _, c := range content {
			if in(c, "type") != "diff" {
				continue
			}
			path, _ := in(c, "path").(string)
			if !filepath.IsAbs(path) {
				t.Errorf("path %q", path)
			}
			diff, _ := json.Marshal([]any{filepath.Base(path), in(c, "oldText"), in(c, "newText")}) // plain values encode
			got = append(got, string(diff))
		}
	}
	want := []string{`["new.txt",null,"n\n"]`, `["a.txt","one\n","two\n"]`, `["a.txt","two\n",""]`}
	if !slices.Equal(got, want) {
		t.Errorf("diffs %s, want %s", got, want)
	}
}

func TestChecklist_123_options_of_a_question(t *testing.T) {
	t.Parallel()
	playFile(t, "edit_asks_with_the_diff_then_writes")
	playFile(t, "always_ask_asks_for_reads_too")
	o := conversation().play(t)
	n := 0
	for _, m := range o.fromAgent() {
		if m.Method != "session/request_permission" {
			continue
		}
		n++
		options, _ := find(m.Params, "options").([]any)
		ids, kinds := map[string]bool{}, map[string]int{}
		for _, option := range options {
			id, _ := in(option, "optionId").(string)
			name, _ := in(option, "name").(string)
			kind, _ := in(option, "kind").(string)
			if ids[id] || id == "" || name == "" || strings.ContainsRune(name, '\n') {
				t.Errorf("option %v", option)
			}
			ids[id] = true
			allow, once, _ := strings.Cut(kind, "_")
			kinds[allow]++
			if strings.HasPrefix(id, "allow") != (allow == "allow") || once != "once" && once != "always" {
				t.Errorf("option %v has the wrong kind", option)
			}
		}
		if kinds["allow"] == 0 || kinds["reject"] == 0 {
			t.Errorf("options %v", options)
		}
		if text(m.Params, "toolCall", "title") == "" || text(m.Params, "toolCall", "kind") != "edit" || find(m.Params, "toolCall", "content") == nil {
			t.Errorf("the question does not say what it is about: %s", m.raw)
		}
	}
	if n == 0 {
		t.Error("nothing was asked")
	}
}

// denials plays a write whose question gets an answer that is no approval: the
// file is not written, the turn goes on, and the model is told.
func denials(t *testing.T, answers map[string]string) {
	t.Helper()
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene{
				model: "call write_file {\"path\":\"a.txt\",\"content\":\"x\"}\n--- next\nrefute \"bytes written\"\ntext \"Then not.\"",
				want:  map[string]string{"a.txt": "(absent)"},
				script: session + `loose
` + prompt + `<! session/update {"update":{"sessionUpdate":"tool_call","toolCallId":"$c"}}
<? session/request_permission @q {"toolCall":{"toolCallId":"$c"}}
` + answer + `
<! session/update {"update":{"sessionUpdate":"tool_call_update","toolCallId":"$c","status":"failed"}}
says "Then not."
< @p {"stopReason":"end_turn"}
`,
			}.play(t)
		})
	}
}

func TestChecklist_124_only_what_was_offered_is_approval(t *testing.T) {
	t.Parallel()
	playFile(t, "permission_unknown_option_refuses")
	playFile(t, "permission_malformed_answer_refuses")
	denials(t, map[string]string{
		"an unknown option":   `>= @q {"outcome":{"outcome":"selected","optionId":"root"}}`,
		"the kind for the id": `>= @q {"outcome":{"outcome":"selected","optionId":"allow_once"}}`,
		"an unknown outcome":  `>= @q {"outcome":{"outcome":"granted","optionId":"allow-once"}}`,
		"no option":           `>= @q {"outcome":{"outcome":"selected"}}`,
		"a number":            `>= @q {"outcome":{"outcome":"selected","optionId":1}}`,
		"a word":              `>= @q {"outcome":"allow-once"}`,
		"null":                `>= @q null`,
		"a list":              `>= @q [{"outcome":"selected","optionId":"allow-once"}]`,
		"upper case":          `>= @q {"outcome":{"outcome":"selected","optionId":"ALLOW-ONCE"}}`,
	})
}

func TestChecklist_125_always_is_remembered(t *testing.T) {
	t.Parallel()
	playFile(t, "permission_allow_always_is_remembered")
	playFile(t, "permission_allow_always_survives_restart")
	playFile(t, "permission_reject_always_is_remembered")
	playFile(t, "permission_reject_always_survives_restart")
	playFile(t, "permission_always_covers_only_its_tool")
}

// The file changes while its diff is being looked at: the approval is for that
// diff, so the edit does not happen, and what somebody else wrote stays.
func TestChecklist_126_approval_covers_what_was_shown(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{
		"edit":     `call edit_file {"path":"a.txt","edits":[{"old_text":"one","new_text":"two"}]}`,
		"write":    `call write_file {"path":"a.txt","content":"two\n"}`,
		"new file": `call write_file {"path":"b.txt","content":"two\n"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.fill(t, map[string]string{"a.txt": "one\n"})
			w.configure(t, call+"\n--- next\ntext \"ok\"\n", "")
			scene{
				want: map[string]string{"a.txt": "somebody else's one\n", "b.txt": "somebody else's\n"},
				hook: func(f transcript.Frame) {
					if m, err := jsonrpc.Parse(f.Data); err == nil && m.Method == "session/request_permission" {
						_ = os.WriteFile(filepath.Join(w.work, "a.txt"), []byte("somebody else's one\n"), 0o600)
						_ = os.WriteFile(filepath.Join(w.work, "b.txt"), []byte("somebody else's\n"), 0o600)
					}
				},
				script: session + `loose
` + prompt + `<? session/request_permission @q {}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
<! session/update {"update":{"sessionUpdate":"tool_call_update","status":"failed"}}
< @p {"stopReason":"end_turn"}
`,
			}.playIn(t, w)
		})
	}
}

func TestChecklist_127_no_answer_is_a_denial(t *testing.T) {
	t.Parallel()
	playFile(t, "permission_error_answer_refuses")
	denials(t, map[string]string{
		"not served":        `>= @q error {"code":-32601,"message":"Method not found"}`,
		"an error":          `>= @q error {"code":-32603,"message":"the dialog broke"}`,
		"an odd error":      `>= @q error {"code":0,"message":""}`,
		"rejected for once": `>= @q {"outcome":{"outcome":"selected","optionId":"reject-once"}}`,
	})
	for name, cut := range map[string]string{"the input ends": "eof\n< @p {\"stopReason\":\"cancelled\"}\nend\n", "the connection is cut": "drop\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene{
				model: "call write_file {\"path\":\"a.txt\",\"content\":\"x\"}\n--- next\ntext \"ok\"", want: map[string]string{"a.txt": "(absent)"},
				script: session + "loose\n" + prompt + "<? session/request_permission @q {}\n" + cut,
			}.play(t)
		})
	}
}

// There are no subagents, so no question comes from one, and a model that
// calls for one is told so.
func TestChecklist_129_subagents(t *testing.T) {
	t.Parallel()
	o := scene{
		model: "call delegate {\"task\":\"look\"}\n--- next\nexpect \"delegate\"\ntext \"ok\"",
		script: `> initialize {"protocolVersion":1,"clientCapabilities":{"subagents":{}}}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
` + turn,
	}.play(t)
	if asked := o.requests(); len(asked) > 0 {
		t.Errorf("the agent asked for %v", asked)
	}
	for _, kind := range []string{"subagent_update", "session_message", "session_message_chunk"} {
		if n := len(o.updates(kind)); n > 0 {
			t.Errorf("%d %s", n, kind)
		}
	}
	if calls := o.updates("tool_call_update"); len(calls) == 0 || text(calls[len(calls)-1], "status") != "failed" {
		t.Errorf("the call ended %s", calls)
	}
}

// everything is what a client offers that offers all there is.
const everything = `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},` +
	`"elicitation":{"form":{},"url":{}},"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{},"promptSuggestions":{}},"subagents":{},"plan":{}}`

// offeredAll plays the turn in which the model wants files, a shell and a person,
// for a client that offers everything, and returns what happened.
func offeredAll(t *testing.T) *outcome {
	t.Helper()
	serve := func(label, result string) string {
		return fmt.Sprintf("<? fs/read_text_file @%[1]s {\"sessionId\":\"$sid\"}\n>= @%[1]s %[2]s\n", label, result)
	}
	const missing = `error {"code":-32002,"message":"no such file"}`
	return scene{
		model: nosy, files: map[string]string{"README.md": "Read me.\n"}, want: map[string]string{"out.txt": "(absent)"},
		script: `> initialize {"protocolVersion":1,"clientCapabilities":` + everything + `}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
loose
` + prompt + serve("r1", `{"content":"Read me.\n"}`) + serve("r2", missing) + `<? session/request_permission @q {"sessionId":"$sid"}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
` + serve("r3", missing) + `<? fs/write_text_file @w {"sessionId":"$sid","path":"$WORK/out.txt","content":"x\n"}
>= @w null
< @p {"stopReason":"end_turn"}
quiet
`,
	}.play(t)
}

// wants demands what a client that offers everything was asked for.
func wants(t *testing.T, o *outcome) {
	t.Helper()
	if got := o.requests(); !slices.Equal(got, []string{
		"fs/read_text_file", "fs/read_text_file", "session/request_permission", "fs/read_text_file", "fs/write_text_file",
	}) {
		t.Errorf("the agent asked for %v", got)
	}
}

func TestChecklist_130_client_methods_only_if_offered(t *testing.T) {
	t.Parallel()
	asksForPermissionOnly(t, `{}`)
	asksForPermissionOnly(t, `{"fs":null,"terminal":null,"elicitation":null}`)
	asksForPermissionOnly(t, `{"fs":true,"terminal":"yes","elicitation":[]}`)
	wants(t, offeredAll(t))
}

func TestChecklist_131_each_flag_gates_its_method(t *testing.T) {
	t.Parallel()
	playFile(t, "client_buffers_are_read_and_written")
	asksForPermissionOnly(t, `{"fs":{"readTextFile":true}}`)
	asksForPermissionOnly(t, `{"fs":{"readTextFile":true,"writeTextFile":false}}`)
	asksForPermissionOnly(t, `{"fs":{"writeTextFile":true}}`)
	asksForPermissionOnly(t, `{"fs":{"readTextFile":"true","writeTextFile":1}}`)
}

func TestChecklist_132_paths_and_lines(t *testing.T) {
	t.Parallel()
	o := scene{
		model: "call read_file {\"path\":\"sub/../sub/a.txt\",\"offset\":2,\"limit\":1}\n--- next\nexpect \"two\"\ntext \"ok\"",
		files: map[string]string{"sub/a.txt": "one\ntwo\nthree\n"},
		script: `> initialize {"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
loose
` + prompt + `<? fs/read_text_file @r {"path":"$WORK/sub/a.txt"}
>= @r {"content":"one\ntwo\nthree\n"}
< @p {"stopReason":"end_turn"}
`,
	}.play(t)
	for _, m := range o.fromAgent() {
		for _, name := range []string{"line", "limit"} {
			if v := find(m.Params, name); m.Kind == jsonrpc.Request && v != nil && v.(json.Number) < "1" {
				t.Errorf("%s is %v", name, v)
			}
		}
	}
	for _, u := range o.updates("tool_call") {
		places, _ := find(u, "locations").([]any)
		for _, place := range places {
			path, _ := in(place, "path").(string)
			if line, ok := in(place, "line").(json.Number); !filepath.IsAbs(path) || ok && line.String() == "0" {
				t.Errorf("location %v", place)
			}
		}
	}
}

func TestChecklist_134_terminals(t *testing.T) {
	t.Parallel()
	noTerminals(t)
}

func TestChecklist_135_kill_then_release(t *testing.T) {
	t.Parallel()
	noTerminals(t)
}

// noTerminals proves that no terminal is made or shown, whatever the client
// offers and the model wants.
func noTerminals(t *testing.T) {
	t.Helper()
	o := offeredAll(t)
	wants(t, o)
	for _, u := range o.updates("tool_call_update") {
		content, _ := find(u, "content").([]any)
		for _, c := range content {
			if in(c, "type") == "terminal" {
				t.Errorf("a terminal: %v", c)
			}
		}
	}
}
