package acp1

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

func TestNewSession_Request(t *testing.T) {
	cases := []struct {
		name, params string
		zeroclaw     bool
		want         domain.NewSession // Client and FallbackAgent are compared by other tests
	}{
		{name: "cwd", params: `{"cwd":"/proj","mcpServers":[]}`, want: domain.NewSession{Dirs: domain.Directories{Cwd: "/proj"}}},
		{name: "workspaceDir", params: `{"workspaceDir":"/proj"}`, want: domain.NewSession{Dirs: domain.Directories{Cwd: "/proj"}}},
		{name: "workspace_dir", params: `{"workspace_dir":"/proj"}`, want: domain.NewSession{Dirs: domain.Directories{Cwd: "/proj"}}},
		{name: "cwd beats its aliases", params: `{"workspace_dir":"/b","cwd":"/proj"}`, want: domain.NewSession{Dirs: domain.Directories{Cwd: "/proj"}}},
		{name: "the dot", params: `{"cwd":"."}`, want: domain.NewSession{Dirs: domain.Directories{Cwd: "."}}},
		{name: "additional directories", params: `{"cwd":"/proj","additionalDirectories":["/a","/b"]}`,
			want: domain.NewSession{Dirs: domain.Directories{Cwd: "/proj", Additional: []string{"/a", "/b"}}}},
		{name: "null additional directories and servers", params: `{"cwd":"/proj","additionalDirectories":null,"mcpServers":null}`,
			want: domain.NewSession{Dirs: domain.Directories{Cwd: "/proj"}}},
		{name: "no cwd in zeroclaw", params: `{}`, zeroclaw: true, want: domain.NewSession{Dirs: domain.Directories{Lenient: true}}},
		{name: "a relative cwd in zeroclaw", params: `{"cwd":"sub/dir"}`, zeroclaw: true,
			want: domain.NewSession{Dirs: domain.Directories{Cwd: "sub/dir", Lenient: true}}},
		{name: "agentAlias", params: `{"cwd":"/p","agentAlias":" a "}`, want: domain.NewSession{Agent: "a", Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "agent_alias", params: `{"cwd":"/p","agent_alias":"a"}`, want: domain.NewSession{Agent: "a", Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "agent", params: `{"cwd":"/p","agent":"a"}`, want: domain.NewSession{Agent: "a", Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "a blank spelling names none", params: `{"cwd":"/p","agentAlias":" ","agent":"b"}`, want: domain.NewSession{Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "an alias of another kind in zeroclaw", params: `{"agentAlias":5,"agent":"b"}`, zeroclaw: true,
			want: domain.NewSession{Dirs: domain.Directories{Lenient: true}}},
		{name: "_meta.berth.agent", params: `{"cwd":"/p","_meta":{"berth":{"agent":"m"}}}`, want: domain.NewSession{Agent: "m", Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "params beat _meta", params: `{"cwd":"/p","agent":"a","_meta":{"berth":{"agent":"m"}}}`, want: domain.NewSession{Agent: "a", Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "key, label and switches", params: `{"cwd":"/p","_meta":{"berth":{"sessionKey":"agent:a:x","label":"L","resetSession":true,"requireExisting":false}}}`,
			want: domain.NewSession{Key: "agent:a:x", Label: "L", Reset: true, Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "OpenClaw's spellings", params: `{"cwd":"/p","_meta":{"session":" k ","sessionLabel":"L","reset":true}}`,
			want: domain.NewSession{Key: "k", Label: "L", Reset: true, Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "a blank alias is absent", params: `{"cwd":"/p","_meta":{"sessionKey":"","key":"k2"}}`,
			want: domain.NewSession{Key: "k2", Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "our namespace beats the root", params: `{"cwd":"/p","_meta":{"sessionKey":"root","resetSession":true,"berth":{"sessionKey":"ours","resetSession":false}}}`,
			want: domain.NewSession{Key: "ours", Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "foreign keys at the root", params: `{"cwd":"/p","_meta":{"key":{"a":1},"reset":"yes","traceparent":"00-x"}}`,
			want: domain.NewSession{Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "_meta null", params: `{"cwd":"/p","_meta":null}`, want: domain.NewSession{Dirs: domain.Directories{Cwd: "/p"}}},
		{name: "names in another case are other names", params: `{"cwd":"/p","CWD":"/etc","AgentAlias":"x"}`,
			want: domain.NewSession{Dirs: domain.Directories{Cwd: "/p"}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			start := open
			if c.zeroclaw {
				start = openZeroclaw
			}
			start(t, w, func(r *rig) {
				r.ok(methodNew, c.params)
				got := w.created[0]
				got.Client = ""
				if !reflect.DeepEqual(got, c.want) {
					t.Errorf("asked for %+v\nwant %+v", got, c.want)
				}
			})
		})
	}
}

func TestNewSession_Refused(t *testing.T) {
	cases := []struct{ name, params, says string }{
		{"no cwd", `{"mcpServers":[]}`, "cwd is required"},
		{"cwd null", `{"cwd":null}`, "cwd is required"},
		{"cwd a number", `{"cwd":5}`, "cwd must be a string"},
		{"cwd empty", `{"cwd":""}`, "cwd is empty"},
		{"cwd relative", `{"cwd":"project"}`, `"project" is not an absolute path`},
		{"cwd of another system", `{"cwd":"C:\\project"}`, "not an absolute path"},
		{"cwd missing on disk", `{"cwd":"/nowhere"}`, "does not exist"},
		{"additional directories a string", `{"cwd":"/p","additionalDirectories":"/a"}`, "additionalDirectories must be a list"},
		{"an additional directory relative", `{"cwd":"/p","additionalDirectories":["/a","b"]}`, "additionalDirectories[1]"},
		{"an additional directory empty", `{"cwd":"/p","additionalDirectories":[""]}`, "additionalDirectories[0]"},
		{"an additional directory null", `{"cwd":"/p","additionalDirectories":[null]}`, "additionalDirectories[0] must be a string"},
		{"agent a number", `{"cwd":"/p","agent":5}`, "agent must be a string"},
		{"our key of another kind", `{"cwd":"/p","_meta":{"berth":{"sessionKey":5}}}`, "_meta.berth.sessionKey must be a string"},
		{"our switch of another kind", `{"cwd":"/p","_meta":{"berth":{"resetSession":"yes"}}}`, "_meta.berth.resetSession must be true or false"},
		{"servers an object", `{"cwd":"/p","mcpServers":{}}`, "mcpServers must be a list"},
		{"a server that is none", `{"cwd":"/p","mcpServers":[{"bogus":1}]}`, "mcpServers[0]: name is required"},
		{"a server of null", `{"cwd":"/p","mcpServers":[null]}`, "mcpServers[0]: must be an object"},
		{"a server without a command", `{"cwd":"/p","mcpServers":[{"name":"n","args":[],"env":[]}]}`, "command is required"},
		{"a server with an empty command", `{"cwd":"/p","mcpServers":[{"name":"n","command":"","args":[],"env":[]}]}`, "command is empty"},
		{"args of numbers", `{"cwd":"/p","mcpServers":[{"name":"n","command":"/c","args":[1]}]}`, "args[0] must be a string"},
		{"env as a map", `{"cwd":"/p","mcpServers":[{"name":"n","command":"/c","env":{"A":"b"}}]}`, "env must be a list"},
		{"env without a value", `{"cwd":"/p","mcpServers":[{"name":"n","command":"/c","env":[{"name":"A"}]}]}`, "env[0] must have"},
		{"http", `{"cwd":"/p","mcpServers":[{"type":"http","name":"n","url":"https://x","headers":[]}]}`, "transport http"},
		{"http without a url", `{"cwd":"/p","mcpServers":[{"type":"http","name":"n","headers":[]}]}`, "url is required"},
		{"http with odd headers", `{"cwd":"/p","mcpServers":[{"type":"http","name":"n","url":"u","headers":[1]}]}`, "headers[0]"},
		{"sse", `{"cwd":"/p","mcpServers":[{"type":"sse","name":"n","url":"https://x","headers":[]}]}`, "transport sse"},
		{"an unknown transport", `{"cwd":"/p","mcpServers":[{"type":"acp","name":"n","serverId":"s"}]}`, `unknown transport "acp"`},
		{"requireExisting", `{"cwd":"/p","_meta":{"berth":{"sessionKey":"k","requireExisting":true}}}`, `no session has the key "k"`},
	}
	w := newWorld()
	open(t, w, func(r *rig) {
		for _, c := range cases {
			e := r.fails(-32602, methodNew, c.params)
			contains(t, e.Message, c.says)
			want(t, c.name, e.Data, `{"reason":"INVALID_PARAMS"}`)
		}
		if len(w.rows) != 0 {
			t.Errorf("%d sessions were made", len(w.rows))
		}
	})
}

func TestNewSession_Connection(t *testing.T) {
	w := newWorld()
	w.set = func(p *Params) { p.Agent = "fromurl" }
	open(t, w, func(r *rig) {
		r.newSession()
		if got := w.created[0]; got.FallbackAgent != "fromurl" || got.Client != "quill 4.1" {
			t.Errorf("fallback agent %q, client %q", got.FallbackAgent, got.Client)
		}
	})
}

func TestNewSession_Result(t *testing.T) {
	const meta = `{"berth":{"sessionId":"00000000-0000-4000-8000-000000000001","key":"acp:00000000-0000-4000-8000-000000000001",` +
		`"agent":"default","workspaceDir":"/proj","model":"p/m","modelTitle":"Big M","created":true}}`
	open(t, newWorld(), func(r *rig) {
		got := r.ok(methodNew, `{"cwd":"/proj"}`)
		want(t, "sessionId", got["sessionId"], `"00000000-0000-4000-8000-000000000001"`)
		want(t, "_meta", got["_meta"], meta)
		if len(got) != 2 {
			t.Errorf("result %s has more members than the protocol", got)
		}
	})
	openZeroclaw(t, newWorld(), func(r *rig) {
		got := r.ok(methodNew, `{"cwd":"/proj"}`)
		want(t, "workspaceDir", got["workspaceDir"], `"/proj"`)
		want(t, "_meta", got["_meta"], meta)
	})
}

func TestNewSession_Limit(t *testing.T) {
	full := func(w *world) {
		for i := range 10 {
			w.sessions[domain.SessionID(fmt.Sprint(i))] = &session{}
		}
	}
	w := newWorld()
	full(w)
	open(t, w, func(r *rig) {
		want(t, "data", r.fails(-31001, methodNew, `{"cwd":"/proj"}`).Data, `{"reason":"SESSION_LIMIT_REACHED","limit":10}`)
	})
	openZeroclaw(t, w, func(r *rig) { r.fails(-32001, methodNew, `{"cwd":"/proj"}`) })
}

// What the person should know stands in the response for every client, and
// goes out as notices, after the response, to those that show them.
func TestNotes(t *testing.T) {
	const params = `{"cwd":"/proj","mcpServers":[{"name":"notes","command":"/opt/mcp","args":null},{"name":"x","command":"/x","args":[],"env":[{"name":"A","value":"b"}]}]}`
	const mcp = "MCP servers cannot be used yet, so the tools of notes, x are off in this session."
	w := newWorld()
	w.notes = []string{"The offline model is no language model."}
	run(t, w, func(r *rig) {
		r.initialize(`{"session":{"notices":{}}}`)
		m, before := r.answer(r.start(methodNew, params))
		if len(before) != 0 {
			t.Errorf("%d messages before the response", len(before))
		}
		result := objectOf(m.Result)
		want(t, "notes", result.in("_meta").in("berth")["notes"], `["The offline model is no language model.","`+mcp+`"]`)
		for _, note := range []string{w.notes[0], mcp} {
			m := r.next()
			want(t, "update", objectOf(m.Params)["update"], `{"sessionUpdate":"notice","severity":"warning","title":"`+note+`"}`)
		}
		id := result.text("sessionId")
		r.ok("session/close", `{"sessionId":"`+id+`"}`)

		// load: before the response, nothing after it.
		m, before = r.answer(r.start(methodLoad, `{"sessionId":"`+id+`",`+params[1:]))
		if n := len(updatesIn(before)); n != 2 || m.Error != nil {
			t.Errorf("load: %d notices before the response, want 2; error %v", n, m.Error)
		}
		r.quiet()
		r.ok("session/close", `{"sessionId":"`+id+`"}`)

		// resume: after the response.
		_, before = r.answer(r.start(methodResume, `{"sessionId":"`+id+`",`+params[1:]))
		if len(before) != 0 || len(r.drain()) != 2 {
			t.Error("resume must send its notices right after the response")
		}
	})
	open(t, w, func(r *rig) {
		got := r.ok(methodNew, params)
		contains(t, got.String(), w.notes[0], mcp)
		r.quiet()
	})
}

func TestLoad_Request(t *testing.T) {
	w := newWorld()
	open(t, w, func(r *rig) {
		id := r.newSession()
		r.fails(-31003, methodLoad, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`)
		got := r.ok(methodLoad, `{"session_id":"`+id+`","workspaceDir":"/other","additionalDirectories":["/x"],"_meta":{"berth":{"takeover":true}}}`)
		want := domain.OpenSession{
			ID: domain.SessionID(id), Replay: true, Takeover: true,
			Dirs: domain.Directories{Cwd: "/other", Additional: []string{"/x"}},
		}
		if !reflect.DeepEqual(w.opened[1], want) {
			t.Errorf("asked for %+v, want %+v", w.opened[1], want)
		}
		if _, ok := got["sessionId"]; ok {
			t.Error("the result of load has a sessionId at its root")
		}
		contains(t, got.String(), `"created":false`)
		for _, p := range []string{`{"sessionId":"` + id + `"}`, `{"sessionId":"` + id + `","cwd":"x"}`, `{"cwd":"/proj"}`,
			`{"sessionId":null,"cwd":"/p"}`, `{"sessionId":"` + id + `","cwd":"/p","mcpServers":[{"type":"http","name":"n","url":"u","headers":[]}]}`} {
			r.fails(-32602, methodLoad, p)
			r.fails(-32602, methodResume, p)
		}
	})
	openZeroclaw(t, w, func(r *rig) {
		id := r.ok(methodNew, `{}`).text("sessionId")
		r.fails(-32602, methodLoad, `{"sessionId":"`+id+`"}`) // active
		r.ok("session/close", `{"sessionId":"`+id+`"}`)
		r.ok(methodLoad, `{"sessionId":"`+id+`"}`)
	})
}

func TestLoad_Unknown(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		for _, id := range []string{"gone", "../../etc/passwd", "", strings.Repeat("ü", 4000)} {
			for _, m := range []string{methodLoad, methodResume} {
				e := r.fails(-32002, m, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`)
				if got := objectOf(e.Data).text("sessionId"); !strings.HasPrefix(id, got) || len(got) > 128 {
					t.Errorf("data.sessionId %q for %.40q", got, id)
				}
			}
		}
		r.newSession() // the connection is fine
	})
}

func TestEnding(t *testing.T) {
	w := newWorld()
	open(t, w, func(r *rig) {
		id := r.newSession()
		if got := r.ok("session/stop", `{"sessionId":"`+id+`"}`).String(); got != `{"_meta":{"berth":{"sessionId":"`+id+`","stopped":true}}}` {
			t.Errorf("stop: %s", got)
		}
		r.fails(-32002, "session/stop", `{"sessionId":"`+id+`"}`)
		for _, m := range []string{"session/close", methodDelete} {
			if got := r.ok(m, `{"sessionId":"`+id+`"}`).String(); got != `{}` {
				t.Errorf("%s: %s", m, got)
			}
			r.ok(m, `{"sessionId":"never/was"}`)
			r.fails(-32602, m, `{}`)
			r.fails(-32602, m, `{"sessionId":7}`)
		}
		if len(w.rows) != 0 {
			t.Error("delete left the session in the store")
		}
	})
	openZeroclaw(t, newWorld(), func(r *rig) {
		id := r.ok(methodNew, `{}`).text("sessionId")
		if got := r.ok("session/stop", `{"session_id":"`+id+`"}`).String(); got != `{"sessionId":"`+id+`","stopped":true}` {
			t.Errorf("stop: %s", got)
		}
		r.fails(-32000, "session/stop", `{"sessionId":"`+id+`"}`)
		r.fails(-32000, "session/close", `{"sessionId":"`+id+`"}`)
		r.fails(-32000, "session/close", `{"sessionId":"a/b"}`)
		r.ok(methodDelete, `{"sessionId":"a/b"}`)
	})
}

// Stop lets the turn finish; close cancels it. Both answer after the turn did.
func TestEnding_DuringTurn(t *testing.T) {
	for _, method := range []string{"session/close", methodDelete} {
		w := newWorld()
		w.turn = waits
		open(t, w, func(r *rig) {
			id := r.newSession()
			p := r.prompt(id, "go")
			e := r.start(method, `{"sessionId":"`+id+`"}`)
			got, _ := r.answer(p)
			want(t, "stopReason", objectOf(got.Result)["stopReason"], `"cancelled"`)
			r.answer(e)
			r.fails(-32002, "session/prompt", `{"sessionId":"`+id+`","prompt":"again"}`)
		})
	}
}

func TestEvent(t *testing.T) {
	cases := []struct {
		name, params, kind, payload string
		forModel                    bool
	}{
		{"an update", `{"sessionId":"$","update":{"sessionUpdate":"note","text":"<hi>"}}`, "note", `{"sessionUpdate":"note","text":"<hi>"}`, false},
		{"a type", `{"session_id":"$","type":"saved","file":"/a"}`, "saved", `{"file":"/a","type":"saved"}`, false},
		{"nothing named", `{"sessionId":"$"}`, "unknown", `{}`, false},
		{"for the model", `{"sessionId":"$","type":"t","_meta":{"berth":{"context":true}}}`, "t", `{"type":"t"}`, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			open(t, w, func(r *rig) {
				id := r.newSession()
				params := strings.ReplaceAll(c.params, "$", id)
				got := r.ok(methodUpdate, params).String()
				if wanted := `{"_meta":{"berth":{"sessionId":"` + id + `","type":"` + c.kind + `","status":"processed"}}}`; got != wanted {
					t.Errorf("result %s, want %s", got, wanted)
				}
				r.notify("session/event", params)
				r.quiet()
				if len(w.events) != 2 {
					t.Fatalf("%d events recorded, want 2", len(w.events))
				}
				for _, e := range w.events {
					if e.Type != c.kind || string(e.Payload) != c.payload || e.ForModel != c.forModel {
						t.Errorf("recorded %s %s %v", e.Type, e.Payload, e.ForModel)
					}
				}
			})
		})
	}
	openZeroclaw(t, newWorld(), func(r *rig) {
		id := r.ok(methodNew, `{}`).text("sessionId")
		if got := r.ok("session/event", `{"sessionId":"`+id+`"}`).String(); got != `{"sessionId":"`+id+`","status":"processed","type":"unknown"}` {
			t.Errorf("result %s", got)
		}
		r.fails(-32000, "session/event", `{"sessionId":"gone"}`)
		r.fails(-32602, "session/event", `{}`)
		r.notify("session/event", `{"sessionId":"gone"}`)
		r.quiet()
	})
}

func TestList(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 15, 0, 123456000, time.UTC)
	w := newWorld()
	w.pageSize = 2
	w.rows = []domain.Session{
		{ID: "s1", Key: "agent:default:x", Label: "L", Agent: "default", Cwd: "/proj", CwdGiven: "/link", Title: "VAT",
			Additional: []string{"/lib"}, Client: "quill 4", CreatedAt: at, UpdatedAt: at},
		{ID: "s2", Key: "acp:s2", Agent: "default", Cwd: "/data/ws", CwdGiven: ".", UpdatedAt: at},
		{ID: "s3", Key: "acp:s3", Agent: "default", Cwd: "/proj", Parent: "s1"},
	}
	open(t, w, func(r *rig) {
		first := r.ok(methodList, ``)
		rows := elementsOf(first["sessions"])
		want(t, "row of s3", rows[0], `{"sessionId":"s3","cwd":"/proj","_meta":{"berth":{"key":"acp:s3","agent":"default",`+
			`"workspaceDir":"/proj","parentSessionId":"s1"},"sessionKey":"acp:s3","kind":"subagent","parentSessionId":"s1"}}`)
		want(t, "row of s2", rows[1], `{"sessionId":"s2","cwd":"/data/ws","updatedAt":"2026-11-30T09:15:00.123456Z","_meta":{"berth":{`+
			`"key":"acp:s2","agent":"default","workspaceDir":"/data/ws"},"sessionKey":"acp:s2","kind":"direct"}}`)
		second := r.ok(methodList, `{"cursor":`+string(first["nextCursor"])+`,"cwd":null}`)
		want(t, "second page", second["sessions"], `[{"sessionId":"s1","cwd":"/link","additionalDirectories":["/lib"],"title":"VAT",`+
			`"updatedAt":"2026-11-30T09:15:00.123456Z","_meta":{"berth":{"key":"agent:default:x","label":"L","agent":"default",`+
			`"workspaceDir":"/proj","client":"quill 4","createdAt":"2026-11-30T09:15:00.123456Z"},"sessionKey":"agent:default:x","kind":"direct"}}]`)
		if _, more := second["nextCursor"]; more {
			t.Error("the last page has a cursor")
		}
		if n := len(elementsOf(r.ok(methodList, `{"cwd":"/link","cursor":null}`)["sessions"])); n != 2 {
			t.Errorf("%d sessions of /link, want 2: it is /proj", n)
		}
		want(t, "an unused root", r.ok(methodList, `{"cwd":"/unused"}`)["sessions"], `[]`)
		r.ok(methodList, `{"_meta":{"pageSize":7.9}}`)
		r.ok(methodList, `{"_meta":{"limit":1e9,"berth":{"limit":"no"}}}`)
		if a, b := w.queries[4].Limit, w.queries[5].Limit; a != 7 || b != 200 {
			t.Errorf("page sizes %d and %d, want 7 and 200", a, b)
		}
		for _, p := range []string{`{"cwd":"rel"}`, `{"cwd":""}`, `{"cwd":5}`, `{"cursor":5}`, `{"cursor":""}`, `{"cursor":"bogus"}`,
			`{"cursor":"MTowOg"}`, `{"cursor":"MjowOnMx"}`, `{"cursor":"MTowOnMx="}`, `{"cursor":"MTowMDpzMQ"}`} {
			r.fails(-32602, methodList, p)
		}
	})
}

func TestCursor(t *testing.T) {
	for _, c := range []domain.SessionCursor{
		{UpdatedAt: time.UnixMicro(1).UTC(), ID: "a"}, {UpdatedAt: time.UnixMicro(-5).UTC(), ID: "a-b"}, {UpdatedAt: time.UnixMicro(0).UTC(), ID: "0"},
	} {
		if got, ok := parseCursor(formatCursor(c)); !ok || !got.UpdatedAt.Equal(c.UpdatedAt) || got.ID != c.ID {
			t.Errorf("%v comes back as %v, %v", c, got, ok)
		}
	}
}

func TestUnimplemented(t *testing.T) {
	open(t, newWorld(), func(r *rig) {
		for _, m := range []string{"logout", "session/set_mode", "session/set_config_option", "session/set_model", "session/fork",
			"session/archive", "session/unarchive", "session/status", "session/set_title", "session/options", "auth/status",
			"providers/list", "providers/set", "providers/disable", "mcp/message", "proxy/initialize", "proxy/successor"} {
			e := r.fails(-32601, m, `{}`)
			want(t, m, e.Data, `{"reason":"METHOD_NOT_FOUND","method":"`+m+`"}`)
			contains(t, e.Message, m, "not available")
		}
		want(t, "an unknown method", r.fails(-32601, "_acme/metrics", `{}`).Data, `{"reason":"METHOD_NOT_FOUND","method":"_acme/metrics"}`)
	})
}

func TestServe_DetachesAtEOF(t *testing.T) {
	w := newWorld()
	w.turn = waits
	open(t, w, func(r *rig) {
		id := r.newSession()
		p := r.prompt(id, "go")
		r.drain()
		r.end()
		m, _ := r.answer(p)
		want(t, "stopReason", objectOf(m.Result)["stopReason"], `"cancelled"`)
		if !domainCause(w.detached, domain.Disconnected) {
			t.Errorf("detached with %v, want the cause %v", w.detached, domain.Disconnected)
		}
	})
}
