//go:build unix

package exec

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
	"github.com/berth-dev/berth/core/ports/porttest"
)

// state is what a call could change: the files of the tree.
func state(t testing.TB, r *rig) string {
	t.Helper()
	var b strings.Builder
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s/%s %s %d\n", dir, e.Name(), info.Mode(), info.Size())
			if e.IsDir() {
				walk(dir + "/" + e.Name())
			}
		}
	}
	walk(r.base)
	return b.String()
}

func TestTools(t *testing.T) {
	wrong := map[string]map[string]string{
		"shell": {
			"no command": `{}`, "an empty one": `{"command":"  \n"}`, "a number": `{"command":1}`, "a list": `{"command":["ls"]}`, "null": `{"command":null}`,
			"no time": `{"command":"ls","timeout_secs":0}`, "too long": `{"command":"ls","timeout_secs":3601}`, "half a second": `{"command":"ls","timeout_secs":0.5}`,
			"a word for time": `{"command":"ls","timeout_secs":"soon"}`, "a word for a flag": `{"command":"ls","background":"maybe"}`,
			"outside": `{"command":"ls","cwd":"../out"}`, "no such directory": `{"command":"ls","cwd":"none"}`, "more after it": `{"command":"ls"}{}`,
			"twice": `{"command":"ls","cmd":"ls"}`,
		},
		"shell_output": {"no such job": `{"job":"99"}`, "a name": `{"job":"x"}`, "waits too long": `{"job":"1","wait_secs":301}`, "before the start": `{"job":"1","since":-1}`},
		"shell_kill":   {"no job": `{}`, "no such job": `{"job":"99"}`, "an empty one": `{"job":""}`},
	}
	good := map[string]string{
		"shell": `{"command":"echo hello >made; echo hello"}`, "shell_output": `{"job":"1"}`, "shell_kill": `{"job":"1"}`,
	}
	for name := range good {
		t.Run(name, func(t *testing.T) {
			porttest.Tool(porttest.T(t), porttest.ToolHarness{Open: func(porttest.TB) porttest.ToolFixture {
				r := newRig(t).open()
				if name != "shell" {
					if res := r.run("shell", args{"command": "echo hello; exec sleep 3000", "background": true}); res.Failed {
						t.Fatal(res.Text)
					}
				}
				started := make(chan struct{})
				f := porttest.ToolFixture{
					Tool: r.tools[name], Wrong: wrong[name], State: func() string { return state(t, r) }, Started: started,
					Call: domain.ToolCall{Session: r.session.ID, Turn: "t", ID: "c", Name: name, Args: []byte(good[name])},
				}
				stuck := f.Call
				stuck.ID = "stuck"
				switch name {
				case "shell":
					stuck.Args = []byte(`{"command":"trap '' TERM; touch started; sleep 3000"}`)
					go func() { // ends with the wait's limit or with the file
						defer close(started)
						for range 4000 {
							if _, err := os.Stat(r.at("ws/started")); err == nil {
								return
							}
							time.Sleep(5 * time.Millisecond)
						}
					}()
					if !strings.HasSuffix(t.Name(), "stuck") {
						f.Stuck = &stuck
					}
				case "shell_output":
					stuck.Args = []byte(`{"job":"1","wait_secs":300}`)
					f.Stuck = &stuck
					close(started)
				}
				return f
			}})
		})
	}
}

func TestJobs(t *testing.T) {
	r := newRig(t).open()
	if res := r.shell("mkfifo go1 go2"); res.Failed {
		t.Fatal(res.Text)
	}
	res := r.run("shell", args{"command": "echo one; read x <go1; echo two; read x <go2; exit 3", "background": true})
	f := r.raw(res)
	if res.Failed || f.Job != "1" || !f.Running || f.ExitCode != nil || !strings.HasPrefix(res.Text, "[job 1 is running") {
		t.Fatalf("%q %s", res.Text, res.RawOutput)
	}
	first := r.run("shell_output", args{"job": "1", "wait_secs": 20, "since": 0})
	if !strings.Contains(first.Text, "\none\n") || !strings.Contains(statusOf(first), "has been running") || !strings.Contains(statusOf(first), "since: 4]") {
		t.Fatalf("%q", first.Text)
	}
	if res := r.shell("echo >go1"); res.Failed {
		t.Fatal(res.Text)
	}
	second := r.run("shell_output", args{"job": 1, "wait_secs": 20, "since": 4})
	if out(second) != "two\n" || !strings.Contains(statusOf(second), "since: 8]") {
		t.Errorf("%q", second.Text)
	}
	if res := r.shell("echo >go2"); res.Failed {
		t.Fatal(res.Text)
	}
	last := r.run("shell_output", args{"job": "job-1", "wait_secs": 20})
	if f := r.raw(last); last.Failed || f.Running || f.ExitCode == nil || *f.ExitCode != 3 || out(last) != "one\ntwo\n" || !strings.HasPrefix(last.Text, "[job 1: exit code 3") {
		t.Errorf("%q %s", last.Text, last.RawOutput)
	}
	if list := r.run("shell_output", args{}); !strings.Contains(list.Text, "job 1: exit code 3") || !strings.Contains(list.Text, "echo one; read x") {
		t.Errorf("%q", list.Text)
	}
	if res := r.run("shell_kill", args{"job": "1"}); res.Failed || !strings.HasPrefix(res.Text, "[it had ended before]") {
		t.Errorf("%q", res.Text)
	}
}

func TestJobThatFails(t *testing.T) {
	r := newRig(t)
	r.conf.settle = time.Minute // else a slow machine is faster than it fails
	r.open()
	res := r.run("shell", args{"command": "echo no such port >&2; exit 1", "background": true})
	if f := r.raw(res); !res.Failed || f.Running || *f.ExitCode != 1 || !strings.Contains(res.Text, "no such port") {
		t.Errorf("%q %s", res.Text, res.RawOutput)
	}
}

func TestJobKilled(t *testing.T) {
	for name, line := range map[string]string{
		"ends":            `echo up; exec sleep TOK`,
		"ends in order":   `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done; : TOK`,
		"does not listen": `trap '' TERM; echo up; while :; do sleep TOK; done`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).open()
			tok := token()
			r.run("shell", args{"command": strings.ReplaceAll(line, "TOK", tok), "background": true})
			if len(alive(t, tok)) == 0 {
				t.Fatal("it does not run")
			}
			r.run("shell_output", args{"job": "1", "wait_secs": 60, "since": 0}) // it is up
			res := r.run("shell_kill", args{"job": "1"})
			if res.Failed || !strings.Contains(res.Text, "up\n") || !strings.Contains(statusOf(res), "ended on request") || r.raw(res).Running {
				t.Errorf("%q", res.Text)
			}
			if name == "ends in order" && !strings.Contains(res.Text, "bye\n") {
				t.Errorf("it was not asked first: %q", res.Text)
			}
			r.eventually("nothing is left", func() bool { return len(alive(t, tok)) == 0 })
		})
	}
}

// TestJobsStay: a background job outlives its call and a cancelled turn, and
// ends with the session.
func TestJobsStay(t *testing.T) {
	r := newRig(t).open()
	tok := token()
	ctx, cancel := context.WithCancelCause(context.Background())
	r.runCtx(ctx, "shell", args{"command": "trap '' TERM; (setsid -f sleep " + tok + "); while :; do sleep " + tok + "; done", "background": true}, func(domain.ToolProgress) {})
	cancel(domain.CancelledByClient)
	if res := r.shell("true"); res.Failed {
		t.Error(res.Text)
	}
	r.eventually("it runs, and what it started", func() bool { return len(alive(t, tok)) >= 3 })
	if err := r.set.Close(); err != nil {
		t.Error(err)
	}
	if left := alive(t, tok); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	p := r.prepare("shell", args{"command": "touch late"})
	if res, err := p.Run(context.Background(), func(domain.ToolProgress) {}); err != nil || !res.Failed {
		t.Errorf("after Close: %+v %v", res, err)
	}
	_ = p.Close()
	if _, err := os.Stat(r.at("ws/late")); err == nil {
		t.Error("it ran after Close")
	}
}

func TestTooManyJobs(t *testing.T) {
	r := newRig(t).open()
	for i := range maxJobs {
		if res := r.run("shell", args{"command": "exec sleep 3000", "background": true}); res.Failed {
			t.Fatalf("%d: %s", i, res.Text)
		}
	}
	res := r.run("shell", args{"command": "touch ninth", "background": true})
	if !res.Failed || !strings.Contains(res.Text, "shell_kill") {
		t.Errorf("%q", res.Text)
	}
	if _, err := os.Stat(r.at("ws/ninth")); err == nil {
		t.Error("it ran")
	}
	r.run("shell_kill", args{"job": "3"})
	if res := r.run("shell", args{"command": "exec sleep 3000", "background": true}); res.Failed || r.raw(res).Job != "9" {
		t.Errorf("%q", res.Text)
	}
}

func TestEndedJobsAreForgotten(t *testing.T) {
	r := newRig(t).open()
	for range maxEnded + 5 {
		res := r.run("shell", args{"command": "true", "background": true})
		r.run("shell_output", args{"job": r.raw(res).Job, "wait_secs": 60})
	}
	ts := r.set.(*toolset)
	ts.mu.Lock()
	jobs, live := len(ts.jobs), len(ts.live)
	ts.mu.Unlock()
	if jobs > maxEnded+1 || live > maxJobs {
		t.Errorf("%d jobs and %d live are remembered", jobs, live)
	}
}

func TestTimeout(t *testing.T) {
	r := newRig(t).open()
	res := r.run("shell", args{"command": "echo before; sleep 3000", "timeout_secs": 2})
	f := r.raw(res)
	if !res.Failed || !f.TimedOut || f.Signal == "" && (f.ExitCode == nil || *f.ExitCode < 128) || !strings.Contains(statusOf(res), "timed out after 2.0 s") || out(res) != "before\n" {
		t.Errorf("%q %s", res.Text, res.RawOutput)
	}
	r.profile.Limits.Wall = time.Second
	if res := r.shell("sleep 3000"); !r.raw(res).TimedOut {
		t.Errorf("the profile's limit: %q", res.Text)
	}
	if res := r.run("shell", args{"command": "sleep 1.5; echo done", "timeout_secs": 60}); res.Failed {
		t.Errorf("a call may ask for more: %q", res.Text)
	}
	if res := r.run("shell", args{"command": "trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.01; done", "timeout_secs": 2}); !res.Failed || !strings.Contains(res.Text, "cleaned\n") {
		t.Errorf("it was not asked first: %q", res.Text)
	}
}

func TestCancelled(t *testing.T) {
	r := newRig(t).open()
	ctx, cancel := context.WithCancelCause(context.Background())
	res := r.runCtx(ctx, "shell", args{"command": "echo partial; sleep 3000"}, func(domain.ToolProgress) { cancel(domain.CancelledByClient) })
	if f := r.raw(res); !res.Failed || !f.Cancelled || !strings.HasPrefix(res.Text, "[cancelled after") || !strings.Contains(res.Text, "partial\n") {
		t.Errorf("%q %s", res.Text, res.RawOutput)
	}
}
