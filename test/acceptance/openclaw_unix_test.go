//go:build unix

package acceptance

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/openclaw/openclawtest"
)

// openClaw starts "berth bridge --protocol openclaw" in a world of its own.
func openClaw(t *testing.T, w world, env []string, args ...string) *agentProcess {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"bridge", "--protocol", "openclaw", "--config-dir", w.config, "--data-dir", w.data}, args...)...)
	for _, kv := range cleanEnv(w) {
		if name, _, _ := strings.Cut(kv, "="); !strings.HasSuffix(name, "_BRIDGE_TOKEN") && name != "BERTH_GATEWAY_TOKEN" {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	p := begin(t, cmd)
	p.world = w
	return p
}

// TestOpenClaw plays a turn with a tool and a permission request through the
// built program, over WebSockets with and without TLS.
func TestOpenClaw(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "TLS with a pin"}[secure], func(t *testing.T) {
			w := (&scenario{model: endingModel}).prepare(t)
			gw := openclawtest.New(openclawtest.Config{Token: "shared-secret", DeviceToken: "device-secret", Script: func(r *openclawtest.Run) {
				r.Say("First ", "this.")
				r.Exec("rm x", "allow-once", "deny")
				r.Say("Done.")
			}})
			defer gw.Close()
			s := httptest.NewUnstartedServer(gw.Handler())
			env := []string{"OPENCLAW_GATEWAY_TOKEN=shared-secret"}
			if secure {
				s.StartTLS()
				sum := sha256.Sum256(s.Certificate().Raw)
				env = append(env, "BERTH_BRIDGE__TLS_FINGERPRINT="+hex.EncodeToString(sum[:]))
			} else {
				s.Start()
			}
			defer s.Close()
			p := openClaw(t, w, env, "--url", strings.Replace(s.URL, "http", "ws", 1), "--verbose")
			p.initialize()
			id := p.newSession(w)
			p.request("p", "session/prompt", promptOf(id, "go"))
			ask := p.await("a permission request", func(m message) bool { return m.Method == "session/request_permission" })
			p.send(`{"jsonrpc":"2.0","id":` + string(ask.ID) + `,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`)
			if got := stopReason(p.answer("p")); got != "end_turn" {
				t.Errorf("the prompt was answered %s", got)
			}
			p.in.Close()
			p.endsWith(0, 5*time.Second)
			if says := p.stderr.String(); strings.Contains(says, "secret") || !strings.Contains(says, "connected to the gateway") {
				t.Errorf("standard error: %s", says)
			}
			info, err := os.Stat(filepath.Join(w.data, "openclaw", "device.json"))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the device's key: %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestOpenClaw_Ending: with what status the program ends, and what it says.
func TestOpenClaw_Ending(t *testing.T) {
	t.Parallel()
	gw := openclawtest.New(openclawtest.Config{Token: "shared-secret", Script: func(r *openclawtest.Run) { r.Say("half"); r.Hold(nil) }})
	defer gw.Close()
	s := httptest.NewServer(gw.Handler())
	defer s.Close()
	url := strings.Replace(s.URL, "http", "ws", 1)
	good := []string{"OPENCLAW_GATEWAY_TOKEN=shared-secret"}
	tests := []struct {
		name string
		env  []string
		args []string
		do   func(p *agentProcess)
		code int
		says string // on standard error
	}{
		{"end of input in a turn", good, []string{"--url", url}, func(p *agentProcess) { p.in.Close() }, 0, ""},
		{"SIGTERM in a turn", good, []string{"--url", url}, func(p *agentProcess) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }, 0, ""},
		{"a wrong token", []string{"OPENCLAW_GATEWAY_TOKEN=wrong-secret"}, []string{"--url", url}, nil, 1, "refuses the token"},
		{"no token", nil, []string{"--url", url}, nil, 1, "wants a token"},
		{"no gateway's address", good, []string{"--url", url + "/\x7f"}, nil, 1, "not a URL"},
		{"a socket file", good, []string{"--url", "unix:/x"}, nil, 1, "ws://"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := (&scenario{model: endingModel}).prepare(t)
			p := openClaw(t, w, tt.env, tt.args...)
			if tt.do != nil {
				p.initialize()
				p.request("p", "session/prompt", promptOf(p.newSession(w), "go"))
				p.await("text", func(m message) bool { return strings.Contains(string(m.Params), "half") })
				tt.do(p)
			}
			p.endsWith(tt.code, 8*time.Second)
			if tt.do != nil {
				if got := stopReason(p.answer("p")); got != "cancelled" {
					t.Errorf("the prompt was answered %s", got)
				}
				if len(gw.Requests("chat.abort")) == 0 {
					t.Error("the gateway was not told")
				}
			}
			said := strings.TrimSpace(p.stderr.String())
			if !strings.Contains(said, tt.says) || strings.Count(said, "\n") > 0 || strings.Contains(said, "secret") {
				t.Errorf("standard error: %q, want one line with %q", said, tt.says)
			}
		})
	}
}
