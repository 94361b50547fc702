package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestEnviron_ShowsNoKeys: the agent's environment, as the kernel shows it to
// every process of the user, has lost the keys once the agent has begun, and
// the agent still has them.
func TestEnviron_ShowsNoKeys(t *testing.T) {
	g := newGate(t, newCanary("CANARY_OF_A_REFERENCE", "%s").value)
	w := (&scenario{}).prepare(t)
	config := fmt.Sprintf("[providers.gated]\ntype = \"openai-compatible\"\nbase_url = \"%s/v1\"\napi_key = \"env:CANARY_OF_A_REFERENCE\"\n[agents.default]\nmodel = \"gated/m\"\n", g.URL)
	if err := os.WriteFile(filepath.Join(w.config, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, w, nil, nil)
	p.initialize()
	shown, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "BERTH_GATEWAY_TOKEN", "CANARY_OF_A_REFERENCE"} {
		c := newCanary(name, "%s")
		if !bytes.Contains(shown, []byte(name+"=")) || bytes.Contains(shown, []byte(c.core)) {
			t.Errorf("%s is shown with its value, or was not there", name)
		}
	}
	if !bytes.Contains(shown, []byte("HOME="+w.home)) {
		t.Error("the rest of the environment is gone")
	}
	if m := p.call("p", "session/prompt", promptOf(p.newSession(w), "hello")); stopReason(m) != "end_turn" {
		t.Errorf("the agent lost its key: %s%s", m.Result, m.Error)
	}
}
