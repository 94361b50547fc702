package openclaw_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/adapters/openclaw"
	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

const someID = "11111111-2222-4333-8444-555555555555"

// TestNew opens sessions by all the ways there are to name one.
func TestNew(t *testing.T) {
	flags := func(f openclaw.SessionFlags) func(*openclaw.Config) {
		return func(c *openclaw.Config) { c.Sessions = f }
	}
	tests := []struct {
		name   string
		w      with
		params string // beside cwd and mcpServers
		key    string // of the session
		code   int
		words  string
	}{
		{"by itself", with{}, ``, "agent:main:acp-bridge:", 0, ""},
		{"an agent by flag", with{gateway: openclawtest.Config{Agents: []string{"main", "ops"}}, bridge: flags(openclaw.SessionFlags{Agent: "ops"})}, ``, "agent:ops:acp-bridge:", 0, ""},
		{"an agent by request", with{gateway: openclawtest.Config{Agents: []string{"main", "ops"}}}, `"_meta":{"berth":{"agent":"ops"}},`, "agent:ops:acp-bridge:", 0, ""},
		{"an agent that is not there", with{}, `"_meta":{"berth":{"agent":"ops"}},`, "", -32602, "ops"},
		{"several agents and none named", with{gateway: openclawtest.Config{Agents: []string{"a", "b"}, NoDefault: true}}, ``, "", -32602, "a, b"},
		{"a key by flag", with{bridge: flags(openclaw.SessionFlags{Key: "agent:main:main"})}, ``, "agent:main:main", 0, ""},
		{"a bare key", with{}, `"_meta":{"sessionKey":"notes"},`, "agent:main:notes", 0, ""},
		{"a key of another agent", with{bridge: flags(openclaw.SessionFlags{Agent: "x"})}, `"_meta":{"sessionKey":"agent:main:notes"},`, "", -32602, "belongs to"},
		{"a label by flag", with{bridge: flags(openclaw.SessionFlags{Label: "inbox"})}, ``, "agent:main:labelled", 0, ""},
		{"a label beats a key", with{bridge: flags(openclaw.SessionFlags{Key: "x"})}, `"_meta":{"sessionKey":"notes","sessionLabel":"inbox"},`, "agent:main:labelled", 0, ""},
		{"_meta beats flags", with{bridge: flags(openclaw.SessionFlags{Label: "inbox"})}, `"_meta":{"berth":{"sessionKey":"notes"}},`, "agent:main:notes", 0, ""},
		{"a label that is not there", with{}, `"_meta":{"label":"nope"},`, "", -32002, "nope"},
		{"an existing one is required", with{bridge: flags(openclaw.SessionFlags{Key: "nope", RequireExisting: true})}, ``, "", -32002, ""},
		{"an existing one is required, and none named", with{bridge: flags(openclaw.SessionFlags{RequireExisting: true})}, ``, "", -32602, "--session"},
		{"the request takes that back", with{bridge: flags(openclaw.SessionFlags{Key: "nope", RequireExisting: true})}, `"_meta":{"requireExisting":false},`, "agent:main:nope", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, tt.w, func(r *rig) {
				r.gw.Put("agent:main:labelled", "/ws", "inbox")
				r.begin()
				out, err := r.try("session/new", `{`+tt.params+`"cwd":"/ws","mcpServers":[]}`)
				if tt.code != 0 {
					if code(err) != tt.code || !strings.Contains(err.Error(), tt.words) {
						t.Errorf("error %v, want %d %q", err, tt.code, tt.words)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				key := out["_meta"].(map[string]any)["berth"].(map[string]any)["key"].(string)
				if !strings.HasPrefix(key, tt.key) {
					t.Errorf("key %s, want %s", key, tt.key)
				}
				// The same id leads there from another bridge.
				id := out["sessionId"].(string)
				other := newRig(r.t, with{bridge: func(c *openclaw.Config) { c.Dial = r.gw.Dial }})
				other.begin()
				for _, method := range []string{"session/load", "session/resume"} {
					got := other.call(method, `{"sessionId":"`+id+`","cwd":"/ws","mcpServers":[]}`)
					if k := got["_meta"].(map[string]any)["berth"].(map[string]any)["key"]; k != key {
						t.Errorf("%s: key %s, want %s", method, k, key)
					}
				}
				_ = other.end()
			})
		})
	}
}

func TestRefused(t *testing.T) {
	tests := []struct {
		name, method, params string
		code                 int
		words                string
	}{
		{"MCP servers", "session/new", `{"cwd":"/ws","mcpServers":[{"name":"x","command":"y","args":[],"env":[]}]}`, -32602, "at the gateway"},
		{"a relative cwd", "session/new", `{"cwd":"ws","mcpServers":[]}`, -32602, "absolute"},
		{"load: a relative cwd", "session/load", `{"sessionId":"` + someID + `","cwd":".","mcpServers":[]}`, -32602, "absolute"},
		{"list: a relative cwd", "session/list", `{"cwd":"x"}`, -32602, "absolute"},
		{"a cursor of another's", "session/list", `{"cursor":"eyJ2IjoxfQ"}`, -32602, "cursor"},
		{"load: unknown", "session/load", `{"sessionId":"` + someID + `","cwd":"/ws","mcpServers":[]}`, -32002, ""},
		{"resume: unknown", "session/resume", `{"sessionId":"agent:main:nope","cwd":"/ws","mcpServers":[]}`, -32002, ""},
		{"prompt: unknown", "session/prompt", `{"sessionId":"nope","prompt":[{"type":"text","text":"x"}]}`, -32002, ""},
		{"prompt: empty", "session/prompt", `{"sessionId":"nope","prompt":[]}`, -32602, "empty"},
		{"prompt: sound", "session/prompt", `{"sessionId":"nope","prompt":[{"type":"audio","mimeType":"audio/wav","data":"AAAA"}]}`, -32602, "audio"},
		{"mode: unknown session", "session/set_mode", `{"sessionId":"nope","modeId":"low"}`, -32002, ""},
		{"a method of no protocol", "session/explode", `{}`, -32601, ""},
		{"authenticate", "authenticate", `{"methodId":"x"}`, -32602, "--token-file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, with{}, func(r *rig) {
				r.begin()
				if _, err := r.try(tt.method, tt.params); code(err) != tt.code || !strings.Contains(err.Error(), tt.words) {
					t.Errorf("error %v, want %d %q", err, tt.code, tt.words)
				}
			})
		})
	}
}

// A long id is repeated up to a whole letter.
func TestLongID(t *testing.T) {
	play(t, with{}, func(r *rig) {
		r.begin()
		whole := strings.Repeat("é", 63) + "x"
		_, err := r.try("session/prompt", `{"sessionId":"`+whole+`é","prompt":[{"type":"text","text":"x"}]}`)
		if err == nil || !strings.Contains(err.Error(), whole) || strings.Contains(err.Error(), "\uFFFD") {
			t.Errorf("it says %v", err)
		}
	})
}

// TestDirectory makes sessions in directories that the gateway has or lacks.
func TestDirectory(t *testing.T) {
	tests := []struct {
		name, cwd, works string
		admin            bool // operator.admin may be had
		asks             bool // and was asked for
	}{
		{"in the workspace", "/ws/a", "/ws/a", true, false},
		{"elsewhere", "/src", "/src", true, true},
		{"elsewhere, and nobody is an administrator", "/src", "", false, false},
		{"one that the gateway does not have", "/missing", "", true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, with{gateway: openclawtest.Config{NoAdmin: !tt.admin}}, func(r *rig) {
				r.begin()
				out := r.call("session/new", `{"cwd":"`+tt.cwd+`","mcpServers":[]}`)
				berth := out["_meta"].(map[string]any)["berth"].(map[string]any)
				if dir, _ := berth["workspaceDir"].(string); dir != tt.works {
					t.Errorf("tools work in %q, want %q", dir, tt.works)
				}
				if _, told := berth["notes"]; told != (tt.works == "") {
					t.Errorf("notes: %v", berth["notes"])
				}
				made := r.gw.Requests("sessions.create")
				if got := strings.Contains(fmt.Sprint(made[len(made)-1].Scopes), "admin"); got != tt.asks {
					t.Errorf("asked for operator.admin: %v, want %v", got, tt.asks)
				}
				list := r.call("session/list", `{"cwd":"`+tt.cwd+`"}`)["sessions"].([]any)
				if want := map[bool]int{true: 1}[tt.works != ""]; len(list) != want {
					t.Errorf("the list of that directory has %d sessions, want %d", len(list), want)
				}
			})
		})
	}
}

// TestReset resets once by flag, and never a session that is loaded.
func TestReset(t *testing.T) {
	play(t, with{bridge: func(c *openclaw.Config) {
		c.Sessions = openclaw.SessionFlags{Key: "agent:main:main", Reset: true}
	}}, func(r *rig) {
		r.gw.Put("agent:main:main", "/ws", "")
		r.begin()
		for range 2 {
			r.call("session/new", `{"cwd":"/ws","mcpServers":[]}`)
			r.call("session/load", `{"sessionId":"agent:main:main","cwd":"/ws","mcpServers":[]}`)
		}
		if n := len(r.gw.Requests("sessions.reset")); n != 1 {
			t.Errorf("%d resets, want 1", n)
		}
		r.call("session/resume", `{"sessionId":"agent:main:main","cwd":"/ws","mcpServers":[],"_meta":{"resetSession":true}}`)
		if n := len(r.gw.Requests("sessions.reset")); n != 2 {
			t.Errorf("%d resets, want 2", n)
		}
	})
}

func TestList(t *testing.T) {
	for name, change := range map[string]func(r *rig, page int){
		"at rest": func(*rig, int) {},
		"new ones come": func(r *rig, page int) {
			r.gw.Put(fmt.Sprintf("agent:main:new%d", page), "/ws", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, with{}, func(r *rig) {
				for i := range 25 {
					r.gw.Put(fmt.Sprintf("agent:main:s%02d", i), "/ws", "")
				}
				r.begin()
				seen := map[string]int{}
				params := `{"_meta":{"limit":10}}`
				for page := range 10 {
					out := r.call("session/list", params)
					for _, row := range out["sessions"].([]any) {
						seen[row.(map[string]any)["sessionId"].(string)]++
					}
					next, more := out["nextCursor"].(string)
					if !more {
						break
					}
					change(r, page)
					params = `{"cursor":"` + next + `","_meta":{"limit":10}}`
				}
				for i := range 25 {
					if n := seen[fmt.Sprintf("agent:main:s%02d", i)]; n != 1 {
						t.Errorf("session %d came %d times", i, n)
					}
				}
			})
		})
	}
}

// TestControls sets modes and options, with as little authority as it takes.
func TestControls(t *testing.T) {
	tests := []struct {
		name, method, params string
		patch                string // what the gateway is told
		admin                bool
		code                 int
	}{
		{"mode", "session/set_mode", `"modeId":"high"`, `"thinkingLevel":"high"`, false, 0},
		{"a mode that is not there", "session/set_mode", `"modeId":"huge"`, "", false, -32602},
		{"thinking", "session/set_config_option", `"configId":"thought_level","value":"off"`, `"thinkingLevel":"off"`, false, 0},
		{"model", "session/set_config_option", `"configId":"model","value":"test/large"`, `"model":"test/large"`, false, 0},
		{"fast", "session/set_config_option", `"configId":"fast_mode","value":"on"`, `"fastMode":true`, false, 0},
		{"verbosity", "session/set_config_option", `"configId":"verbose_level","value":"full"`, `"verboseLevel":"full"`, true, 0},
		{"usage taken back", "session/set_config_option", `"configId":"response_usage","value":"inherit"`, `"responseUsage":null`, true, 0},
		{"a value that is not there", "session/set_config_option", `"configId":"fast_mode","value":"maybe"`, "", false, -32602},
		{"a value that is no string", "session/set_config_option", `"configId":"fast_mode","value":true`, "", false, -32602},
		{"an option that is not there", "session/set_config_option", `"configId":"nope","value":"x"`, "", false, -32602},
		{"a client's time-out", "session/set_config_option", `"configId":"timeout","value":"9"`, "", false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, with{}, func(r *rig) {
				id := r.open()
				_, err := r.try(tt.method, `{"sessionId":"`+id+`",`+tt.params+`}`)
				if code(err) != tt.code {
					t.Fatalf("error %v, want %d", err, tt.code)
				}
				made := r.gw.Requests("sessions.patch")
				if tt.patch == "" {
					if len(made) != 0 {
						t.Errorf("the gateway was told %s", made[0].Params)
					}
					return
				}
				if !strings.Contains(string(made[0].Params), tt.patch) {
					t.Errorf("the gateway was told %s, want %s", made[0].Params, tt.patch)
				}
				if got := strings.Contains(fmt.Sprint(made[0].Scopes), "admin"); got != tt.admin {
					t.Errorf("asked for operator.admin: %v, want %v", got, tt.admin)
				}
			})
		})
	}
}

// TestLoad replays a whole conversation to another bridge.
func TestLoad(t *testing.T) {
	script := func(r *openclawtest.Run) {
		if strings.HasSuffix(r.Message, "fail") {
			r.Fail("", "no key")
			return
		}
		r.Think("hm")
		r.Preamble("I look.")
		r.Tool("read", map[string]any{"path": "/ws/a"}, "text", false)
		r.Say("It is so.")
	}
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		id := r.open()
		for range 300 {
			r.call("session/prompt", says(id, "again"))
		}
		_, _ = r.try("session/prompt", says(id, "fail"))
		other := newRig(r.t, with{bridge: func(c *openclaw.Config) { c.Dial = r.gw.Dial }})
		other.begin()
		other.call("session/load", `{"sessionId":"`+id+`","cwd":"/ws","mcpServers":[]}`)
		told := other.told()
		turn := []string{"user again", "say I look.", "think hm", "call call_1 read read /ws/a /ws/a", "done call_1 completed content:text", "say It is so. "}
		if d := cmp.Diff(turn, told[:len(turn)]); d != "" {
			t.Errorf("the first turn (-want +got):\n%s", d)
		}
		ids := map[string]bool{} // the model gives the same one in each turn
		for _, l := range told {
			if f := strings.Fields(l); f[0] == "call" {
				ids[f[1]] = true
			}
		}
		if len(ids) != 300 {
			t.Errorf("%d ids for 300 calls", len(ids))
		}
		if want := 300*len(turn) + 2 + 1; len(told) != want {
			t.Errorf("%d updates, want %d", len(told), want)
		}
		if d := cmp.Diff([]string{"user fail", "say This turn ended before a reply: no key"}, told[300*len(turn):300*len(turn)+2]); d != "" {
			t.Errorf("the end (-want +got):\n%s", d)
		}
		_ = other.end()
	})
}

// TestLoad_Running loads a session in the middle of a turn and sees the rest.
func TestLoad_Running(t *testing.T) {
	var on chan struct{}
	script := func(r *openclawtest.Run) {
		r.Say("one")
		r.Tool("read", map[string]any{"path": "/ws/a"}, "text", false)
		r.Hold(on)
		r.Say("two")
	}
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		on = make(chan struct{})
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		other := newRig(r.t, with{bridge: func(c *openclaw.Config) { c.Dial = r.gw.Dial }})
		other.begin()
		other.call("session/load", `{"sessionId":"`+id+`","cwd":"/ws","mcpServers":[]}`)
		close(on)
		if _, err := answer(); err != nil {
			t.Error(err)
		}
		want := []string{"user hi", "say one ", "call call_1 read read /ws/a /ws/a", "done call_1 completed content:text", "say two"}
		if d := cmp.Diff(want, other.told()); d != "" {
			t.Error(d)
		}
		_ = other.end()
	})
}

func TestPrompt(t *testing.T) {
	tests := []struct {
		name   string
		bridge func(*openclaw.Config)
		prompt string
		meta   string
		want   []string // in what the gateway is sent
		not    string
	}{
		{"text", nil, `{"type":"text","text":"hi"}`, `{}`, []string{`"[Working directory: ~/x]\n\nhi"`}, "thinking"},
		{"no prefix", func(c *openclaw.Config) { c.NoPrefix = true }, `{"type":"text","text":"hi"}`, `{}`, []string{`"hi"`}, "Working"},
		{"no prefix this time", nil, `{"type":"text","text":"hi"}`, `{"prefixCwd":false}`, []string{`"hi"`}, "Working"},
		{"a command", nil, `{"type":"text","text":"/help"}`, `{}`, []string{`"/help"`}, "Working"},
		{"a picture", nil, `{"type":"image","mimeType":"image/png","data":"AAAA"}`, `{}`, []string{`"type":"image"`, `"mimeType":"image/png"`, `"content":"AAAA"`}, ""},
		{"a link", nil, `{"type":"resource_link","uri":"file:///a","name":"a [1]"}`, `{}`, []string{`(a \\[1\\])`, "file:///a"}, ""},
		{"a text", nil, `{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/x","text":"b"}}`, `{}`, []string{"file:///a (text/x)", "b"}, ""},
		{"a file", nil, `{"type":"resource","resource":{"uri":"file:///a.pdf","mimeType":"application/pdf","blob":"AAAA"}}`, `{}`, []string{`"fileName":"a.pdf"`, "Attached: file:///a.pdf"}, ""},
		{"for one turn", nil, `{"type":"text","text":"hi"}`, `{"thinking":"high","deliver":true,"timeoutMs":9}`, []string{`"thinking":"high"`, `"deliver":true`, `"timeoutMs":9`}, ""},
		{"provenance", func(c *openclaw.Config) { c.Provenance, c.Host = "meta+receipt", "here" }, `{"type":"text","text":"hi"}`, `{}`,
			[]string{`"kind":"external_user"`, `host: here`, `"sourceChannel":"acp"`}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, with{bridge: tt.bridge}, func(r *rig) {
				r.begin()
				id := r.call("session/new", `{"cwd":"/home/ann/x","mcpServers":[]}`)["sessionId"].(string)
				r.call("session/prompt", `{"sessionId":"`+id+`","prompt":[`+tt.prompt+`],"_meta":`+tt.meta+`}`)
				sent := string(r.gw.Requests("chat.send")[0].Params)
				for _, w := range tt.want {
					if !strings.Contains(sent, w) {
						t.Errorf("%s lacks %s", sent, w)
					}
				}
				if tt.not != "" && strings.Contains(sent, tt.not) {
					t.Errorf("%s has %s", sent, tt.not)
				}
			})
		})
	}
}

// TestTooLarge keeps what would end the connection from being sent.
func TestTooLarge(t *testing.T) {
	play(t, with{gateway: openclawtest.Config{MaxPayload: 100_000}}, func(r *rig) {
		id := r.open()
		data := strings.Repeat("AAAA", 50_000)
		_, err := r.try("session/prompt", `{"sessionId":"`+id+`","prompt":[{"type":"image","mimeType":"image/png","data":"`+data+`"}]}`)
		if code(err) != -32602 || !strings.Contains(err.Error(), "100000") {
			t.Errorf("error %v", err)
		}
		if _, err := r.try("session/prompt", says(id, strings.Repeat("x", 2<<20+1))); code(err) != -32602 {
			t.Errorf("error %v", err)
		}
		if out := r.call("session/prompt", says(id, "hi")); out["stopReason"] != "end_turn" {
			t.Errorf("the next: %v", out)
		}
	})
}

// TestStart begins without a gateway, or with one that lets nobody in.
func TestStart(t *testing.T) {
	secret := func(s string) func(*openclaw.Config) {
		return func(c *openclaw.Config) { c.Secret = func() (string, error) { return s, nil } }
	}
	tests := []struct {
		name string
		w    with
		then func(r *rig)
		code int
		ends string // in the one line that it ends with
	}{
		{"none at first", with{shut: true}, func(r *rig) { time.Sleep(20 * time.Second); r.gw.Shut(false) }, 0, ""},
		{"none at all", with{shut: true}, nil, -32603, "no OpenClaw Gateway for 30s"},
		{"a wrong token", with{gateway: openclawtest.Config{Token: "right-secret"}, bridge: secret("wrong-secret")}, nil, -32000, "refuses the token"},
		{"no token", with{gateway: openclawtest.Config{Token: "right-secret"}, bridge: secret("")}, nil, -32000, "wants a token"},
		{"an unknown device", with{gateway: openclawtest.Config{Unpaired: true}}, nil, -32000, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			play(t, tt.w, func(r *rig) {
				before := time.Now()
				r.begin()
				if d := time.Since(before); d != 0 {
					t.Errorf("initialize took %s", d)
				}
				answer := r.later("session/new", `{"cwd":"/ws","mcpServers":[]}`)
				if tt.then != nil {
					tt.then(r)
				}
				_, err := answer()
				if code(err) != tt.code {
					t.Errorf("error %v, want %d", err, tt.code)
				}
				if tt.name == "an unknown device" {
					if !strings.Contains(err.Error(), "openclaw devices approve req-1") {
						t.Errorf("error %v", err)
					}
					r.gw.Approve()
					time.Sleep(time.Minute)
					r.call("session/new", `{"cwd":"/ws","mcpServers":[]}`)
				}
				if tt.ends != "" {
					time.Sleep(5 * time.Second)
				}
				how := r.end()
				if tt.ends == "" && how != nil || tt.ends != "" && (how == nil || !strings.Contains(how.Error(), tt.ends)) {
					t.Errorf("ended with %v, want %q", how, tt.ends)
				}
				for _, l := range append(r.logged, fmt.Sprint(how, err)) {
					if strings.Contains(l, "secret") {
						t.Errorf("a secret was told: %s", l)
					}
				}
			})
		})
	}
}

// TestDeviceToken uses what a gateway gave a device in the place of a secret.
func TestDeviceToken(t *testing.T) {
	var kept []byte
	w := with{gateway: openclawtest.Config{Token: "shared", DeviceToken: "for-the-device"}, bridge: func(c *openclaw.Config) {
		c.Keep = func(i *openclaw.Identity) error {
			var err error
			kept, err = i.Marshal()
			return err
		}
	}}
	play(t, w, func(r *rig) {
		r.open()
		i, err := openclaw.ParseIdentity(kept)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"", "changed"} {
			other := newRig(r.t, with{bridge: func(c *openclaw.Config) {
				c.Dial, c.Identity = r.gw.Dial, i
				c.Secret = func() (string, error) { return secret, nil }
			}})
			other.begin()
			other.call("session/list", `{}`)
			_ = other.end()
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", i, i, i), "for-the-device") {
			t.Error("a token was printed")
		}
	})
}

// TestClose closes a session in the middle of a turn.
func TestClose(t *testing.T) {
	script := func(r *openclawtest.Run) { r.Hold(nil) }
	play(t, with{gateway: openclawtest.Config{Script: script}}, func(r *rig) {
		id := r.open()
		answer := r.later("session/prompt", says(id, "hi"))
		r.call("session/close", `{"sessionId":"`+id+`"}`)
		if out, err := answer(); err != nil || out["stopReason"] != "cancelled" {
			t.Errorf("answer %v, %v", out, err)
		}
		r.call("session/close", `{"sessionId":"`+id+`"}`)
		if _, err := r.try("session/prompt", says(id, "hi")); code(err) != -32002 {
			t.Errorf("error %v", err)
		}
		r.call("session/resume", `{"sessionId":"`+id+`","cwd":"/ws","mcpServers":[]}`)
		r.call("session/delete", `{"sessionId":"`+id+`"}`)
		r.call("session/delete", `{"sessionId":"`+id+`"}`)
		if _, err := r.try("session/load", `{"sessionId":"`+id+`","cwd":"/ws","mcpServers":[]}`); code(err) != -32002 {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
	})
}

// TestFraming sends what is no message; none of it ends the connection.
func TestFraming(t *testing.T) {
	play(t, with{}, func(r *rig) {
		r.begin()
		for _, frame := range []string{`[]`, `[{"jsonrpc":"2.0","id":1,"method":"session/list"}]`, `{`, `{"id":3}`} {
			if err := r.conn.Send(r.t.Context(), []byte(frame)); err != nil {
				t.Fatal(err)
			}
		}
		r.call("session/list", `{}`)
	})
}

// TestReset_Failed has a first session/new that fails: --reset-session counts
// for the one that follows.
func TestReset_Failed(t *testing.T) {
	play(t, with{
		gateway: openclawtest.Config{Unpaired: true},
		bridge:  func(c *openclaw.Config) { c.Sessions.Reset, c.Sessions.Key = true, "agent:main:x" },
	}, func(r *rig) {
		r.gw.Put("agent:main:x", "/ws", "")
		r.begin()
		if _, err := r.try("session/new", `{"cwd":"/ws","mcpServers":[]}`); err == nil {
			t.Fatal("a device that is not known was let in")
		}
		r.gw.Approve()
		time.Sleep(10 * time.Second)
		for range 2 {
			r.call("session/new", `{"cwd":"/ws","mcpServers":[]}`)
		}
		if n := len(r.gw.Requests("sessions.reset")); n != 1 {
			t.Errorf("%d resets, want 1", n)
		}
	})
}

// TestMissing tells a session that is missing from other things that are.
func TestMissing(t *testing.T) {
	for words, want := range map[string]int{
		"model not found: test/none": -32602, "session not found: x": -32002, "No session found: x": -32002, "Session x not found": -32002,
	} {
		odd := func(o *openclawtest.Odd) bool {
			if o.Method != "sessions.patch" {
				return false
			}
			o.Send(`{"type":"res","id":"` + o.ID + `","ok":false,"error":{"code":"INVALID_REQUEST","message":"` + words + `"}}`)
			return true
		}
		play(t, with{gateway: openclawtest.Config{Odd: odd}}, func(r *rig) {
			id := r.open()
			_, err := r.try("session/set_config_option", `{"sessionId":"`+id+`","configId":"model","value":"test/none"}`)
			if code(err) != want || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: error %v, want %d", words, err, want)
			}
		})
	}
}

// TestPrompt_NoTimeout takes null for nothing.
func TestPrompt_NoTimeout(t *testing.T) {
	play(t, with{}, func(r *rig) {
		id := r.open()
		r.call("session/prompt", `{"sessionId":"`+id+`","prompt":[{"type":"text","text":"hi"}],"_meta":{"timeoutMs":null}}`)
	})
}
