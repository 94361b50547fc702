//go:build unix

package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bridge starts "berth bridge" in a daemon's world.
func (d *socketDaemon) bridge(t *testing.T, env []string, args ...string) *agentProcess {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"bridge", "--config-dir", d.world.config, "--data-dir", d.world.data}, args...)...)
	// The canaries among the variables are tokens that the daemon takes, too.
	clean := slices.DeleteFunc(cleanEnv(d.world), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(name, "_BRIDGE_TOKEN") || name == "BERTH_GATEWAY_TOKEN"
	})
	cmd.Env = append(clean, env...)
	p := begin(t, cmd)
	p.world = d.world
	return p
}

// TestBridge_Ending: however a bridge is told to end, what it has asked is
// answered, its session is let go of at once, and it is gone in time with
// status 0.
func TestBridge_Ending(t *testing.T) {
	t.Parallel()
	d := startSocketDaemonIn(t, (&scenario{model: endingModel}).prepare(t))
	for _, how := range []struct {
		name string
		do   func(*agentProcess)
	}{
		{"end of input", func(p *agentProcess) { p.in.Close() }},
		{"SIGTERM", func(p *agentProcess) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }},
	} {
		for _, state := range occupied {
			t.Run(how.name+" "+state.name, func(t *testing.T) {
				p := d.bridge(t, nil)
				p.initialize()
				id := p.newSession(d.world)
				if state.prompt != "" {
					p.request("p", "session/prompt", promptOf(id, state.prompt))
					p.await("the state", state.ready)
				}
				how.do(p)
				p.endsWith(0, 5*time.Second)
				if state.prompt != "" {
					if got := stopReason(p.answer("p")); got != "cancelled" {
						t.Errorf("the prompt was answered %s", got)
					}
				}
				if _, err := os.Stat(filepath.Join(d.world.work, "effect.txt")); err == nil {
					t.Error("a call ran that nobody allowed")
				}
				next := d.bridge(t, nil)
				next.initialize()
				if m := next.call("load", "session/load", `{"sessionId":"`+id+`","cwd":`+quoted(d.world.work)+`,"mcpServers":[]}`); m.Error != nil {
					t.Errorf("the session does not load: %s", m.Error)
				}
			})
		}
	}
}

// TestBridge_Token: where the token comes from, what a wrong one does, and that
// it is told to nobody.
func TestBridge_Token(t *testing.T) {
	t.Parallel()
	d := startSocketDaemon(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(d.token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := "wrong-" + d.token
	tests := []struct {
		name string
		env  []string
		args []string
		says string // on standard error
		good bool
	}{
		{"the daemon's own", nil, nil, "", true},
		{"a file", nil, []string{"--url", d.info.URL, "--token-file", file}, "", true},
		{"a variable", []string{"BERTH_GATEWAY_TOKEN=" + d.token}, []string{"--url", d.info.URL}, "", true},
		{"ZeroClaw's variable", []string{"ZEROCLAW_ACP_BRIDGE_TOKEN=" + d.token}, nil, "", true},
		{"a flag, with a warning", nil, []string{"--token", d.token}, "everybody on this machine can see --token", true},
		{"a wrong one", []string{"BERTH_ACP_BRIDGE_TOKEN=" + wrong}, nil, "refuses the token", false},
		{"a file that is empty", nil, []string{"--token-file", empty}, "is empty", false},
		{"a token that would go to another machine", nil, []string{"--url", "ws://192.0.2.1/acp", "--token-file", file}, "without TLS", false},
		{"a token that would go to another machine's Gateway", nil, []string{"--protocol", "openclaw", "--url", "ws://192.0.2.1", "--token-file", file}, "without TLS", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := d.bridge(t, tt.env, tt.args...)
			if tt.good {
				p.initialize()
				p.in.Close()
				p.endsWith(0, 5*time.Second)
			} else {
				p.endsWith(1, 10*time.Second)
				if m := p.rest(); len(m) > 0 {
					t.Errorf("standard output: %v", m)
				}
				if log := strings.TrimSpace(p.stderr.String()); strings.Contains(log, "\n") {
					t.Errorf("more than one line:\n%s", log)
				}
			}
			if log := p.stderr.String(); !strings.Contains(log, tt.says) || tt.says == "" && log != "" {
				t.Errorf("standard error: %s", log)
			}
			for _, secret := range []string{d.token, wrong} {
				if strings.Contains(p.stderr.String(), secret) {
					t.Error("standard error tells the token")
				}
			}
		})
	}
}
