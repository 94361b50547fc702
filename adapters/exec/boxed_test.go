//go:build unix

package exec

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-dev/berth/adapters/exec/sandbox"
	"github.com/berth-dev/berth/core/domain"
)

// modes are the sandboxes that the tests of this file run in.
func modes() []string { return []string{sandbox.Namespaces, sandbox.Landlock} }

func TestBoxed(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t).boxed(mode).open()
			for line, want := range map[string]string{
				"echo a; echo b >&2; echo c":  "a\nb\nc\n",
				"pwd; echo >made; ls made":    r.session.Cwd + "\nmade\n",
				"cat; test -t 0 || echo none": "none\n",
				"echo $BERTH_SHELL":           "1\n",
				"ls /proc/$$/fd; :":           "0\n1\n2\n",
			} {
				if res := r.shell(line); res.Failed || out(res) != want {
					t.Errorf("%s: %q", line, res.Text)
				}
			}
			if res := r.shell("echo x; exit 3"); !res.Failed || *r.raw(res).ExitCode != 3 {
				t.Errorf("%q", res.Text)
			}
			if res := r.shell("kill -SEGV $$"); r.raw(res).Signal != "SIGSEGV" {
				t.Errorf("%q %s", res.Text, res.RawOutput)
			}
			if res := r.shell("echo x >" + r.at("out/x")); !res.Failed {
				t.Errorf("writes outside: %q", res.Text)
			}
			if res := r.shell("seq 20000"); !r.raw(res).Truncated || r.raw(res).File == "" {
				t.Errorf("%s", res.RawOutput)
			}
			if res := r.shell("mkdir -p .git/hooks && echo x >.git/hooks/pre-commit"); len(res.Text) == 0 {
				t.Error("no text")
			}
			if _, err := os.Stat(r.at("ws/.git/hooks/pre-commit")); err == nil {
				t.Error("the hook is there")
			}
			r.analysis = reads("x")
			if res := r.shell("echo x >read; touch read"); !res.Failed {
				t.Errorf("a read writes: %q", res.Text)
			}
			if _, err := os.Stat(r.at("ws/read")); err == nil {
				t.Error("a read wrote")
			}
		})
	}
}

// TestNothingStaysBoxed runs the fifty commands in each sandbox; in short
// tests, in turn in one of them.
func TestNothingStaysBoxed(t *testing.T) {
	n := 0
	for how, line := range clinging() {
		for what, text := range stayers() {
			n++
			for i, mode := range modes() {
				if testing.Short() && n%len(modes()) != i {
					continue
				}
				t.Run(mode+" "+what+" "+how, func(t *testing.T) {
					t.Parallel()
					r := newRig(t).boxed(mode).open()
					tok := token()
					res := r.shell(fmt.Sprintf(line, r.stayer(text, tok)))
					if res.Failed || !strings.Contains(out(res), "ok\n") {
						t.Errorf("the call: %q", res.Text)
					}
					if left := alive(t, tok); len(left) > 0 {
						t.Errorf("left: %q", left)
					}
				})
			}
		}
	}
}

func TestEndedBoxed(t *testing.T) {
	for _, mode := range modes() {
		for what, command := range endless() {
			for how, end := range ends() {
				if testing.Short() && (mode != sandbox.Namespaces || how == "by the session") {
					continue
				}
				t.Run(mode+" "+what+" "+how, func(t *testing.T) {
					t.Parallel()
					r := newRig(t).boxed(mode).open()
					tok := token()
					res := end(r, strings.ReplaceAll(command, "TOK", tok))
					if !res.Failed && what != "kills its helper" {
						t.Errorf("the call did not fail: %q", cutAt(res.Text, 300))
					}
					if err := r.set.Close(); err != nil {
						t.Errorf("Close: %v", err)
					}
					r.eventually("nothing is left", func() bool { return len(alive(t, tok)) == 0 })
				})
			}
		}
	}
}

// TestNothingConfines: where no sandbox works, an allowed command runs all
// the same.
func TestNothingConfines(t *testing.T) {
	r := newRig(t)
	box := sandbox.New(sandbox.Config{Mode: "no such sandbox"})
	r.conf.Confiner = Sandboxed{Of: func(string) *sandbox.Sandbox { return box }, Otherwise: Plain{Helper: SelfHelper()}}
	r.open()
	p := r.prepare("shell", args{"command": "echo ran"})
	defer func() { _ = p.Close() }()
	if a := p.Plan().Access; a.Unconfined == "" {
		t.Errorf("%+v", a)
	}
	res, err := p.Run(context.Background(), func(domain.ToolProgress) {})
	if err != nil || res.Failed || out(res) != "ran\n" {
		t.Errorf("%+v %v", res, err)
	}
}
