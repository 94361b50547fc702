//go:build unix

package exec

import (
	"context"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/adapters/exec/sandbox"
	"github.com/berth-dev/berth/adapters/exec/shellpolicy"
	"github.com/berth-dev/berth/core/domain"
)

// real gives the rig the real policy and the real sandbox.
func (r *rig) real() *rig {
	p := Policy{Judge: r.judge, Env: func(domain.Session) shellpolicy.Env {
		dialect := shellpolicy.Posix
		if r.conf.Shell.Bash {
			dialect = shellpolicy.Bash
		}
		return shellpolicy.Env{Home: r.at("home"), Dialect: dialect, SystemPath: SystemPath()}
	}}
	r.conf.Analyze = p.Analyze
	return r.boxed(sandbox.Auto)
}

// decide prepares a call and decides about it as the permission service does.
func (r *rig) decide(a args, rules []domain.Rule) (domain.Ruling, func() domain.ToolResult) {
	r.t.Helper()
	p := r.prepare("shell", a)
	ruling := domain.Decide(domain.Policy{Level: r.profile.Level, Network: r.profile.Network}, rules, p.Plan().Access)
	return ruling, func() domain.ToolResult {
		defer func() { _ = p.Close() }()
		res, err := p.Run(context.Background(), func(domain.ToolProgress) {})
		if err != nil {
			r.t.Fatal(err)
		}
		return res
	}
}

// TestTogether runs lines through policy, permission decision and sandbox.
func TestTogether(t *testing.T) {
	git, err := osexec.LookPath("git")
	for name, c := range map[string]struct {
		args    args
		verdict domain.Verdict
		always  bool   // may be remembered
		failed  bool   // when it is run all the same
		out     string // contained
		git     bool
	}{
		"a read":                   {args{"command": "cat a.txt && ls"}, domain.Allow, false, false, "A\na.txt\n", false},
		"a read elsewhere":         {args{"command": "cat in.txt", "cwd": "sub"}, domain.Allow, false, false, "IN\n", false},
		"above where it runs":      {args{"command": "cat ../a.txt", "cwd": "sub"}, domain.Allow, false, false, "A\n", false},
		"outside":                  {args{"command": "cat ../out/secret.txt"}, domain.Refuse, false, true, "", false},
		"above where it runs, out": {args{"command": "cat ../../out/secret.txt", "cwd": "sub"}, domain.Refuse, false, true, "", false},
		"git reads":                {args{"command": "git status --short"}, domain.Allow, false, false, "a.txt", true},
		"a change":                 {args{"command": "echo x >b.txt; cat b.txt"}, domain.Ask, true, false, "x\n", false},
		"a script":                 {args{"command": "sh build.sh"}, domain.Ask, false, false, "built\n", false},
		"a read that stays":        {args{"command": "cat a.txt", "background": true}, domain.Ask, false, false, "A\n", false},
		"a read with the network":  {args{"command": "cat a.txt", "network": true}, domain.Ask, false, false, "A\n", false},
		"the network":              {args{"command": "curl -s https://x.invalid/p"}, domain.Ask, false, true, "", false},
		"not parseable":            {args{"command": "echo 'x"}, domain.Refuse, false, true, "", false},
		"root":                     {args{"command": "sudo ls"}, domain.Refuse, false, true, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if c.git && err != nil {
				t.Skip("no git")
			}
			r := newRig(t).real()
			for path, text := range map[string]string{"ws/a.txt": "A\n", "ws/sub/in.txt": "IN\n", "out/secret.txt": "SECRET\n", "ws/build.sh": "echo built\n"} {
				r.write(path, text)
			}
			if c.git {
				if raw, err := osexec.Command(git, "-C", r.session.Cwd, "init", "-q").CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, raw)
				}
			}
			if name == "a read" {
				_ = os.RemoveAll(r.at("ws/sub"))
				_ = os.Remove(r.at("ws/build.sh"))
			}
			r.conf.settle = time.Minute // what stays here ends by itself
			r.open()
			ruling, run := r.decide(c.args, nil)
			if ruling.Verdict != c.verdict || (len(ruling.Always) > 0) != c.always {
				t.Errorf("verdict %d, always %v, %q", ruling.Verdict, ruling.Always, ruling.Reason)
			}
			res := run()
			if res.Failed != c.failed || !strings.Contains(res.Text, c.out) || strings.Contains(res.Text, "SECRET") {
				t.Errorf("%q", res.Text)
			}
		})
	}
}

// TestPlantedByGit: what a repository's own settings want to run does not
// run, or finds nothing that it could do.
func TestPlantedByGit(t *testing.T) {
	git, err := osexec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	r := newRig(t).real()
	r.write("ws/a.txt", "A\n")
	r.write("ws/x.sh", "#!/bin/sh\ntouch "+r.at("ws/planted")+" "+r.at("out/planted")+"\n")
	for _, line := range [][]string{
		{"init", "-q"}, {"add", "a.txt"}, {"-c", "user.name=u", "-c", "user.email=u@x.invalid", "commit", "-q", "-m", "m"},
		{"config", "core.fsmonitor", r.at("ws/x.sh")}, {"config", "diff.external", r.at("ws/x.sh")}, {"config", "core.pager", r.at("ws/x.sh")},
		{"config", "filter.x.clean", r.at("ws/x.sh")}, {"config", "diff.x.textconv", r.at("ws/x.sh")},
	} {
		if raw, err := osexec.Command(git, append([]string{"-C", r.session.Cwd}, line...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
	}
	r.write("ws/.gitattributes", "*.txt diff=x filter=x\n")
	r.write("ws/a.txt", "B\n")
	r.open()
	policy := r.conf.Analyze
	for _, line := range []string{"git status", "git diff", "git log -p", "git show", "git diff HEAD"} {
		if an := policy(t.Context(), r.session, r.session.Cwd, line, true); an.Access.Class == domain.AccessRead {
			t.Errorf("%s is a read", line)
		}
	}
	// And if the policy were wrong, what holds a read would still hold it.
	r.conf.Analyze = func(context.Context, domain.Session, string, string, bool) Analysis { return reads("git") }
	r.open()
	for _, line := range []string{"git status", "git diff", "git log -p", "git show", "git diff HEAD"} {
		r.shell(line)
		for _, f := range []string{"ws/planted", "out/planted"} {
			if _, err := os.Stat(r.at(f)); err == nil {
				t.Fatalf("%s: %s is there", line, f)
			}
		}
	}
	r.analysis = Analysis{Access: domain.Access{Class: domain.AccessRun}}
	r.conf.Analyze = func(context.Context, domain.Session, string, string, bool) Analysis { return r.analysis }
	r.open().shell("git status")
	if _, err := os.Stat(r.at("ws/planted")); err != nil {
		t.Error("git never runs the program, so this proves nothing")
	}
}

// TestTitlesOfThePolicy: the part that matters is in the title wherever it is
// in the line.
func TestTitlesOfThePolicy(t *testing.T) {
	r := newRig(t).real().open()
	for _, line := range []string{
		"ls && curl https://x.invalid/p", strings.Repeat("true && ", 60) + "curl https://x.invalid/x", "ls" + strings.Repeat(" ", 4000) + "; curl https://x.invalid",
		"if true; then curl https://x.invalid; fi", "ls\n\n\n\n\n\n\n\n\n\ncurl https://x.invalid",
	} {
		p := r.prepare("shell", args{"command": line})
		if title := p.Plan().Title; !strings.Contains(title, "curl https://x.invalid") {
			t.Errorf("%q is titled %q", cutAt(line, 60), title)
		}
		_ = p.Close()
	}
}
