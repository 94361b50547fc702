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

	"github.com/berth-dev/berth/bootstrap"
)

const restartModel = `--- next when "first"
text "Hello."
call shell {"command":"echo one >> log.txt"}
--- next when "first"
text "Now "
call write_file {"path":"made.txt","content":"made\n"}
--- next always
text "Still here."
`

// TestBridge_Restarts: a daemon that is killed or told to end in the middle of
// a turn, with a question open, and started anew. The editor is answered once,
// its question is taken back, the session goes on, and nothing ran twice.
func TestBridge_Restarts(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := (&scenario{model: restartModel, config: "[gateway]\ndrain_secs = 0\n"}).prepare(t)
			d := &socketDaemon{world: w, log: &logBuffer{}}
			first := beginDaemon(t, d)
			p := d.bridge(t, nil, "--verbose")
			p.initialize()
			id := p.newSession(w)
			if got := stopReason(p.call("before", "session/prompt", promptOf(id, "hello"))); got != "end_turn" {
				t.Fatalf("the turn before was answered %s", got)
			}
			p.request("p", "session/prompt", promptOf(id, "first"))
			asks := func(m message) bool { return m.Method == "session/request_permission" }
			q := p.await("the first question", asks)
			p.send(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"outcome":{"outcome":"selected","optionId":"allow-once"}}}`)
			q = p.await("the second question", asks)
			if err := first.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			<-whenEnded(first)
			beginDaemon(t, d)
			p.await("that the question is taken back", func(m message) bool {
				return m.Method == "$/cancel_request" && strings.Contains(string(m.Params), string(q.ID))
			})
			got := stopReason(p.answer("p"))
			if !strings.Contains(got, "CONNECTION_LOST") && !strings.Contains(got, "interrupted") && got != "cancelled" {
				t.Errorf("the prompt was answered %s", got)
			}
			if got := stopReason(p.call("after", "session/prompt", promptOf(id, "again"))); got != "end_turn" {
				t.Errorf("the turn after was answered %s", got)
			}
			p.in.Close()
			p.endsWith(0, patience)
			for _, m := range p.rest() {
				if m.Method == "" {
					t.Errorf("one more answer: %s %s %s", m.ID, m.Result, m.Error)
				}
			}
			if log, err := os.ReadFile(filepath.Join(w.work, "log.txt")); string(log) != "one\n" {
				t.Errorf("the command's log holds %q, %v", log, err)
			}
			if _, err := os.Stat(filepath.Join(w.work, "made.txt")); err == nil {
				t.Error("a file was made that nobody allowed")
			}
		})
	}
}

// beginDaemon starts a daemon that may be killed, and waits until it listens.
func beginDaemon(t *testing.T, d *socketDaemon, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, append([]string{"daemon", "--listen", "127.0.0.1:0", "--config-dir", d.world.config, "--data-dir", d.world.data}, args...)...)
	cmd.Env, cmd.Stderr = append(cleanEnv(d.world), "BERTH_store__required=true"), d.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			<-whenEnded(cmd)
		}
	})
	for limit := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) { // its file appears
		if info, running, err := bootstrap.FindDaemon(d.world.data); err == nil && running && info.PID == cmd.Process.Pid {
			d.info = info
			return cmd
		}
		if time.Now().After(limit) {
			t.Fatalf("the daemon does not listen:\n%s", d.log)
		}
	}
}
