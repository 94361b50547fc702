//go:build unix

package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestClient_Gateway: "berth client --url" talks to a gateway's agent, and says
// in one line why it cannot.
func TestClient_Gateway(t *testing.T) {
	t.Parallel()
	d := startSocketDaemonIn(t, (&scenario{model: endingModel}).prepare(t))
	file := func(name, token string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	right, wrong := file("right", d.token), file("wrong", "wrong-"+d.token)
	owner := d.bridge(t, nil)
	owner.initialize()
	taken := owner.newSession(d.world)
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		prints string // on standard output
		says   string // on standard error
	}{
		{"a token", []string{"--url", d.info.URL, "--token-file", right, "--cwd", d.world.work}, 0, "Idle.", ""},
		{"this user's daemon", []string{"--url", d.info.URL, "--cwd", d.world.work}, 0, "Idle.", ""},
		{"a wrong token", []string{"--url", d.info.URL, "--token-file", wrong}, 1, "", "No connection: the gateway at "},
		{"nobody there", []string{"--url", "ws://127.0.0.1:1", "--token-file", right}, 1, "", "No connection: no gateway for 5s"},
		{"no such session", []string{"--url", d.info.URL, "--session", "none", "--cwd", d.world.work}, 1, "", "none"},
		{"an agent besides", []string{"--url", d.info.URL, "--", binary, "acp"}, 2, "", "give one of them"},
		{"a model", []string{"--url", d.info.URL, "--model", "play/script"}, 2, "", "use --agent"},
		{"a session that another has", []string{"--url", d.info.URL, "--session", taken, "--cwd", d.world.work}, 1, "", "--take-over takes it"},
		{"no session to take over", []string{"--url", d.info.URL, "--take-over"}, 2, "", "--session"},
		{"nobody to take over from", []string{"--session", taken, "--take-over"}, 2, "", "--url"},
		{"a token for nobody", []string{"--token-file", right}, 2, "", "--url"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.Command(binary, append([]string{"client", "-p", "hello", "--config-dir", d.world.config, "--data-dir", d.world.data}, tt.args...)...)
			var out, said strings.Builder
			cmd.Env, cmd.Stdout, cmd.Stderr = cleanEnv(d.world), &out, &said
			_ = cmd.Run()
			if got := cmd.ProcessState.ExitCode(); got != tt.code {
				t.Errorf("code %d, want %d", got, tt.code)
			}
			if !strings.Contains(out.String(), tt.prints) {
				t.Errorf("standard output: %q", out.String())
			}
			if log := said.String(); !strings.Contains(log, tt.says) || tt.says == "" && log != "" {
				t.Errorf("standard error: %q", log)
			}
			if strings.Contains(said.String(), d.token) {
				t.Error("standard error tells the token")
			}
		})
	}
	t.Run("a session that is taken over", func(t *testing.T) {
		cmd := exec.Command(binary, "client", "-p", "hello", "--config-dir", d.world.config, "--data-dir", d.world.data,
			"--url", d.info.URL, "--session", taken, "--take-over", "--cwd", d.world.work)
		cmd.Env = cleanEnv(d.world)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Idle.") {
			t.Errorf("%v: %s", err, out)
		}
	})
}
