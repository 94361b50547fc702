//go:build unix

package acceptance

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/ws"
	"github.com/berth-dev/berth/bootstrap"
)

// berth runs a command of the binary in the daemon's directories.
func (d *socketDaemon) berth(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary, append(args, "--config-dir", d.world.config, "--data-dir", d.world.data)...)
	cmd.Env = cleanEnv(d.world)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("berth %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// TestDaemon_Revocation: a token that is made while the daemon runs is good
// within seconds, and one that is revoked loses its connection and any other.
func TestDaemon_Revocation(t *testing.T) {
	t.Parallel()
	d := startSocketDaemon(t)
	dial := func(token string) (*ws.Conn, error) {
		return ws.Dial(t.Context(), ws.DialConfig{URL: d.info.URL, Token: token})
	}
	old, err := dial(d.token)
	if err != nil {
		t.Fatal(err)
	}
	d.berth(t, "token", "revoke", "test")
	revoked := time.Now()
	var closed *ws.ClosedError
	if _, err := old.Read(); !errors.As(err, &closed) || closed.Code != ws.ClosePolicy || closed.Reason != "the token was revoked" {
		t.Errorf("the open connection read %v", err)
	}
	if took := time.Since(revoked); took > 5*time.Second+slack {
		t.Errorf("it was closed after %v", took)
	}
	<-old.Gone()
	var refused *ws.DialError
	if _, err := dial(d.token); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		t.Errorf("a new connection: %v", err)
	}
	token := d.berth(t, "token", "create", "--name", "test")
	for limit := time.Now().Add(patience); ; {
		c, err := dial(token)
		if err == nil {
			_ = c.Close()
			<-c.Gone()
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("the new token: %v", err)
		}
		time.Sleep(100 * time.Millisecond) // the file is looked at from time to time
	}
	if list := d.berth(t, "token", "list"); !strings.Contains(list, "test") || strings.Contains(list, token) {
		t.Errorf("the list is %s", list)
	}
	for _, secret := range []string{token, d.token} {
		if strings.Contains(d.log.String(), secret) {
			t.Error("the log tells a token")
		}
	}
}

// TestDaemon_HandedOver: sockets of a service manager are served, and left in
// its hands.
func TestDaemon_HandedOver(t *testing.T) {
	t.Parallel()
	w := (&scenario{}).prepare(t)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	path := filepath.Join(w.config, "s")
	unix, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	start := func(files ...*os.File) (*exec.Cmd, *logBuffer) {
		log := &logBuffer{}
		cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf(`LISTEN_PID=$$ LISTEN_FDS=%d; export LISTEN_PID LISTEN_FDS; exec "$0" "$@"`, len(files)),
			binary, "daemon", "--config-dir", w.config, "--data-dir", w.data)
		cmd.Env, cmd.Stderr, cmd.ExtraFiles = cleanEnv(w), log, files
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, log
	}
	file := func(l interface{ File() (*os.File, error) }) *os.File {
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	cmd, log := start(file(tcp.(*net.TCPListener)), file(unix))
	ended := whenEnded(cmd)
	token := ""
	for limit := time.Now().Add(patience); token == "" && time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		token, _ = bootstrap.BridgeToken(w.data)
	}
	for _, url := range []string{"ws://" + tcp.Addr().String() + "/acp", "unix:" + path} {
		c, err := ws.Dial(t.Context(), ws.DialConfig{URL: url, Token: token})
		if err != nil {
			t.Fatalf("%s: %v\n%s", url, err, log)
		}
		_ = c.Close()
		<-c.Gone()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ended
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ended with code %d:\n%s", code, log)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the socket of the service manager: %v", err)
	}

	open, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	cmd, log = start(file(open.(*net.TCPListener)))
	<-whenEnded(cmd)
	if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(log.String(), "without TLS") {
		t.Errorf("one that others can reach: code %d\n%s", code, log)
	}
}

// TestDaemon_Signals: it ends in an orderly way with each of the signals that
// ask for it, and leaves nothing.
func TestDaemon_Signals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := (&scenario{}).prepare(t)
			log := &logBuffer{}
			cmd := exec.Command(binary, "daemon", "--listen", "127.0.0.1:0", "--config-dir", w.config, "--data-dir", w.data)
			cmd.Env, cmd.Stderr = cleanEnv(w), log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := whenEnded(cmd)
			var info bootstrap.DaemonInfo
			for limit := time.Now().Add(patience); info.URL == "" && time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
				info, _, _ = bootstrap.FindDaemon(w.data)
			}
			token, err := bootstrap.BridgeToken(w.data)
			if err != nil {
				t.Fatal(err)
			}
			c, err := ws.Dial(t.Context(), ws.DialConfig{URL: info.URL, Token: token})
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			var closed *ws.ClosedError
			if _, err := c.Read(); !errors.As(err, &closed) || closed.Code != ws.CloseRestart {
				t.Errorf("the client read %v", err)
			}
			<-c.Gone()
			select {
			case <-ended:
			case <-time.After(patience):
				_ = cmd.Process.Kill()
				t.Fatal("it does not end")
			}
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				t.Errorf("it ended with code %d:\n%s", code, log)
			}
			entries, err := os.ReadDir(w.data)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if slices.Contains([]string{"daemon.json", "bridge-token"}, e.Name()) {
					t.Errorf("it left %s", e.Name())
				}
			}
		})
	}
}
