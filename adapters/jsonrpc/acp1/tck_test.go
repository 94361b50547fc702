package acp1

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/jsonrpc"
	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports"
)

// The requirements of the protocol's test kit that can be shown at this level,
// one test each, named by their ids. Every frame of every test passes the
// strict checker, which is TCK ACP-SCHEMA-001 and ACP-SCHEMA-002.

func TestTCK_ACP_INIT_001(t *testing.T) {
	run(t, newWorld(), func(r *rig) { want(t, "protocolVersion", r.initialize(`{}`)["protocolVersion"], `1`) })
}

func TestTCK_ACP_INIT_002(t *testing.T) {
	run(t, newWorld(), func(r *rig) {
		want(t, "protocolVersion", r.ok("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)["protocolVersion"], `1`)
	})
}

func TestTCK_ACP_INIT_003(t *testing.T) {
	run(t, newWorld(), func(r *rig) {
		got := r.ok("initialize", `{"protocolVersion":65535,"info":{"name":"probe","version":"1"},"capabilities":{"session":{}}}`)
		want(t, "protocolVersion", got["protocolVersion"], `1`)
	})
}

func TestTCK_ACP_INIT_004(t *testing.T) {
	run(t, newWorld(), func(r *rig) {
		info := r.initialize(`{}`).in("agentInfo")
		if info.text("name") == "" || info.text("version") == "" {
			t.Errorf("agentInfo %s", info)
		}
	})
}

func TestTCK_ACP_JSONRPC_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		for _, id := range []string{`0`, `""`, `-7`, `9223372036854775807`, `"a"`, `null`} {
			r.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"session/list"}`)
			if m := r.next(); string(m.ID) != id || m.Error != nil {
				t.Errorf("id %s answered as %s, error %v", id, m.ID, m.Error)
			}
		}
	})
}

func TestTCK_ACP_JSONRPC_003(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		for _, m := range []string{"session/cancel", "session/prompt", methodNew, methodUpdate, "initialize", "session/gone", "$/odd"} {
			r.notify(m, `{"sessionId":"gone"}`)
			r.notify(m, `{}`)
		}
		r.quiet()
	})
}

func TestTCK_ACP_JSONRPC_004(t *testing.T) {
	open(t, newWorld(), func(r *rig) { r.fails(-32601, "session/fly", `{}`) })
}

func TestTCK_ACP_JSONRPC_005(t *testing.T) {
	w := newWorld()
	w.turn = func(context.Context, ports.Client, domain.SessionID, domain.Prompt) (domain.TurnOutcome, error) {
		panic("a turn breaks")
	}
	open(t, w, func(r *rig) {
		id := r.newSession()
		r.fails(-32603, "session/prompt", `{"sessionId":"`+id+`","prompt":"hi"}`)
		w.turn = nil
		r.ok("session/prompt", `{"sessionId":"`+r.newSession()+`","prompt":"hi"}`)
	})
}

func TestTCK_ACP_SESSION_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		if id := r.newSession(); !domain.SessionID(id).Valid() {
			t.Errorf("session id %q", id)
		}
	})
}

func TestTCK_ACP_SESSION_002(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		if a, b := r.newSession(), r.newSession(); a == b {
			t.Errorf("both sessions have the id %s", a)
		}
	})
}

func TestTCK_ACP_PROMPT_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		p := r.prompt(r.newSession(), "hi")
		m, _ := r.answer(p)
		want(t, "stopReason", objectOf(m.Result)["stopReason"], `"end_turn"`)
		r.quiet() // exactly one answer
	})
}

func TestTCK_ACP_PROMPT_002(t *testing.T) {
	w := newWorld()
	w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
		for range 500 {
			if err := c.Send(ctx, id, domain.AgentText{ID: "m", Text: "x"}); err != nil {
				return domain.TurnOutcome{}, err
			}
		}
		return domain.TurnOutcome{Stop: domain.StopEndTurn}, nil
	}
	open(t, w, func(r *rig) {
		id := r.newSession()
		_, before := r.answer(r.prompt(id, "hi"))
		for _, m := range before {
			if got := objectOf(m.Params).text("sessionId"); got != id {
				t.Fatalf("an update of session %s", got)
			}
		}
		if n := len(updatesIn(before)); n != 500 {
			t.Errorf("%d updates before the response, want 500", n)
		}
		r.quiet()
	})
}

func TestTCK_ACP_PROMPT_003(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		r.ok("session/prompt", `{"sessionId":"`+r.newSession()+`","prompt":[{"type":"text","text":"see"},{"type":"resource_link","uri":"file:///proj/a","name":"a"}]}`)
	})
}

// ACP-PROMPTCAP-001 to -003: a kind of content works exactly if it is
// advertised.
func TestTCK_ACP_PROMPTCAP(t *testing.T) {
	blocks := map[string]string{
		"image":           `{"type":"image","mimeType":"image/png","data":"aGk="}`,
		"audio":           `{"type":"audio","mimeType":"audio/wav","data":"aGk="}`,
		"embeddedContext": `{"type":"resource","resource":{"uri":"file:///a","text":"a"}}`,
	}
	run(t, newWorld(), func(r *rig) {
		can := r.initialize(`{}`).in("agentCapabilities").in("promptCapabilities")
		id := r.newSession()
		for capability, block := range blocks {
			params := `{"sessionId":"` + id + `","prompt":[` + block + `]}`
			if can.flag(capability) {
				r.ok("session/prompt", params)
			} else {
				r.fails(-32602, "session/prompt", params)
			}
		}
		r.quiet()
		if n := len(r.world.prompts); n != 1 {
			t.Errorf("%d turns began, want 1", n)
		}
	})
}

func TestTCK_ACP_CANCEL_001(t *testing.T) {
	w := newWorld()
	w.turn = waits
	open(t, w, func(r *rig) {
		id := r.newSession()
		p := r.prompt(id, "long")
		r.next() // the first update
		r.notify("session/cancel", `{"sessionId":"`+id+`"}`)
		m, _ := r.answer(p)
		want(t, "stopReason", objectOf(m.Result)["stopReason"], `"cancelled"`)
	})
}

func TestTCK_ACP_CANCEL_002(t *testing.T) {
	w := newWorld()
	w.turn = func(ctx context.Context, c ports.Client, id domain.SessionID, p domain.Prompt) (domain.TurnOutcome, error) {
		out, err := waits(ctx, c, id, p)
		late := context.WithoutCancel(ctx) // what is still owed goes out before the response
		_ = c.Send(late, id, domain.CallChanged{ID: "c", Status: domain.CallFailed})
		return out, err
	}
	open(t, w, func(r *rig) {
		id := r.newSession()
		p := r.prompt(id, "long")
		r.next()
		r.notify("session/cancel", `{"sessionId":"`+id+`"}`)
		_, before := r.answer(p)
		if n := len(updatesIn(before)); n != 1 {
			t.Errorf("%d late updates before the response, want 1", n)
		}
		time.Sleep(3 * time.Second)
		r.quiet()
	})
}

// history is a conversation of every kind of update.
func history() []domain.Update {
	return []domain.Update{
		domain.UserMessage{ID: "u1", Block: domain.Text{Text: "why?"}},
		domain.UserMessage{ID: "u1", Block: domain.Attachment{Path: "/proj/uploads/a.png", Name: "a.png"}},
		domain.AgentThought{ID: "m1", Text: "hm"},
		domain.CallOpened{ID: "c1", Name: "read_file", Title: "Read a", Kind: domain.KindRead, Status: domain.CallPending},
		domain.CallChanged{ID: "c1", Status: domain.CallCompleted},
		domain.PlanChanged{Entries: []domain.PlanEntry{{Content: "x", Priority: "low", Status: "completed"}}},
		domain.AgentText{ID: "m2", Text: "because"},
		domain.UsageChanged{Used: 1, Size: 10},
		domain.InfoChanged{Title: "Why"},
	}
}

var historyKinds = "user_message_chunk user_message_chunk agent_thought_chunk tool_call tool_call_update plan agent_message_chunk usage_update session_info_update"

// loaded makes a stored session that is not active and loads it.
func loaded(t *testing.T, method string, fn func(r *rig, answer jsonrpc.Message, before []jsonrpc.Message)) {
	t.Helper()
	w := newWorld()
	w.history = history()
	open(t, w, func(r *rig) {
		id := r.newSession()
		r.ok("session/close", `{"sessionId":"`+id+`"}`)
		m, before := r.answer(r.start(method, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`))
		fn(r, m, before)
	})
}

func kindsOf(messages []jsonrpc.Message) string {
	var kinds []string
	for _, u := range updatesIn(messages) {
		kinds = append(kinds, u.text("sessionUpdate"))
	}
	return strings.Join(kinds, " ")
}

func TestTCK_ACP_LOAD_001(t *testing.T) {
	loaded(t, methodLoad, func(r *rig, m jsonrpc.Message, _ []jsonrpc.Message) {
		if m.Error != nil || !isObject(m.Result) {
			t.Errorf("result %s, error %v", m.Result, m.Error)
		}
	})
}

func TestTCK_ACP_LOAD_002(t *testing.T) {
	loaded(t, methodLoad, func(r *rig, _ jsonrpc.Message, before []jsonrpc.Message) {
		if got := kindsOf(before); got != historyKinds {
			t.Errorf("before the response: %s\nwant: %s", got, historyKinds)
		}
	})
}

func TestTCK_ACP_LOAD_003(t *testing.T) {
	loaded(t, methodLoad, func(r *rig, _ jsonrpc.Message, _ []jsonrpc.Message) {
		time.Sleep(3 * time.Second)
		r.quiet()
	})
}

func TestTCK_ACP_RESUME_001(t *testing.T) {
	loaded(t, methodResume, func(r *rig, m jsonrpc.Message, _ []jsonrpc.Message) {
		if m.Error != nil || !isObject(m.Result) {
			t.Errorf("result %s, error %v", m.Result, m.Error)
		}
	})
}

func TestTCK_ACP_RESUME_002(t *testing.T) {
	loaded(t, methodResume, func(r *rig, _ jsonrpc.Message, before []jsonrpc.Message) {
		if len(before) != 0 {
			t.Errorf("replayed: %s", kindsOf(before))
		}
	})
}

func TestTCK_ACP_LIST_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) { want(t, "sessions", r.ok(methodList, `{}`)["sessions"], `[]`) })
}

func TestTCK_ACP_LIST_002(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		r.newSession()
		if n := len(elementsOf(r.ok(methodList, `{"cwd":"/proj/"}`)["sessions"])); n != 1 {
			t.Errorf("%d sessions of the directory, want 1", n)
		}
		want(t, "sessions of another directory", r.ok(methodList, `{"cwd":"/other"}`)["sessions"], `[]`)
	})
}

func TestTCK_ACP_DELETE_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		id := r.newSession()
		r.ok(methodDelete, `{"sessionId":"`+id+`"}`)
		want(t, "sessions", r.ok(methodList, `{}`)["sessions"], `[]`)
		r.fails(-32002, methodLoad, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`)
	})
}

func TestTCK_ACP_DELETE_002(t *testing.T) {
	open(t, newWorld(), func(r *rig) { r.ok(methodDelete, `{"sessionId":"never-was"}`) })
}

func TestTCK_ACP_CLOSE_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		id := r.newSession()
		r.ok("session/close", `{"sessionId":"`+id+`"}`)
		r.fails(-32002, "session/prompt", `{"sessionId":"`+id+`","prompt":"hi"}`)
	})
}

func TestTCK_ACP_CLOSE_002(t *testing.T) {
	w := newWorld()
	w.turn = waits
	open(t, w, func(r *rig) {
		id := r.newSession()
		p := r.prompt(id, "long")
		r.next()
		c := r.start("session/close", `{"sessionId":"`+id+`"}`)
		m, _ := r.answer(p)
		want(t, "stopReason", objectOf(m.Result)["stopReason"], `"cancelled"`)
		if m := r.lateAnswer(c); m.Error != nil {
			t.Errorf("close: %v", m.Error)
		}
		r.quiet()
	})
}

func TestTCK_ACP_ADDDIRS_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		for _, bad := range []string{`["rel"]`, `[""]`, `[5]`, `"/a"`, `{}`} {
			r.fails(-32602, methodNew, `{"cwd":"/proj","mcpServers":[],"additionalDirectories":`+bad+`}`)
		}
		r.ok(methodNew, `{"cwd":"/proj","mcpServers":[],"additionalDirectories":["/a"]}`)
		if n := len(r.world.rows); n != 1 {
			t.Errorf("%d sessions were made, want 1", n)
		}
	})
}

// ACP-MODES and ACP-CONFIG bind an agent that offers modes and options. This
// one offers neither, and refuses their methods.
func TestTCK_ACP_MODES_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		got := r.ok(methodNew, `{"cwd":"/proj","mcpServers":[]}`)
		if got["modes"] != nil || got["configOptions"] != nil {
			t.Errorf("result %s", got)
		}
		r.fails(-32601, "session/set_mode", `{"sessionId":"`+got.text("sessionId")+`","modeId":"x"}`)
	})
}

func TestTCK_ACP_AUTH_001(t *testing.T) {
	w := newWorld()
	w.set = func(p *Params) { p.Login = Login{Args: []string{"login"}} }
	run(t, w, func(r *rig) {
		if got := string(r.initialize(`{}`)["authMethods"]); strings.Contains(got, "terminal") {
			t.Errorf("authMethods %s for a client that offers no terminal", got)
		}
	})
}

func TestTCK_ACP_AUTH_002(t *testing.T) {
	w := newWorld()
	w.set = func(p *Params) { p.Login = Login{Args: []string{"login"}} }
	run(t, w, func(r *rig) {
		seen := map[string]bool{}
		for _, m := range elementsOf(r.initialize(`{"auth":{"terminal":true}}`)["authMethods"]) {
			o := objectOf(m)
			if seen[o.text("id")] {
				t.Errorf("two methods have the id %s", o.text("id"))
			}
			seen[o.text("id")] = true
			if o.text("type") == "terminal" {
				r.fails(-32602, "authenticate", `{"methodId":"`+o.text("id")+`"}`)
			}
		}
		if len(seen) != 2 {
			t.Errorf("methods %v, want two", seen)
		}
	})
}

func TestTCK_ACP_AUTH_003(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		r.fails(-32602, "authenticate", `{"methodId":"nope"}`)
		r.ok("authenticate", `{"methodId":"local"}`)
		r.newSession()
	})
}

func TestTCK_ACP_AUTH_004(t *testing.T) {
	run(t, newWorld(), func(r *rig) {
		if r.initialize(`{}`).in("agentCapabilities").in("auth").has("logout") {
			t.Error("logout is advertised")
		}
		r.fails(-32601, "logout", ``)
	})
}

func TestTCK_ACP_AUTH_005(t *testing.T) {
	w := newWorld()
	ref := domain.ModelRef{Provider: "p", Model: "m"}
	w.models = map[domain.ModelRef]error{ref: domain.Errorf(domain.AuthRequired, "set P_KEY")}
	open(t, w, func(r *rig) {
		r.fails(-32000, methodNew, `{"cwd":"/proj","mcpServers":[]}`)
		w.models = nil
		r.ok("authenticate", `{"methodId":"local"}`)
		r.newSession()
	})
}

// ACP-CLIENTCAP-001 to -003: nothing is asked of a client that offers nothing.
func TestTCK_ACP_CLIENTCAP(t *testing.T) {
	w := newWorld()
	w.turn = func(ctx context.Context, c ports.Client, _ domain.SessionID, _ domain.Prompt) (domain.TurnOutcome, error) {
		if _, ok := c.Files(); ok {
			t.Error("there are files")
		}
		return domain.TurnOutcome{Stop: domain.StopEndTurn}, nil
	}
	open(t, w, func(r *rig) {
		_, before := r.answer(r.prompt(r.newSession(), "hi"))
		for _, m := range before {
			if m.Kind == jsonrpc.Request {
				t.Errorf("the client was sent %s", m.Method)
			}
		}
	})
}

func TestTCK_ACP_EXT_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		r.fails(-32601, "_acme/metrics", `{"window":60}`)
		r.notify("_acme/ping", `{}`)
		r.quiet()
	})
}

func TestTCK_ACP_META_001(t *testing.T) {
	const meta = `"_meta":{"traceparent":"00-1-2-01","acme":{"a":[1]}}`
	run(t, newWorld(), func(r *rig) {
		r.ok("initialize", `{"protocolVersion":1,"clientCapabilities":{`+meta+`,"fs":{`+meta+`}},`+meta+`}`)
		id := r.ok(methodNew, `{"cwd":"/proj","mcpServers":[],`+meta+`}`).text("sessionId")
		r.ok("session/prompt", `{"sessionId":"`+id+`","prompt":[{"type":"text","text":"hi",`+meta+`}],`+meta+`}`)
		r.ok(methodList, `{`+meta+`}`)
		r.ok("session/close", `{"sessionId":"`+id+`",`+meta+`}`)
	})
}

func TestTCK_ACP_ERROR_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		e := r.fails(-32602, methodNew, `{"cwd":"rel\n\nlines","mcpServers":[]}`)
		if e.Message == "" || strings.ContainsAny(e.Message, "\r\n") {
			t.Errorf("message %q", e.Message)
		}
	})
}

func TestTCK_ACP_SHUTDOWN_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		p := r.prompt(r.newSession(), "hi")
		r.end() // what was read is answered; run checks that Serve returns
		if m, _ := r.answer(p); m.Error != nil {
			t.Errorf("prompt: %v", m.Error)
		}
	})
}

func TestTCK_ACP_INFO_UNKNOWNSESSION_001(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		e := r.fails(-32002, "session/prompt", `{"sessionId":"gone","prompt":[{"type":"text","text":"hi"}]}`)
		want(t, "data", e.Data, `{"reason":"SESSION_NOT_FOUND","sessionId":"gone"}`)
	})
}
