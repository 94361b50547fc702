//go:build unix

package exec

import (
	"bytes"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

var tokens atomic.Int64

// token is a number that only the processes of one case have in their
// arguments: as a duration it is more than half an hour.
func token() string {
	return fmt.Sprintf("%d.%06d", 2000+tokens.Add(1), os.Getpid()%1_000_000)
}

// alive returns the processes that have the token in their arguments.
func alive(t testing.TB, token string) []string {
	t.Helper()
	var list []string
	if runtime.GOOS != "linux" {
		raw, err := osexec.Command("ps", "-axo", "pid=,args=").Output()
		if err != nil {
			t.Skipf("cannot list processes: %v", err)
		}
		for line := range strings.Lines(string(raw)) {
			if strings.Contains(line, token) {
				list = append(list, strings.TrimSpace(line))
			}
		}
		return list
	}
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range dirs {
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(token)) {
			list = append(list, path+" "+strings.ReplaceAll(string(raw), "\x00", " "))
		}
	}
	return list
}

// clinging are commands that start something that wants to stay: %s is it.
func clinging() map[string]string {
	return map[string]string{
		"in the background":    `%s & echo ok`,
		"of a child":           `(%s &); echo ok`,
		"of a grandchild":      `( (%s &) & ); echo ok`,
		"in a session":         `setsid %s & echo ok`,
		"as a daemon":          `setsid -f %s; echo ok`,
		"without hangups":      `nohup %s >/dev/null 2>&1 & echo ok`,
		"of a shell that ends": `sh -c '%s & exec true'; echo ok`,
		"of nobody":            `bash -c 'setsid bash -c "(%s &)" & disown' ; echo ok`,
		"without environment":  `env -i setsid -f %s; echo ok`,
		"silent":               `setsid %s </dev/null >/dev/null 2>&1 & echo ok`,
	}
}

// stayers are programs that want to stay: their first argument says how, the
// second is the token.
func stayers() map[string]string {
	return map[string]string{
		"sleeps":          `sleep "$1"`,
		"ignores signals": `trap "" TERM HUP INT QUIT; while :; do sleep "$1"; done`,
		"stops itself":    `kill -STOP $$; sleep "$1"`,
		"writes":          `while :; do echo still here; sleep 0.02; done`,
		"starts others":   `trap "" TERM HUP; while :; do sleep "$1" & sleep 0.01; done`,
	}
}

// stayer writes the program and returns the words that run it.
func (r *rig) stayer(text, tok string) string {
	r.write("ws/stay.sh", text+"\n")
	return "bash " + r.at("ws/stay.sh") + " " + tok
}

func TestNothingStays(t *testing.T) {
	for how, line := range clinging() {
		for what, text := range stayers() {
			t.Run(what+" "+how, func(t *testing.T) {
				t.Parallel()
				if runtime.GOOS != "linux" && strings.Contains(line, "setsid") {
					t.Skip("only Linux gives orphans to the helper")
				}
				r := newRig(t).open()
				tok := token()
				res := r.shell(fmt.Sprintf(line, r.stayer(text, tok)))
				if res.Failed || !strings.Contains(out(res), "ok\n") || *r.raw(res).ExitCode != 0 {
					t.Errorf("the call: %q", res.Text)
				}
				if took := r.raw(res).DurationMS; took > 10_000 {
					t.Errorf("the call waited for what the command left behind, %d ms", took)
				}
				if err := r.set.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if left := alive(t, tok); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	}
}

// endless are commands that do not end by themselves, or not alone.
func endless() map[string]string {
	return map[string]string{
		"a pipeline":            `yes TOK | sleep TOK`,
		"ignores TERM":          `trap "" TERM INT HUP; while :; do sleep TOK; done`,
		"is stopped":            `kill -STOP $$; sleep TOK`,
		"stops its helper":      `[ $PPID != 1 ] && kill -STOP $PPID; sleep TOK`,
		"kills its helper":      `kill -KILL $PPID; sleep TOK`,
		"starts daemons":        `trap "" TERM; while :; do setsid -f sleep TOK; sleep 0.005; done`,
		"starts them on TERM":   `trap "setsid -f sleep TOK" TERM; while :; do sleep 0.01; done; : TOK`,
		"writes without an end": `trap "" TERM; yes TOK`,
		"closed its streams":    `exec >/dev/null 2>&1; sleep TOK`,
	}
}

// ends are the ways to make a command end.
func ends() map[string]func(r *rig, line string) domain.ToolResult {
	return map[string]func(r *rig, line string) domain.ToolResult{
		"by time": func(r *rig, line string) domain.ToolResult {
			return r.run("shell", args{"command": line, "timeout_secs": 1})
		},
		"by a cancel": func(r *rig, line string) domain.ToolResult {
			ctx, cancel := context.WithCancelCause(context.Background())
			done := r.underWay(ctx, line)
			cancel(domain.CancelledByClient)
			return <-done
		},
		"by the session": func(r *rig, line string) domain.ToolResult {
			done := r.underWay(context.Background(), line)
			if err := r.set.Close(); err != nil {
				r.t.Errorf("Close: %v", err)
			}
			return <-done
		},
	}
}

// underWay starts a command and returns when it has run for a moment.
func (r *rig) underWay(ctx context.Context, line string) <-chan domain.ToolResult {
	r.t.Helper()
	done := make(chan domain.ToolResult, 1)
	go func() { // ends with the command
		defer close(done)
		done <- r.runCtx(ctx, "shell", args{"command": line}, func(domain.ToolProgress) {})
	}()
	r.eventually("a command runs", func() bool {
		ts := r.set.(*toolset)
		ts.mu.Lock()
		defer ts.mu.Unlock()
		return len(ts.live) == 1
	})
	time.Sleep(300 * time.Millisecond)
	return done
}

// TestEnded ends commands that do not want to, in each way there is.
func TestEnded(t *testing.T) {
	for what, command := range endless() {
		for how, end := range ends() {
			t.Run(what+" "+how, func(t *testing.T) {
				t.Parallel()
				if runtime.GOOS != "linux" && strings.Contains(command, "setsid") {
					t.Skip("only Linux gives orphans to the helper")
				}
				r := newRig(t).open()
				tok := token()
				res := end(r, strings.ReplaceAll(command, "TOK", tok))
				if !res.Failed && what != "kills its helper" {
					t.Errorf("the call did not fail: %q", cutAt(res.Text, 300))
				}
				if err := r.set.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
				if left := alive(t, tok); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	}
}

// hostMode makes the test binary a host that runs a command and is killed.
const hostMode = "BERTH_TEST_HOST"

// TestHost is the host of TestHostKilled; alone it does nothing.
func TestHost(t *testing.T) {
	line := os.Getenv(hostMode)
	if line == "" {
		t.Skip("is run by TestHostKilled")
	}
	newRig(t).open().shell(line)
}

func TestHostKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux gives orphans to the helper")
	}
	for name, line := range map[string]string{
		"a plain command": `echo ready >READY; sleep TOK`,
		"ignores signals": `trap "" TERM HUP; echo ready >READY; while :; do sleep TOK; done`,
		"daemons":         `for i in 1 2 3 4 5 6 7 8 9 10; do setsid -f sleep TOK; done; echo ready >READY; sleep TOK`,
		"is stopped":      `echo ready >READY; kill -STOP $$; sleep TOK`,
		"starts more":     `echo ready >READY; while :; do setsid -f sleep TOK; sleep 0.01; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tok := token()
			ready := filepath.Join(t.TempDir(), "ready")
			host := osexec.Command(os.Args[0], "-test.run=^TestHost$")
			host.Env = append(os.Environ(), hostMode+"="+strings.ReplaceAll(strings.ReplaceAll(line, "READY", ready), "TOK", tok))
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			r := &rig{t: t}
			r.eventually("the command is ready", func() bool {
				_, err := os.Stat(ready)
				return err == nil
			})
			if len(alive(t, tok)) == 0 {
				t.Error("the command is not seen, so its end proves nothing")
			}
			if err := host.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = host.Wait() // it was killed
			r.eventually("nothing is left", func() bool { return len(alive(t, tok)) == 0 })
		})
	}
}

// TestWithoutHelper does what can be done where nothing adopts orphans.
func TestWithoutHelper(t *testing.T) {
	for name, line := range map[string]string{
		"in the background": `sleep TOK & echo ok`,
		"of a child":        `(sleep TOK &); echo ok`,
		"stops itself":      `(kill -STOP $BASHPID; sleep TOK) & echo ok`,
		"ignores signals":   `(trap "" TERM HUP; while :; do sleep TOK; done) & echo ok`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.conf.Confiner = Plain{}
			r.open()
			tok := token()
			res := r.shell(strings.ReplaceAll(line, "TOK", tok))
			res2 := r.shell("exit 7")
			if res.Failed || !strings.Contains(out(res), "ok") || *r.raw(res2).ExitCode != 7 {
				t.Errorf("%q %q", res.Text, res2.Text)
			}
			if err := r.set.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if left := alive(t, tok); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
