package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestChecklist_025_versions(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	for i, v := range []string{"0", "1", "2", "3", "65535"} {
		fmt.Fprintf(&script, "client c%d\n> initialize {\"protocolVersion\":%s,\"clientCapabilities\":{}}\n< {\"protocolVersion\":1}\n", i, v)
	}
	scene{launch: launch{args: []string{"--dialect", "acp"}}, script: script.String()}.play(t)
}

// A client that leaves everything out is taken for one of ZeroClaw's, unless
// the dialect is fixed; see docs/protocol.md.
func TestChecklist_026_version_is_an_integer(t *testing.T) {
	t.Parallel()
	playFile(t, "initialize_negotiates_the_version")
	bad := `> initialize {"protocolVersion":"1"}
< error {"code":-32602}
> initialize {"protocolVersion":1.5}
< error {"code":-32602}
> initialize {"protocolVersion":null}
< error {"code":-32602}
> initialize {"protocolVersion":true}
< error {"code":-32602}
> initialize {"protocolVersion":-1}
< error {"code":-32602}
> initialize {"protocolVersion":65536}
< error {"code":-32602}
> initialize {"clientCapabilities":{}}
< error {"code":-32602}
`
	scene{script: bad + hello}.play(t)
	scene{launch: launch{args: []string{"--dialect", "acp"}}, script: `> initialize
< error {"code":-32602}
> initialize {}
< error {"code":-32602}
` + bad + hello}.play(t)
}

func TestChecklist_027_capabilities_in_every_combination(t *testing.T) {
	t.Parallel()
	for bits := range 8 {
		t.Run(fmt.Sprintf("%03b", bits), func(t *testing.T) {
			t.Parallel()
			read, write, both := bits&1 != 0, bits&2 != 0, bits&3 == 3
			notices := "null"
			if bits&4 != 0 {
				notices = "{}"
			}
			o := scene{
				model: "retrying 1 1ms \"busy\"\ncall read_file {\"path\":\"a.txt\"}\n--- next\ncall write_file {\"path\":\"b.txt\",\"content\":\"B\\n\"}\n--- next\ntext \"ok\"",
				files: map[string]string{"a.txt": "A\n"},
				script: fmt.Sprintf(`> initialize {"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":%v,"writeTextFile":%v},"session":{"notices":%s}}}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
loose
`, read, write, notices) + prompt + editing(both) + "< @p {\"stopReason\":\"end_turn\"}\n",
			}.play(t)
			if asked := o.requests(); !both && len(asked) != 1 {
				t.Errorf("the agent asked for %v", asked)
			}
			if n := len(o.updates("notice")); (n > 0) != (bits&4 != 0) {
				t.Errorf("%d notices", n)
			}
		})
	}
}

// editing is the requests of a turn that reads a.txt and then makes b.txt. Only
// a client that serves both directions is asked at all: with one of them the
// buffer that is read and the file that is written would be different texts.
func editing(both bool) string {
	var s strings.Builder
	ask := func(label, method, result string) {
		fmt.Fprintf(&s, "<? %s @%s {\"sessionId\":\"$sid\",\"path\":\"~^/|^[A-Z]:\"}\n>= @%s %s\n", method, label, label, result)
	}
	if both {
		ask("r1", "fs/read_text_file", `{"content":"A\n"}`)
		ask("r2", "fs/read_text_file", `error {"code":-32002,"message":"no such file"}`)
	}
	s.WriteString("<? session/request_permission @q {\"sessionId\":\"$sid\"}\n>= @q {\"outcome\":{\"outcome\":\"selected\",\"optionId\":\"allow-once\"}}\n")
	if both {
		ask("r3", "fs/read_text_file", `error {"code":-32002,"message":"no such file"}`)
		ask("w", "fs/write_text_file", `{}`)
	}
	return s.String()
}

func TestChecklist_028_markers_are_objects(t *testing.T) {
	t.Parallel()
	playFile(t, "retries_are_told_to_who_takes_notices")
	for offered, want := range map[string]bool{
		`{"session":{"notices":{}}}`: true, `{"session":{"notices":{"future":1}}}`: true, `{"session":{"notices":null}}`: false,
		`{"session":{"notices":false}}`: false, `{"session":{}}`: false, `{"session":null}`: false,
	} {
		t.Run(offered, func(t *testing.T) {
			t.Parallel()
			o := scene{model: "retrying 1 1ms \"busy\"\ntext \"ok\"", script: `> initialize {"protocolVersion":1,"clientCapabilities":` + offered + `}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
` + turn}.play(t)
			if n := len(o.updates("notice")); (n > 0) != want {
				t.Errorf("%d notices", n)
			}
			can := o.capabilities(t)
			markers, _ := in(can, "sessionCapabilities").(map[string]any)
			for name, marker := range markers {
				if _, ok := marker.(map[string]any); !ok {
					t.Errorf("sessionCapabilities.%s is %v", name, marker)
				}
			}
			if _, ok := can["loadSession"].(bool); !ok || len(markers) == 0 {
				t.Errorf("loadSession is %v, sessionCapabilities %v", can["loadSession"], markers)
			}
		})
	}
}

func TestChecklist_030_before_initialize(t *testing.T) {
	t.Parallel()
	playFile(t, "requests_before_initialize_are_refused")
	var script strings.Builder
	for _, m := range []string{"session/new", "session/list", "session/load", "session/prompt", "session/close", "authenticate", "logout", "_acme/x", "none"} {
		fmt.Fprintf(&script, "> %s {\"cwd\":\"$WORK\",\"mcpServers\":[],\"sessionId\":\"s\"}\n< error {\"code\":-32600}\n>! %s {}\n", m, m)
	}
	scene{script: script.String() + "strict\n" + hello + "> session/list {}\n< {\"sessions\":[]}\n"}.play(t)
}

// Every method either works or is neither advertised nor there.
func TestChecklist_031_advertised_is_served(t *testing.T) {
	t.Parallel()
	playFile(t, "unadvertised_methods_are_not_found")
	playFile(t, "memory_store_offers_no_load")
	absent := []string{
		"logout", "session/set_mode", "session/set_config_option", "session/set_model", "session/fork", "session/archive",
		"session/unarchive", "session/status", "session/set_title", "session/options", "auth/status", "providers/list",
		"providers/set", "providers/disable", "mcp/message", "session/inject", "fs/read_text_file", "session/request_permission",
		"terminal/create", "elicitation/create", "nes/start", "proxy/initialize",
	}
	var script strings.Builder
	for _, m := range absent {
		fmt.Fprintf(&script, "> %s {\"sessionId\":\"$sid\"}\n< error {\"code\":-32601,\"data\":{\"method\":\"%s\"}}\n", m, m)
	}
	o := scene{model: `text "ok"`, script: session + turn + script.String() + `loose
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
< {}
> session/resume {"sessionId":"$sid","cwd":"$WORK"}
< {}
> session/list {}
< {"sessions":[{}]}
> session/close {"sessionId":"$sid"}
< {}
> session/delete {"sessionId":"$sid"}
< {}
`}.play(t)
	want := map[string]any{
		"loadSession":        true,
		"promptCapabilities": map[string]any{"image": false, "audio": false, "embeddedContext": true},
		"mcpCapabilities":    map[string]any{"http": false, "sse": false},
		"sessionCapabilities": map[string]any{
			"list": map[string]any{}, "delete": map[string]any{}, "resume": map[string]any{}, "close": map[string]any{}, "additionalDirectories": map[string]any{},
		},
	}
	can := o.capabilities(t)
	for name := range can {
		got, _ := json.Marshal(can[name]) // what was decoded encodes
		if wanted, _ := json.Marshal(want[name]); string(got) != string(wanted) {
			t.Errorf("%s is advertised as %s; this test knows of %s", name, got, wanted)
		}
	}
}

func TestChecklist_032_kinds_of_content(t *testing.T) {
	t.Parallel()
	playFile(t, "image_is_refused_while_not_advertised")
	playFile(t, "resources_reach_the_model")
	scene{
		model: "expect \"one\"\nexpect \"notes.md\"\ntext \"ok\"",
		script: session + `> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"one"},{"type":"resource_link","uri":"file:///x/notes.md","name":"notes.md"}]}
says "ok"
< {"stopReason":"end_turn"}
> session/prompt {"sessionId":"$sid","prompt":[{"type":"image","mimeType":"image/png","data":"aGk="}]}
< error {"code":-32602}
> session/prompt {"sessionId":"$sid","prompt":[{"type":"audio","mimeType":"audio/wav","data":"aGk="}]}
< error {"code":-32602}
> session/prompt {"sessionId":"$sid","prompt":[{"type":"hologram"}]}
< error {"code":-32602}
`,
	}.play(t)
}

// A client that only knows how terminals were told of before the protocol knew
// them is offered the same login as a way of the agent's own, with the command.
func TestChecklist_036_terminal_sign_in(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		offered         string
		terminal, named bool // the login is of type terminal, has a command
	}{
		{`{}`, false, false},
		{`{"auth":{}}`, false, false},
		{`{"auth":{"terminal":false}}`, false, false},
		{`{"auth":{"terminal":true}}`, true, false},
		{`{"_meta":{"terminal-auth":true}}`, false, true},
		{`{"auth":{"terminal":true},"_meta":{"terminal-auth":true,"terminal_output":true}}`, true, true},
	} {
		refused := "< error {\"code\":-32602}"
		if tt.named && !tt.terminal {
			refused = "< {}"
		}
		o := scene{script: `> initialize {"protocolVersion":1,"clientCapabilities":` + tt.offered + `}
< {}
> authenticate {"methodId":"login"}
` + refused + "\n"}.play(t)
		agent, terminal := authMethods(t, o)
		if slices.Equal(terminal, []string{"login"}) != tt.terminal || len(terminal) > 1 || !slices.Contains(agent, "local") || slices.Contains(agent, "login") != (tt.named && !tt.terminal) {
			t.Errorf("%s: agent methods %q, terminal methods %q", tt.offered, agent, terminal)
		}
		methods, _ := find(o.result(t, "initialize"), "authMethods").([]any)
		command, _ := in(methods[len(methods)-1], "_meta", "terminal-auth", "command").(string)
		if filepath.IsAbs(command) != tt.named {
			t.Errorf("%s: the login's command is %q", tt.offered, command)
		}
	}
}

func TestChecklist_037_authenticate(t *testing.T) {
	t.Parallel()
	playFile(t, "authenticate_checks_the_model")
	o := scene{script: hello + `> authenticate {"methodId":"nobody"}
< error {"code":-32602}
> authenticate {}
< error {"code":-32602}
> authenticate {"methodId":5}
< error {"code":-32602}
> authenticate {"methodId":"local"}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"*"}
`}.play(t)
	onlyMembers(t, "authenticate", o.result(t, "authenticate"))
}

// What needs a key that is missing gives -32000, says which key, and does
// nothing. That nothing else gives it, the watch proves in every other test.
func TestChecklist_038_not_signed_in(t *testing.T) {
	t.Parallel()
	playFile(t, "missing_key_is_auth_required")
	playFile(t, "rejected_key_is_auth_required")
	w := newWorld(t)
	w.configure(t, `text "ok"`, "")
	o := scene{script: session + turn}.playIn(t, w)
	w.configure(t, "", "[agents.default]\nmodel = \"openai/gpt-5.5\"\n")
	scene{signIn: true, vars: map[string]string{"SID": o.vars["sid"].(string)}, script: hello + `> session/new {"cwd":"$WORK","mcpServers":[]}
< error {"code":-32000,"message":"~OPENAI_API_KEY"}
> authenticate {"methodId":"local"}
< error {"code":-32000}
> session/load {"sessionId":"$SID","cwd":"$WORK","mcpServers":[]}
< error {"code":-32000}
> session/resume {"sessionId":"$SID","cwd":"$WORK"}
< error {"code":-32000}
> session/list {}
< {"sessions":[{"sessionId":"$SID"}]}
> session/load {"sessionId":"gone","cwd":"$WORK","mcpServers":[]}
< error {"code":-32002}
> session/new {"cwd":"relative","mcpServers":[]}
< error {"code":-32602}
`}.playIn(t, w)
}

// stored is the configuration of an agent whose model has a key that a login
// stored.
const stored = "[agents.default]\nmodel = \"openai/gpt-5.5\"\n"

// storeKey stores a key as a login does.
func (w world) storeKey(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(w.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.data, "credentials.toml"), []byte("[openai]\nserver = \"https://api.openai.com\"\napi_key = \"sk-stored\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// logout is offered where a login's key is used, and only there. Afterwards
// what needs a key asks for it, sessions are still listed, and a key that is
// stored again counts without a word.
func TestChecklist_040_logout(t *testing.T) {
	t.Parallel()
	o := scene{model: `text "ok"`, script: session + `> logout {}
< error {"code":-32601}
` + turn}.play(t) // nobody was signed out by it
	if in(o.capabilities(t), "auth", "logout") != nil {
		t.Error("logout is advertised although there is nothing to sign out of")
	}
	w := newWorld(t)
	w.configure(t, "", stored)
	w.storeKey(t)
	o = scene{signIn: true, script: session + `> logout {}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< error {"code":-32000,"message":"~berth login openai","data":{"reason":"AUTH_REQUIRED","key":"missing","authMethods":["local"]}}
> session/prompt {"sessionId":"$sid","prompt":[{"type":"text","text":"go"}]}
< error {"code":-32000,"data":{"authMethods":["local"]}}
> session/list {}
< {"sessions":[{"sessionId":"$sid"}]}
> logout {}
< {}
`}.playIn(t, w)
	if in(o.capabilities(t), "auth", "logout") == nil {
		t.Error("logout works and is not advertised")
	}
	onlyMembers(t, "logout", o.result(t, "logout"))
	w.storeKey(t)
	scene{script: session}.playIn(t, w)
}

func TestChecklist_044_ids_are_new(t *testing.T) {
	t.Parallel()
	eight := strings.Repeat("> session/new {\"cwd\":\"$WORK\",\"mcpServers\":[]}\n< {\"sessionId\":\"~^[0-9a-f-]{36}$\"}\n", 8)
	o := scene{script: hello + eight + "restart\n" + hello + eight + "client other\n" + hello + eight}.play(t)
	ids := map[string]bool{}
	for _, m := range o.fromAgent() {
		if id := text(m.Result, "sessionId"); id != "" {
			ids[id] = true
		}
	}
	if len(ids) != 24 {
		t.Errorf("24 sessions have %d ids", len(ids))
	}
}

func TestChecklist_045_cwd_is_absolute(t *testing.T) {
	t.Parallel()
	playFile(t, "cwd_must_be_an_existing_absolute_directory")
	var script strings.Builder
	for _, method := range []string{"session/new", "session/load", "session/resume"} {
		for _, cwd := range []string{`"project"`, `"./project"`, `".."`, `"~/project"`, `"file:///project"`, `5`, `["$WORK"]`} {
			fmt.Fprintf(&script, "> %s {\"sessionId\":\"$sid\",\"cwd\":%s,\"mcpServers\":[]}\n< error {\"code\":-32602}\n", method, cwd)
		}
	}
	scene{script: session + script.String() + `> session/new {"mcpServers":[]}
< error {"code":-32602}
> session/new {"cwd":"","mcpServers":[]}
< error {"code":-32602}
> session/list {"cwd":"relative"}
< error {"code":-32602}
`}.play(t)
}

// The process runs in the configuration directory. Two sessions in directories
// of their own see the file of one name that is theirs.
func TestChecklist_046_cwd_is_the_sessions_own(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(t, `--- next when "left"
call read_file {"path":"same.txt"}
call write_file {"path":"new.txt","content":"left\n"}
--- next when "right"
call read_file {"path":"same.txt"}
call write_file {"path":"new.txt","content":"right\n"}
--- next when "left"
expect "LEFT"
refute "RIGHT"
text "ok"
--- next when "right"
expect "RIGHT"
refute "LEFT"
text "ok"
`, "[profiles.default]\nauto_approve = [\"write_file\"]\n")
	w.fill(t, map[string]string{"l/same.txt": "LEFT\n", "r/same.txt": "RIGHT\n"})
	write(t, filepath.Join(w.config, "same.txt"), "PROCESS\n")
	scene{want: map[string]string{"l/new.txt": "left\n", "r/new.txt": "right\n"}, script: hello + `> session/new {"cwd":"$WORK/l","mcpServers":[]}
< {"sessionId":"$l"}
> session/new {"cwd":"$WORK/r","mcpServers":[]}
< {"sessionId":"$r"}
loose
> session/prompt @l {"sessionId":"$l","prompt":"left"}
> session/prompt @r {"sessionId":"$r","prompt":"right"}
any {
< @l {"stopReason":"end_turn"}
< @r {"stopReason":"end_turn"}
}
`}.playIn(t, w)
}

// A path that leads from cwd into the other root by way of ".." is still a
// path inside a root, but a plain name never means a file of that root.
func TestChecklist_047_relative_paths_mean_cwd(t *testing.T) {
	t.Parallel()
	playFile(t, "additional_directories_are_roots")
	o := scene{
		model: "call read_file {\"path\":\"b.txt\"}\ncall write_file {\"path\":\"c.txt\",\"content\":\"C\\n\"}\n--- next\nrefute \"BBB\"\ntext \"ok\"",
		files: map[string]string{"one/a.txt": "AAA\n", "two/b.txt": "BBB\n"}, config: "[profiles.default]\nauto_approve = [\"write_file\"]\n",
		want: map[string]string{"one/c.txt": "C\n", "two/c.txt": "(absent)"},
		script: hello + `> session/new {"cwd":"$WORK/one","additionalDirectories":["$WORK/two"],"mcpServers":[]}
< {"sessionId":"$sid"}
` + turn,
	}.play(t)
	if n := len(o.updates("tool_call")); n != 2 {
		t.Errorf("%d calls", n)
	}
}
