package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// FuzzConfig feeds documents and one variable to Load. Whatever they hold,
// Load ends, refuses with places, never shows a secret, and what it accepts
// it lists as sound JSON.
func FuzzConfig(f *testing.F) {
	f.Add(everything, "BERTH_ACP__MAX_SESSIONS", "3")
	f.Add(canaries, "BERTH_PROVIDERS__OPENAI__API_KEY", "canary")
	f.Add("[acp]\nmax_sesions = 0\nbusy = 3", "BERTH_acp__busy", "")
	f.Add("[[profiles.default.deny]]\nrule = 'x'\n", "BERTH_PROFILES__DEFAULT__DENY", `[{rule="x"}]`)
	f.Add("[agents]\na = {model = 'offline/offline', skills = [[1]]}", "BERTH_AGENTS__A__MODEL", "x/y")
	f.Add("mcp_servers.\"a\".env.\"\" = \"canary\"", "BERTH_MCP_SERVERS__A__ENV__", "canary")
	f.Add("providers.a.models.\"\\u0000\".input_price = -inf", "BERTH____", "1")
	f.Fuzz(func(t *testing.T, doc, name, value string) {
		o := Options{ConfigDir: "/nowhere/cfg", Home: "/nowhere", Dir: "/nowhere", content: []byte(doc)}
		if !strings.ContainsAny(name, "=") {
			o.Env = []string{name + "=" + value}
		}
		c, err := Load(o)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || len(e.Problems) == 0 {
				t.Fatalf("an error without problems: %v", err)
			}
			for _, p := range e.Problems {
				if p.Origin.Layer == FromFile && p.Origin.At.Line < 0 || p.Message == "" {
					t.Fatalf("problem without a place or words: %+v", p)
				}
			}
			return
		}
		var b bytes.Buffer
		if err := writeSettings(&b, c.Settings(), true); err != nil || !json.Valid(b.Bytes()) {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
		if len(c.Agents) == 0 || c.Profiles["default"].Level == "" || c.ACP.MaxSessions < 1 {
			t.Fatalf("accepted, and not usable: %+v", c)
		}
		fmt.Fprintf(&b, "%+v", c)
		for _, s := range c.settings {
			secret, ok := s.value.(Secret)
			if !ok || secret.Ref() != "" || s.key.path == "mcp_servers.<name>.url" {
				continue
			}
			// Anything long enough not to stand there by chance.
			if v, _ := secret.Reveal(); len(v) > 8 && strings.Count(doc+value, v) == 1 && strings.Contains(b.String(), v) {
				t.Fatalf("%s is shown", tomlKey(s))
			}
		}
	})
}

func tomlKey(s *setting) string { return strings.Join(s.path, ".") }
