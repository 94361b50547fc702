package conformance

import (
	"slices"
	"strings"
	"testing"
)

func TestTCK_ACP_MODES_001(t *testing.T) {
	t.Parallel()
	unoffered(t, "modes", `session/set_mode {"sessionId":"$sid","modeId":"ask"}`)
}

func TestTCK_ACP_MODES_002(t *testing.T) {
	t.Parallel()
	unoffered(t, "modes", `session/set_mode {"sessionId":"$sid","modeId":"code"}`)
}

func TestTCK_ACP_CONFIG_001(t *testing.T) {
	t.Parallel()
	unoffered(t, "configOptions", `session/set_config_option {"sessionId":"$sid","configId":"model","value":"x"}`)
}

func TestTCK_ACP_CONFIG_002(t *testing.T) {
	t.Parallel()
	unoffered(t, "configOptions", `session/set_config_option {"sessionId":"$sid","configId":"fast","type":"boolean","value":true}`)
}

// unoffered proves that no session response has a member, that the method that
// goes with it is not there, and that no update tells of it.
func unoffered(t *testing.T, member, call string) {
	t.Helper()
	method, _, _ := strings.Cut(call, " ")
	o := scene{model: `text "ok"`, script: session + turn + `loose
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
< {"` + member + `":"!"}
> session/resume {"sessionId":"$sid","cwd":"$WORK"}
< {"` + member + `":"!"}
> ` + call + `
< error {"code":-32601,"data":{"method":"` + method + `"}}
quiet
`}.play(t)
	if find(o.result(t, "session/new"), member) != nil {
		t.Errorf("session/new has %s", member)
	}
	for _, kind := range []string{"current_mode_update", "config_option_update"} {
		if n := len(o.updates(kind)); n > 0 {
			t.Errorf("%d %s", n, kind)
		}
	}
}

func TestTCK_ACP_CONFIG_003(t *testing.T) {
	t.Parallel()
	o := scene{script: session}.play(t)
	options, _ := find(o.result(t, "session/new"), "configOptions").([]any)
	for _, option := range options {
		if in(option, "type") == "boolean" {
			t.Errorf("a boolean option: %v", option)
		}
	}
}

func TestTCK_ACP_AUTH_001(t *testing.T) {
	t.Parallel()
	for _, offered := range []string{`{}`, `{"auth":{"terminal":true}}`} {
		o := scene{script: `> initialize {"protocolVersion":1,"clientCapabilities":` + offered + `}
< {}
`}.play(t)
		agent, terminal := authMethods(t, o)
		ids := slices.Concat(agent, terminal)
		slices.Sort(ids)
		if len(ids) == 0 || len(slices.Compact(slices.Clone(ids))) != len(ids) || slices.Contains(ids, "") {
			t.Errorf("ids %q", ids)
		}
	}
}

func TestTCK_ACP_AUTH_002(t *testing.T) {
	t.Parallel()
	if _, terminal := authMethods(t, scene{script: hello}.play(t)); len(terminal) > 0 {
		t.Errorf("terminal methods %q for a client without a terminal", terminal)
	}
}

func TestTCK_ACP_AUTH_003(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(t, "", "")
	agent, _ := authMethods(t, scene{script: hello}.playIn(t, w))
	for _, id := range agent {
		scene{script: hello + `> authenticate {"methodId":"` + id + `"}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"*"}
`}.playIn(t, w)
	}
	if len(agent) == 0 {
		t.Error("no method to try")
	}
}

func TestTCK_ACP_AUTH_004(t *testing.T) {
	t.Parallel()
	for _, params := range []string{" {}", ""} {
		w := newWorld(t)
		w.configure(t, "", stored)
		w.storeKey(t)
		o := scene{script: hello + "> logout" + params + "\n< {}\n"}.playIn(t, w)
		if in(o.capabilities(t), "auth", "logout") == nil {
			t.Error("logout is not advertised")
		}
	}
	// Where it is not advertised it is not there.
	o := scene{script: hello + `> logout {}
< error {"code":-32601,"data":{"method":"logout"}}
`}.play(t)
	if in(o.capabilities(t), "auth", "logout") != nil {
		t.Error("logout is advertised")
	}
}

// ACP-AUTH-005 is about agents without a way to sign in. This one has one, and
// gives -32000 only to who needs it: here everything is set up, so session/new
// works at once.
func TestTCK_ACP_AUTH_005(t *testing.T) {
	t.Parallel()
	o := scene{script: session}.play(t)
	if agent, _ := authMethods(t, o); len(agent) == 0 {
		t.Error("no way to sign in is advertised, but -32000 is possible")
	}
}

// nosy is a turn in which the model wants files, a shell and a person.
const nosy = `call read_file {"path":"README.md"}
call list_directory {}
--- next
call shell {"command":"ls -la"}
call ask_user {"question":"Which?","choices":["a","b"]}
--- next
call write_file {"path":"out.txt","content":"x\n"}
--- next
text "Done."
`

// asksForPermissionOnly plays that turn for a client that offers what it is
// given, and demands that the agent asks it for permission and nothing else.
func asksForPermissionOnly(t *testing.T, offered string) {
	t.Helper()
	o := scene{
		model: nosy, files: map[string]string{"README.md": "Read me.\n"}, want: map[string]string{"out.txt": "x\n"},
		script: `> initialize {"protocolVersion":1,"clientCapabilities":` + offered + `}
< {}
> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$sid"}
loose
` + prompt + `<? session/request_permission @q {"sessionId":"$sid"}
>= @q {"outcome":{"outcome":"selected","optionId":"allow-once"}}
< @p {"stopReason":"end_turn"}
`,
	}.play(t)
	if asked := o.requests(); !slices.Equal(asked, []string{"session/request_permission"}) {
		t.Errorf("a client that offers %s was asked for %v", offered, asked)
	}
}

func TestTCK_ACP_CLIENTCAP_001(t *testing.T) {
	t.Parallel()
	asksForPermissionOnly(t, `{}`)
	asksForPermissionOnly(t, `{"fs":{}}`)
}

func TestTCK_ACP_CLIENTCAP_002(t *testing.T) {
	t.Parallel()
	asksForPermissionOnly(t, `{"terminal":false}`)
}

func TestTCK_ACP_CLIENTCAP_003(t *testing.T) {
	t.Parallel()
	asksForPermissionOnly(t, `{"elicitation":{}}`)
	asksForPermissionOnly(t, `{"elicitation":null}`)
}
