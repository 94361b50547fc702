//go:build unix

package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// apart is a "berth client" of a gateway whose daemon is killed in mid-turn.
type apart struct {
	t     *testing.T
	d     *socketDaemon
	url   string
	cmd   *exec.Cmd
	ended <-chan struct{}
	out   logBuffer
	said  logBuffer // on standard error
}

// newApart brings a client into a turn that hangs, at a daemon on a socket that
// the next daemon can have, and kills the daemon. token is the file of its own
// token; "" leaves it to that of this user's daemon.
func newApart(t *testing.T, token string, args ...string) *apart {
	t.Helper()
	dir, err := os.MkdirTemp("", "apart") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &apart{t: t, url: "unix:" + filepath.Join(dir, "s"), d: &socketDaemon{world: (&scenario{model: endingModel}).prepare(t), log: &logBuffer{}}}
	a.d.token = a.d.berth(t, "token", "create", "--name", "test")
	if token != "" {
		if err := os.WriteFile(token, []byte(a.d.token), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--token-file", token)
	}
	daemon := beginDaemon(t, a.d, "--listen", a.url)
	a.cmd = exec.Command(binary, append([]string{
		"client", "-p", "hang", "--url", a.url, "--cwd", a.d.world.work,
		"--config-dir", a.d.world.config, "--data-dir", a.d.world.data,
	}, args...)...)
	a.cmd.Env, a.cmd.Stdout, a.cmd.Stderr = cleanEnv(a.d.world), &a.out, &a.said
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	a.ended = whenEnded(a.cmd)
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		<-a.ended
	})
	a.await(&a.out, "Hanging.")
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-whenEnded(daemon)
	a.await(&a.said, "· the connection to the gateway is lost")
	return a
}

// await waits until the client has said something.
func (a *apart) await(b *logBuffer, what string) {
	a.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !strings.Contains(b.String(), what) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-a.ended:
			if !strings.Contains(b.String(), what) {
				a.t.Fatalf("it ended without %q:\n%s%s", what, &a.out, &a.said)
			}
		case <-limit.C:
			a.t.Fatalf("it does not say %q:\n%s%s", what, &a.out, &a.said)
		}
	}
}

// end waits for the client to end and returns what it said last.
func (a *apart) end(code int) string {
	a.t.Helper()
	select {
	case <-a.ended:
	case <-time.After(patience):
		a.t.Fatalf("it does not end:\n%s", &a.said)
	}
	if got := a.cmd.ProcessState.ExitCode(); got != code {
		a.t.Errorf("code %d, want %d:\n%s", got, code, &a.said)
	}
	if strings.Contains(a.said.String(), a.d.token) {
		a.t.Error("standard error tells the token")
	}
	return a.said.String()
}

// goOn runs the command that standard error ends with.
func (a *apart) goOn(said string) {
	a.t.Helper()
	_, command, ok := strings.Cut(said, "go on with: berth client ")
	if !ok {
		_, command, ok = strings.Cut(said, "go on later with: berth client ")
	}
	command, _, _ = strings.Cut(command, "\n")
	if !ok || !strings.Contains(command, "--session ") || strings.Count(said, "--session ") != 1 {
		a.t.Fatalf("how to go on is not told once:\n%s", said)
	}
	again := exec.Command("/bin/sh", "-c", `"$0" client -p again `+command, binary)
	again.Env = cleanEnv(a.d.world)
	if out, err := again.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "> hang\n") || !strings.HasSuffix(string(out), "\nIdle.\n") {
		a.t.Errorf("%s: %v:\n%s", command, err, out)
	}
}

// TestClient_Outage: a person at "berth client --url" is told at once that the
// gateway is lost, and then that it is back or given up, and how to go on.
func TestClient_Outage(t *testing.T) {
	t.Parallel()
	t.Run("started anew", func(t *testing.T) {
		t.Parallel()
		a := newApart(t, "")
		beginDaemon(t, a.d, "--listen", a.url)
		said := a.end(1)
		lines := strings.Split(strings.TrimSpace(said), "\n")
		if len(lines) != 3 || lines[1] != "· the connection to the gateway is back" || !strings.HasPrefix(lines[2], "berth: ") {
			t.Errorf("standard error:\n%s", said)
		}
		a.goOn(said)
	})
	t.Run("given up", func(t *testing.T) {
		t.Parallel()
		token := filepath.Join(t.TempDir(), "token")
		a := newApart(t, token)
		a.d.berth(t, "token", "revoke", "test")
		beginDaemon(t, a.d, "--listen", a.url)
		said := a.end(1)
		if lines := strings.Split(said, "\n"); !strings.HasPrefix(lines[1], "· the gateway is given up: the gateway at ") {
			t.Errorf("standard error:\n%s", said)
		}
		if err := os.WriteFile(token, []byte(a.d.berth(t, "token", "create", "--name", "test")), 0o600); err != nil {
			t.Fatal(err)
		}
		a.goOn(said)
	})
	t.Run("interrupted twice", func(t *testing.T) {
		t.Parallel()
		a := newApart(t, "", "--verbose")
		if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		a.await(&a.said, `> {"jsonrpc":"2.0","method":"session/cancel"`)
		if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		a.end(-1)
		if s, _ := a.cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signal() != syscall.SIGINT {
			t.Errorf("it ended with %v", a.cmd.ProcessState)
		}
	})
}
