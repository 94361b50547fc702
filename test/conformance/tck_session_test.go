package conformance

import (
	"testing"
)

func TestTCK_ACP_SESSION_001(t *testing.T) {
	t.Parallel()
	if id := text((scene{script: session}).play(t).result(t, "session/new"), "sessionId"); id == "" {
		t.Error("sessionId is empty")
	}
}

func TestTCK_ACP_SESSION_002(t *testing.T) {
	t.Parallel()
	o := scene{script: session + `> session/new {"cwd":"$WORK","mcpServers":[]}
< {"sessionId":"$other"}
`}.play(t)
	if o.vars["sid"] == o.vars["other"] {
		t.Errorf("both sessions are %v", o.vars["sid"])
	}
}

// loaded is a session with history that is loaded, on the connection that made
// it, as the kit does it.
const loaded = session + turn + `loose
> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
< {}
`

func TestTCK_ACP_LOAD_001(t *testing.T) {
	t.Parallel()
	o := scene{model: `text "ok"`, script: loaded}.play(t)
	if o.capabilities(t)["loadSession"] != true {
		t.Error("loadSession is not advertised")
	}
}

func TestTCK_ACP_LOAD_002(t *testing.T) {
	t.Parallel()
	scene{model: "thought \"Hm.\"\ntext \"ok\"\nusage input=10 output=2", watch: quietPeriod, script: loaded + "strict\nquiet\n"}.play(t)
}

func TestTCK_ACP_LOAD_003(t *testing.T) {
	t.Parallel()
	o := scene{script: session + `> session/load {"sessionId":"$sid","cwd":"$WORK","mcpServers":[]}
< {}
`}.play(t)
	onlyMembers(t, "session/load", o.result(t, "session/load"))
}

func TestTCK_ACP_RESUME_001(t *testing.T) {
	t.Parallel()
	o := scene{script: session + `> session/resume {"sessionId":"$sid","cwd":"$WORK"}
< {}
`}.play(t)
	if in(o.capabilities(t), "sessionCapabilities", "resume") == nil {
		t.Error("resume is not advertised")
	}
}

func TestTCK_ACP_RESUME_002(t *testing.T) {
	t.Parallel()
	scene{model: "thought \"Hm.\"\ntext \"ok\"", script: session + turn + `> session/resume {"sessionId":"$sid","cwd":"$WORK"}
< {}
`}.play(t) // nothing of a conversation may come between
}

func TestTCK_ACP_LIST_001(t *testing.T) {
	t.Parallel()
	o := scene{script: session + `> session/list {}
< {"sessions":[{"sessionId":"$sid","cwd":"$WORK"}]}
`}.play(t)
	if in(o.capabilities(t), "sessionCapabilities", "list") == nil {
		t.Error("list is not advertised")
	}
}

func TestTCK_ACP_LIST_002(t *testing.T) {
	t.Parallel()
	scene{files: map[string]string{"no-session-here/x": ""}, script: session + `> session/list {"cwd":"$WORK/no-session-here"}
< {"sessions":[],"nextCursor":"!"}
`}.play(t)
}

func TestTCK_ACP_DELETE_001(t *testing.T) {
	t.Parallel()
	o := scene{script: session + `> session/delete {"sessionId":"$sid"}
< {}
`}.play(t)
	onlyMembers(t, "session/delete", o.result(t, "session/delete"))
	if in(o.capabilities(t), "sessionCapabilities", "delete") == nil {
		t.Error("delete is not advertised")
	}
}

func TestTCK_ACP_DELETE_002(t *testing.T) {
	t.Parallel()
	scene{script: hello + `> session/delete {"sessionId":"tck-never-created-session"}
< {}
`}.play(t)
}

func TestTCK_ACP_CLOSE_001(t *testing.T) {
	t.Parallel()
	o := scene{script: session + `> session/close {"sessionId":"$sid"}
< {}
`}.play(t)
	onlyMembers(t, "session/close", o.result(t, "session/close"))
	if in(o.capabilities(t), "sessionCapabilities", "close") == nil {
		t.Error("close is not advertised")
	}
}

func TestTCK_ACP_CLOSE_002(t *testing.T) {
	t.Parallel()
	scene{model: `chunks 100000 "tick " every 5ms`, script: session + prompt + `<! session/update {"sessionId":"$sid"}
> session/close @c {"sessionId":"$sid"}
loose
any {
< @p {"stopReason":"cancelled"}
< @c {}
}
`}.play(t)
}

func TestTCK_ACP_ADDDIRS_001(t *testing.T) {
	t.Parallel()
	o := scene{files: map[string]string{"one/x": "", "two/x": ""}, script: hello + `> session/new {"cwd":"$WORK/one","mcpServers":[],"additionalDirectories":["$WORK/two"]}
< {"sessionId":"*"}
`}.play(t)
	if in(o.capabilities(t), "sessionCapabilities", "additionalDirectories") == nil {
		t.Error("additionalDirectories is not advertised")
	}
}
