package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// However a turn ends, its prompt is answered once; the watch counts.
func TestChecklist_082_prompts_are_answered_once(t *testing.T) {
	t.Parallel()
	scene{
		model: `text "done"
--- next
text "cut off"
length
--- next
refuse "No."
--- next
error unavailable "down"
--- next
text "half"
cut
--- next
text "One"
hang
--- next
text "still here"
`,
		script: session + "loose\n" +
			strings.Replace(prompt, "@p", "@a", 1) + "< @a {\"stopReason\":\"end_turn\"}\n" +
			strings.Replace(prompt, "@p", "@b", 1) + "< @b {\"stopReason\":\"max_tokens\"}\n" +
			strings.Replace(prompt, "@p", "@c", 1) + "< @c {\"stopReason\":\"refusal\"}\n" +
			strings.Replace(prompt, "@p", "@d", 1) + "< @d error {\"code\":-32603,\"data\":{\"reason\":\"PROVIDER_ERROR\"}}\n" +
			strings.Replace(prompt, "@p", "@e", 1) + "< @e error {\"code\":-32603,\"data\":{\"reason\":\"PROVIDER_ERROR\"}}\n" +
			strings.Replace(prompt, "@p", "@f", 1) + "<! session/update {\"update\":{\"sessionUpdate\":\"agent_message_chunk\"}}\n>! session/cancel {\"sessionId\":\"$sid\"}\n< @f {\"stopReason\":\"cancelled\"}\n" +
			turn + "strict\nquiet\n",
	}.play(t)
}

// Two sessions stream at once. What is said in one never bears the id of the
// other, and all of it comes before that one's response.
func TestChecklist_083_updates_come_before_the_response(t *testing.T) {
	t.Parallel()
	o := scene{
		model: "--- next session 1\nchunks 300 \"a\"\nusage input=1 output=1\n--- next session 2\nchunks 300 \"b\"\n",
		script: hello + `> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$a"}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$b"}
loose
> session/prompt @a {"sessionId":"$a","prompt":"go"}
> session/prompt @b {"sessionId":"$b","prompt":"go"}
any {
< @a {"stopReason":"end_turn"}
< @b {"stopReason":"end_turn"}
}
quiet
`,
	}.play(t)
	said := map[string]string{}
	for _, m := range o.fromAgent() {
		if text(m.Params, "update", "sessionUpdate") == "agent_message_chunk" {
			said[text(m.Params, "sessionId")] += text(m.Params, "update", "content", "text")
		}
	}
	// The first session to ask the model may be either.
	a, b := said[o.vars["a"].(string)], said[o.vars["b"].(string)]
	if len(a) != 300 || len(b) != 300 || strings.Trim(a, a[:1]) != "" || strings.Trim(b, b[:1]) != "" || a == b {
		t.Errorf("sessions said %q and %q", a, b)
	}
}

func TestChecklist_084_unknown_sessions(t *testing.T) {
	t.Parallel()
	playFile(t, "prompt_to_a_session_not_opened_here_fails")
	const ask = `> session/prompt {"sessionId":"%[1]s","prompt":[{"type":"text","text":"x"}]}
< error {"code":-32002,"data":{"sessionId":"%[1]s"}}
`
	scene{script: session + fmt.Sprintf(ask, "gone") + fmt.Sprintf(ask, "../x") + `> session/close {"sessionId":"$sid"}
< {}
` + fmt.Sprintf(ask, "$sid") + `> session/delete {"sessionId":"$sid"}
< {}
` + fmt.Sprintf(ask, "$sid") + `> session/resume {"sessionId":"$sid","cwd":"$WORK"}
< error {"code":-32002,"data":{"sessionId":"$sid"}}
> session/prompt {"prompt":[{"type":"text","text":"x"}]}
< error {"code":-32602}
`}.play(t)
}

// A prompt that is refused leaves nothing: no update, no file, nothing that
// the model or a load would see.
func TestChecklist_085_no_partial_turn(t *testing.T) {
	t.Parallel()
	playFile(t, "empty_prompt_is_refused")
	var script strings.Builder
	for _, blocks := range []string{
		`[]`, `""`, `null`, `[null]`, `{}`, `[{"type":"hologram","data":"x"}]`,
		`[{"type":"text","text":"FORGET"},{"type":"image","mimeType":"image/png","data":"aGk="}]`,
		`[{"type":"text","text":"FORGET"},{"type":"audio","mimeType":"audio/wav","data":"aGk="}]`,
		`[{"type":"resource","resource":{"uri":"file:///a.bin","blob":"aGk="}},{"type":"image","mimeType":"image/png","data":"aGk="}]`,
		`[{"type":"resource","resource":{"uri":"file:///a.bin","blob":"not base64!"}}]`,
	} {
		fmt.Fprintf(&script, "> session/prompt {\"sessionId\":\"$sid\",\"prompt\":%s}\n< error {\"code\":-32602}\n", blocks)
	}
	scene{
		model: "refute \"FORGET\"\ntext \"ok\"", want: map[string]string{"uploads": "(absent)"},
		script: session + commands + "strict\n" + script.String() + `quiet
ambient
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"first"}]}
says "ok"
< {"stopReason":"end_turn"}
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
<! session/update {"update":{"sessionUpdate":"user_message_chunk","content":{"text":"first"}}}
<! session/update {"update":{"sessionUpdate":"agent_message_chunk","content":{"text":"ok"}}}
< {}
`,
	}.play(t)
}

func TestChecklist_090_refusal_drops_the_turn(t *testing.T) {
	t.Parallel()
	playFile(t, "refusal_leaves_the_context")
	scene{
		model: `call read_file {"path":"a.txt"}
--- next
refuse "I will not."
--- next
refute "FORBIDDEN"
refute "AAA"
text "Sure."
`,
		files: map[string]string{"a.txt": "AAA\n"},
		script: session + `loose
> session/prompt @p {"sessionId":"$sid","prompt":[{"type":"text","text":"the FORBIDDEN thing"}]}
< @p {"stopReason":"refusal"}
ambient
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"something else"}]}
says "Sure."
< {"stopReason":"end_turn"}
`,
	}.play(t)
}

func TestChecklist_095_slash_commands_are_text(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"/nosuch do it", "/", "//x", "/etc/hosts is odd", "/help"} {
		scene{model: fmt.Sprintf("--- next when %q\ntext \"read\"\n", said), script: session + fmt.Sprintf(`> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":%q}]}
says "read"
< {"stopReason":"end_turn"}
`, said)}.play(t)
	}
}

func TestChecklist_098_plans_are_complete(t *testing.T) {
	t.Parallel()
	playFile(t, "plan_is_shown")
	o := scene{
		model: `call update_plan {"entries":[{"content":"look","status":"in_progress"},{"content":"mend","status":"pending"}]}
--- next
call update_plan {"entries":[{"content":"look","status":"completed"},{"content":"mend","status":"in_progress","priority":"high"}]}
--- next
call update_plan {"entries":[{"content":"look","status":"completed"},{"content":"mend","status":"completed"},{"content":"rest","status":"pending","priority":"low"}]}
--- next
text "ok"
`, script: session + turn,
	}.play(t)
	var plans []string
	for _, u := range o.updates("plan") {
		entries, _ := find(u, "entries").([]any)
		plan := ""
		for _, e := range entries {
			plan += fmt.Sprintf("%v:%v:%v ", in(e, "content"), in(e, "status"), in(e, "priority"))
		}
		plans = append(plans, plan)
	}
	want := []string{
		"look:in_progress:medium mend:pending:medium ",
		"look:completed:medium mend:in_progress:high ",
		"look:completed:medium mend:completed:medium rest:pending:low ",
	}
	if strings.Join(plans, "\n") != strings.Join(want, "\n") {
		t.Errorf("plans:\n%s", strings.Join(plans, "\n"))
	}
}
