package acp1

import (
	"context"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestInitialize_Negotiation(t *testing.T) {
	cases := []struct {
		name    string
		setting Dialect
		params  string
		dialect string // "" when refused with -32602
	}{
		{"version 1", DialectAuto, `{"protocolVersion":1}`, "acp"},
		{"a later version", DialectAuto, `{"protocolVersion":2,"info":{"name":"x"},"capabilities":{}}`, "acp"},
		{"the largest version", DialectAuto, `{"protocolVersion":65535}`, "acp"},
		{"no params", DialectAuto, ``, "zeroclaw"},
		{"empty params", DialectAuto, `{}`, "zeroclaw"},
		{"version 0", DialectAuto, `{"protocolVersion":0,"clientCapabilities":{}}`, "zeroclaw"},
		{"fields without a version", DialectAuto, `{"clientCapabilities":{}}`, ""},
		{"a string", DialectAuto, `{"protocolVersion":"1"}`, ""},
		{"a date", DialectAuto, `{"protocolVersion":"2026-01-01"}`, ""},
		{"null", DialectAuto, `{"protocolVersion":null}`, ""},
		{"an object", DialectAuto, `{"protocolVersion":{}}`, ""},
		{"a fraction", DialectAuto, `{"protocolVersion":1.5}`, ""},
		{"negative", DialectAuto, `{"protocolVersion":-1}`, ""},
		{"too large", DialectAuto, `{"protocolVersion":65536}`, ""},
		{"acp is set, version 0", DialectACP, `{"protocolVersion":0}`, "acp"},
		{"acp is set, no version", DialectACP, `{}`, ""},
		{"zeroclaw is set", DialectZeroclaw, `{"protocolVersion":1}`, "zeroclaw"},
		{"zeroclaw is set, nonsense", DialectZeroclaw, `{"protocolVersion":"x"}`, "zeroclaw"},
		{"the zero setting is auto", "", `{"protocolVersion":1}`, "acp"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.set = func(p *Params) { p.Dialect = c.setting }
			run(t, w, func(r *rig) {
				if c.dialect == "" {
					r.fails(-32602, "initialize", c.params)
					r.initialize(`{}`) // a refused attempt leaves the connection usable
					return
				}
				result := r.ok("initialize", c.params)
				want(t, "protocolVersion", result["protocolVersion"], "1")
				if d := result.in("_meta").in("berth").text("dialect"); d != c.dialect {
					t.Errorf("dialect %q, want %q", d, c.dialect)
				}
			})
		})
	}
}

// tried is a sandbox of which some postures are known, by agent.
type tried map[string]domain.Posture

func (s tried) Posture(_ context.Context, agent string) domain.Posture { return s[agent] }

func (s tried) Known(agent string) (domain.Posture, bool) {
	p, ok := s[agent]
	return p, ok
}

func TestInitialize_Answer(t *testing.T) {
	w := newWorld()
	w.agents = append(w.agents, domain.Agent{Alias: "off"})
	w.fallback = "default"
	w.agents = append(w.agents, domain.Agent{Alias: "new", Enabled: true})
	w.set = func(p *Params) {
		p.Sandbox = tried{"default": {Word: domain.PosturePartial, Backend: "landlock", Lacks: []string{"the network"}, Reason: "no user namespaces"}}
	}
	run(t, w, func(r *rig) {
		got := r.initialize(`{}`)
		want(t, "agentCapabilities", got["agentCapabilities"], `{"loadSession":true,`+
			`"promptCapabilities":{"image":false,"audio":false,"embeddedContext":true},`+
			`"mcpCapabilities":{"http":false,"sse":false},`+
			`"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"resume":{},"close":{}}}`)
		want(t, "agentInfo", got["agentInfo"], `{"name":"berth","title":"Berth","version":"0.0.1"}`)
		want(t, "_meta.berth", got.in("_meta")["berth"], `{"dialect":"acp",`+
			`"agents":[{"alias":"default","title":"Default","model":"p/m","sandbox":{"posture":"partial","backend":"landlock","lacks":["the network"],"reason":"no user namespaces"}},{"alias":"new"}],"defaultAgent":"default",`+
			`"limits":{"maxSessions":10,"sessionTimeoutSecs":3600,"maxBlobBytes":10485760,"maxPromptBlobBytes":33554432,"queuesPrompts":true},`+
			`"methods":["session/stop","session/update","session/event","_berth/session/await","_berth/session/observe","_berth/session/unobserve"]}`)
		want(t, "_meta.zeroclaw", got.in("_meta")["zeroclaw"], `{"maxSessions":10,"sessionTimeoutSecs":3600,"defaultModel":"m"}`)
	})
}

// The model in use decides what a prompt may hold, and a prompt that holds more
// is refused.
func TestInitialize_Senses(t *testing.T) {
	const picture = `{"type":"image","mimeType":"image/png","data":"aGk="}`
	const sound = `{"type":"audio","mimeType":"audio/wav","data":"aGk="}`
	for _, c := range []struct{ images, audio bool }{{true, false}, {false, true}, {true, true}} {
		w := newWorld()
		w.senses = domain.ModelInfo{Images: c.images, Audio: c.audio}
		run(t, w, func(r *rig) {
			can := r.initialize(`{}`).in("agentCapabilities").in("promptCapabilities")
			if can.flag("image") != c.images || can.flag("audio") != c.audio {
				t.Errorf("offered %v for %+v", can, c)
			}
			id := r.newSession()
			for block, taken := range map[string]bool{picture: c.images, sound: c.audio} {
				if params := `{"sessionId":"` + id + `","prompt":[` + block + `]}`; taken {
					r.ok("session/prompt", params)
				} else {
					r.fails(-32602, "session/prompt", params)
				}
			}
		})
	}
}

func TestInitialize_Zeroclaw(t *testing.T) {
	run(t, newWorld(), func(r *rig) {
		got := r.ok("initialize", ``)
		want(t, "authMethods", got["authMethods"], `[]`)
		want(t, "queuesPrompts", got.in("_meta").in("berth").in("limits")["queuesPrompts"], `false`)
		r.fails(-32601, "authenticate", `{"methodId":"local"}`)
	})
}

func TestInitialize_WithoutStore(t *testing.T) {
	w := newWorld()
	w.volatile = true
	run(t, w, func(r *rig) {
		got := r.initialize(`{}`).in("agentCapabilities")
		want(t, "loadSession", got["loadSession"], `false`)
		want(t, "sessionCapabilities", got["sessionCapabilities"], `{"additionalDirectories":{},"close":{}}`)
		id := r.newSession()
		for _, m := range []string{methodLoad, methodResume, methodList, methodDelete} {
			r.fails(-32601, m, `{"sessionId":"`+id+`","cwd":"/proj","mcpServers":[]}`)
		}
		r.ok("session/close", `{"sessionId":"`+id+`"}`)
	})
	run(t, w, func(r *rig) {
		r.ok("initialize", ``)
		for _, m := range []string{methodLoad, methodResume} {
			e := r.fails(-32000, m, `{"sessionId":"s1"}`)
			want(t, "data", e.Data, `{"reason":"SESSION_NOT_FOUND","sessionId":"s1"}`)
		}
		for _, m := range []string{methodList, methodDelete} {
			r.fails(-32601, m, `{"sessionId":"s1"}`)
		}
		id := r.ok(methodNew, `{}`).text("sessionId")
		r.ok("session/close", `{"sessionId":"`+id+`"}`)
	})
}

func TestInitialize_ClientInfo(t *testing.T) {
	const all = `{"protocolVersion":1,"clientInfo":{"name":"quill","title":"Quill","version":"4"},"clientCapabilities":{
		"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},
		"elicitation":{"form":{},"url":{}},"subagents":{},
		"session":{"configOptions":{"boolean":{}},"notices":{},"compaction":{}},"_meta":{"terminal-auth":true}}}`
	cases := []struct {
		name, params string
		zeroclaw     bool
		want         domain.ClientInfo
	}{
		{"all", all, false, domain.ClientInfo{
			Name: "quill", Title: "Quill", Version: "4", ReadFiles: true, WriteFiles: true, Terminals: true, Notices: true,
			Compaction: true, ElicitForm: true, ElicitURL: true, BoolOptions: true, LoginInShell: true, LoginCommand: true, Subagents: true,
		}},
		{"nothing", `{"protocolVersion":1}`, false, domain.ClientInfo{}},
		{"nulls", `{"clientCapabilities":{"fs":null,"terminal":null,"session":{"notices":null},"elicitation":{"form":null}},"clientInfo":null}`,
			false, domain.ClientInfo{}},
		{"malformed parts are unsupported, their neighbours are not",
			`{"clientCapabilities":{"fs":{"readTextFile":"yes","writeTextFile":true},"terminal":1,"session":[],"auth":"all"},"clientInfo":{"name":5,"version":"2"}}`,
			false, domain.ClientInfo{Version: "2", WriteFiles: true}},
		{"capabilities of a wrong type", `{"clientCapabilities":"all"}`, false, domain.ClientInfo{}},
		{"elicitation without a mode", `{"clientCapabilities":{"elicitation":{}}}`, false, domain.ClientInfo{}},
		{"elicitation without a mode in zeroclaw", `{"clientCapabilities":{"elicitation":{}}}`, true, domain.ClientInfo{ElicitForm: true}},
		{"elicitation by url in zeroclaw", `{"clientCapabilities":{"elicitation":{"url":null}}}`, true, domain.ClientInfo{ElicitURL: true}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := clientInfo(objectOf([]byte(c.params)), c.zeroclaw, nil); got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestAuthenticate(t *testing.T) {
	noKey := domain.Errorf(domain.AuthRequired, "set ANTHROPIC_API_KEY, or providers.p.api_key in the configuration")
	other := domain.Agent{Alias: "other", Enabled: true, Model: domain.ModelRef{Provider: "q", Model: "n"}}
	ref := domain.ModelRef{Provider: "p", Model: "m"}
	t.Run("the model opens", func(t *testing.T) {
		open(t, newWorld(), func(r *rig) {
			if got := r.ok("authenticate", `{"methodId":"local"}`).String(); got != `{}` {
				t.Errorf("result %s", got)
			}
		})
	})
	t.Run("the key is missing", func(t *testing.T) {
		w := newWorld()
		w.models = map[domain.ModelRef]error{ref: noKey}
		open(t, w, func(r *rig) {
			e := r.fails(-32000, "authenticate", `{"methodId":"local"}`)
			contains(t, e.Message, "Authentication required", "ANTHROPIC_API_KEY")
			want(t, "data", e.Data, `{"reason":"AUTH_REQUIRED","authMethods":["local"]}`)
		})
	})
	t.Run("one of several agents works", func(t *testing.T) {
		w := newWorld()
		w.agents = append(w.agents, other)
		w.models = map[domain.ModelRef]error{ref: noKey}
		open(t, w, func(r *rig) { r.ok("authenticate", `{"methodId":"local"}`) })
	})
	t.Run("the default of several agents decides", func(t *testing.T) {
		w := newWorld()
		w.agents = append(w.agents, other)
		w.fallback = "default"
		w.models = map[domain.ModelRef]error{ref: noKey}
		open(t, w, func(r *rig) { r.fails(-32000, "authenticate", `{"methodId":"local"}`) })
	})
	t.Run("no agent is enabled", func(t *testing.T) {
		w := newWorld()
		w.agents[0].Enabled = false
		open(t, w, func(r *rig) { r.fails(-32602, "authenticate", `{"methodId":"local"}`) })
	})
	t.Run("params", func(t *testing.T) {
		open(t, newWorld(), func(r *rig) {
			for _, p := range []string{`{}`, `{"methodId":null}`, `{"methodId":3}`, `{"methodId":"oauth"}`, `{"methodId":"login"}`} {
				r.fails(-32602, "authenticate", p)
			}
		})
	})
}
