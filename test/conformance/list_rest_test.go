package conformance

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-dev/berth/adapters/jsonrpc"
)

func TestChecklist_137_boolean_options(t *testing.T) {
	t.Parallel()
	for _, offered := range []string{`{}`, `{"session":{"configOptions":{}}}`, `{"session":{"configOptions":{"boolean":null}}}`} {
		o := scene{script: `> initialize {"protocolVersion":1,"clientCapabilities":` + offered + `}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {}
`}.play(t)
		options, _ := find(o.result(t, "session/new"), "configOptions").([]any)
		for _, option := range options {
			if in(option, "type") == "boolean" {
				t.Errorf("%s: a boolean option: %v", offered, option)
			}
		}
	}
}

func TestChecklist_138_config_options(t *testing.T) {
	t.Parallel()
	unoffered(t, "configOptions", `session/set_config_option {"sessionId":"$sid","configId":"model","value":"x"}`)
}

func TestChecklist_139_set_config_option(t *testing.T) {
	t.Parallel()
	unoffered(t, "configOptions", `session/set_config_option {"sessionId":"$sid","configId":"x","type":"boolean","value":true}`)
}

func TestChecklist_140_config_option_update(t *testing.T) {
	t.Parallel()
	unoffered(t, "configOptions", `session/set_config_option {}`)
}

func TestChecklist_142_unknown_values(t *testing.T) {
	t.Parallel()
	unoffered(t, "configOptions", `session/set_config_option {"sessionId":"$sid","configId":"none","value":"none"}`)
	unoffered(t, "modes", `session/set_mode {"sessionId":"$sid","modeId":"none"}`)
}

func TestChecklist_143_current_mode_update(t *testing.T) {
	t.Parallel()
	unoffered(t, "modes", `session/set_mode {"sessionId":"$sid","modeId":"plan"}`)
}

func TestChecklist_145_notices(t *testing.T) {
	t.Parallel()
	playFile(t, "retries_are_told_to_who_takes_notices")
	for offered, want := range map[string]int{`{}`: 0, `{"session":{"notices":{}}}`: 1} {
		o := scene{model: "retrying 1 1ms \"busy\\nvery\"\ntext \"ok\"", script: `> initialize {"protocolVersion":1,"clientCapabilities":` + offered + `}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
` + turn + `loose
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
< {}
`}.play(t)
		notices := o.updates("notice") // those of the turn; none is replayed
		if len(notices) != want {
			t.Errorf("%s: %d notices, want %d", offered, len(notices), want)
		}
		for _, n := range notices {
			if title := text(n, "title"); title == "" || strings.ContainsAny(title, "\n\r`*") {
				t.Errorf("title %q", title)
			}
		}
	}
}

// compacted plays a session whose window fills, with the command that makes it
// shorter, a compaction that the model fails at and one that is cancelled, and
// loads it. seen is the line that shows that the last one is under way.
func compacted(t *testing.T, offered, seen string) *outcome {
	t.Helper()
	const long = `chunks 150 "` + "a line of a hundred bytes, which makes a reply that is long enough to fill the window of the model. " + `"`
	ask := func(label, text, answer string) string {
		return fmt.Sprintf("> session/prompt @%s {\"sessionId\":\"$sid\",\"prompt\":[{\"type\":\"text\",\"text\":%q}]}\n%s", label, text, answer)
	}
	end := func(label string) string { return "< @" + label + " {\"stopReason\":\"end_turn\"}\n" }
	return scene{
		model: `--- next when "Write the summary now"
text "A summary."
--- next when "Write the summary now"
error unavailable "it is down"
--- next when "Write the summary now"
text "Half a "
hang
--- next always
` + long,
		config: "[providers.script.models.test]\ncontext_window = 40000\n[agents.default]\nmodel = \"script/test\"\n",
		script: `> initialize {"protocolVersion":1,"clientCapabilities":` + offered + `}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
loose
` + ask("a", "one", end("a")) + ask("b", "two", end("b")) + ask("c", "/compact", end("c")) +
			ask("d", "three", end("d")) + ask("e", "four", end("e")) + ask("f", "/compact", end("f")) +
			ask("g", "five", end("g")) + ask("h", "six", end("h")) + ask("i", "/compact", seen+">! session/cancel {\"sessionId\":\"$sid\"}\n< @i {\"stopReason\":\"cancelled\"}\n") + `
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
< {}
`,
	}.play(t)
}

func TestChecklist_146_compaction_only_if_offered(t *testing.T) {
	t.Parallel()
	for _, offered := range []string{`{}`, `{"session":{"compaction":null,"notices":{}}}`} {
		o := compacted(t, offered, "")
		for _, kind := range []string{"compaction_update", "compaction_summary_chunk"} {
			if n := len(o.updates(kind)); n > 0 {
				t.Errorf("%d %s", n, kind)
			}
		}
	}
}

func TestChecklist_147_compaction_updates(t *testing.T) {
	t.Parallel()
	playFile(t, "compaction_of_a_long_session_survives_a_kill")
	o := compacted(t, `{"session":{"compaction":{}}}`,
		`<! session/update {"update":{"sessionUpdate":"compaction_summary_chunk","content":{"type":"text","text":"Half a "}}}`+"\n")
	status := map[string]string{}
	var order []string
	for _, u := range o.updates("compaction_update") {
		id, now := text(u, "compactionId"), text(u, "status")
		if id == "" || find(u, "error") != nil && now != "failed" || find(u, "summary") != nil && now != "completed" {
			t.Errorf("an update out of place: %v", u)
		}
		if was := status[id]; was == "" && now != "in_progress" || was != "" && was != "in_progress" && was != now {
			t.Errorf("compaction %s goes from %q to %q", id, was, now)
		}
		status[id] = now
		order = append(order, now)
	}
	want := "in_progress completed in_progress completed in_progress cancelled completed completed cancelled" // live, then by the load
	if got := strings.Join(order, " "); got != want {
		t.Errorf("statuses %s\nwant     %s", got, want)
	}
	for _, u := range o.updates("compaction_summary_chunk") {
		if _, known := status[text(u, "compactionId")]; !known {
			t.Errorf("a piece of a summary that nobody announced: %v", u)
		}
	}
	if n := len(o.updates("compaction_summary_chunk")); n != 2 {
		t.Errorf("%d pieces of summaries, want 2", n)
	}
}

func TestChecklist_149_elicitation_modes(t *testing.T) {
	t.Parallel()
	asksForPermissionOnly(t, `{"elicitation":{"url":{}}}`)
	asksForPermissionOnly(t, `{"elicitation":{"form":{}}}`)
}

func TestChecklist_150_elicitation_actions(t *testing.T) {
	t.Parallel()
	asksForPermissionOnly(t, `{"elicitation":{"form":{},"url":{}}}`)
}

func TestChecklist_152_elicitation_ids(t *testing.T) {
	t.Parallel()
	noElicitation(t)
}

func TestChecklist_153_elicitation_urls(t *testing.T) {
	t.Parallel()
	noElicitation(t)
}

// noElicitation proves that a client that offers everything is sent neither
// questions of that kind nor word that one is over.
func noElicitation(t *testing.T) {
	t.Helper()
	o := offeredAll(t)
	wants(t, o)
	for _, m := range o.fromAgent() {
		if strings.HasPrefix(m.Method, "elicitation/") {
			t.Errorf("sent: %s", m.raw)
		}
	}
}

// Every error a client can provoke has the code that the protocol gives it, a
// message of one line for people, and details in data.
func TestChecklist_155_errors(t *testing.T) {
	t.Parallel()
	playFile(t, "sessions_are_limited")
	playFile(t, "provider_error_leaves_the_session_usable")
	playFile(t, "prompt_while_busy_is_rejected_if_configured")
	cases := []struct {
		call string
		code int
		data string
	}{
		{`session/fly {}`, -32601, `{"reason":"METHOD_NOT_FOUND","method":"session/fly"}`},
		{`session/set_mode {"sessionId":"$sid","modeId":"x"}`, -32601, `{"method":"session/set_mode"}`},
		{`session/new {}`, -32602, `{"reason":"INVALID_PARAMS"}`},
		{`session/new {"cwd":"here","mcpServers":[]}`, -32602, `{"reason":"INVALID_PARAMS"}`},
		{`session/new {"cwd":"$WORK","mcpServers":[{"type":"http","name":"x","url":"https://x.example","headers":[]}]}`, -32602, `{}`},
		{`session/new {"cwd":"$WORK","mcpServers":[],"_meta":{"berth":{"agent":"nobody"}}}`, -32602, `{}`},
		{`session/list {"cursor":"bogus"}`, -32602, `{}`},
		{`session/list {"cwd":"here"}`, -32602, `{}`},
		{`session/prompt {"sessionId":"$sid","prompt":[]}`, -32602, `{}`},
		{`session/prompt {"sessionId":"$sid","prompt":[{"type":"image","mimeType":"image/png","data":"aGk="}]}`, -32602, `{}`},
		{`session/prompt {"sessionId":5,"prompt":[]}`, -32602, `{}`},
		{`authenticate {"methodId":"nobody"}`, -32602, `{}`},
		{`session/prompt {"sessionId":"gone","prompt":"x"}`, -32002, `{"reason":"SESSION_NOT_FOUND","sessionId":"gone"}`},
		{`session/load {"sessionId":"gone","cwd":"$WORK","mcpServers":[]}`, -32002, `{"sessionId":"gone"}`},
		{`session/resume {"sessionId":"gone","cwd":"$WORK"}`, -32002, `{"sessionId":"gone"}`},
		{`session/prompt {"sessionId":"$sid","prompt":"unavailable"}`, -32603, `{"reason":"PROVIDER_ERROR"}`},
		{`session/prompt {"sessionId":"$sid","prompt":"limited"}`, -32603, `{"reason":"RATE_LIMITED"}`},
		{`session/prompt {"sessionId":"$sid","prompt":"internal"}`, -32603, `{}`},
		{`initialize {"protocolVersion":1}`, -32600, `{}`},
	}
	var script strings.Builder
	for i, c := range cases {
		fmt.Fprintf(&script, "> %s\n< @e%d error {\"code\":%d,\"message\":\"*\",\"data\":%s}\n", strings.Replace(c.call, " ", fmt.Sprintf(" @e%d ", i), 1), i, c.code, c.data)
	}
	o := scene{
		model: `--- next when "unavailable"
error unavailable "The provider is down.\nTrace: secret-detail"
--- next when "limited"
error rate_limited "Too many requests"
--- next when "internal"
error internal "secret-detail"
`,
		script: session + "loose\n" + script.String() + `>> {
< #null error {"code":-32700}
>> []
< #null error {"code":-32600}
`,
	}.play(t)
	errors := 0
	for _, m := range o.fromAgent() {
		if m.Kind != jsonrpc.Response || m.Error == nil {
			continue
		}
		errors++
		if s := m.Error.Message; s == "" || len(s) > 400 || strings.ContainsAny(s, "\r\n") || !utf8.ValidString(s) {
			t.Errorf("message %q", s)
		}
	}
	if errors != len(cases)+2 {
		t.Errorf("%d errors", errors)
	}
}
