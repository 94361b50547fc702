//go:build unix

package exec

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/berth-dev/berth/core/domain"
)

// reads is what an analyser says about a proven read.
func reads(words ...string) Analysis {
	return Analysis{Access: domain.Access{Class: domain.AccessRead, Commands: []domain.SimpleCommand{{Words: words, Class: domain.AccessRead}}}}
}

func TestAccess(t *testing.T) {
	strong := domain.Posture{Word: domain.PostureStrong, Backend: "namespaces"}
	off := domain.Posture{Word: domain.PostureOff}
	none := domain.Posture{Word: domain.PostureNone, Reason: "the kernel has no namespaces"}
	git := reads("git", "status")
	git.Git = true
	curl := Analysis{Access: domain.Access{Class: domain.AccessRisk, Network: true, Reason: "uses the network"}}
	for name, c := range map[string]struct {
		analysis Analysis
		posture  domain.Posture
		args     args
		profile  Profile
		want     func(a domain.Access) bool
		verdict  domain.Verdict // at the level of the profile
	}{
		"a read": {reads("ls"), strong, nil, Profile{}, func(a domain.Access) bool {
			return a.Class == domain.AccessRead && !a.Network && a.Unconfined == "" && a.Forbidden == ""
		}, domain.Allow},
		"a read without a sandbox by choice": {reads("ls"), off, nil, Profile{}, func(a domain.Access) bool { return a.Class == domain.AccessRead && a.Unconfined == "" }, domain.Allow},
		"a read where no sandbox works":      {reads("ls"), none, nil, Profile{}, func(a domain.Access) bool { return strings.Contains(a.Unconfined, "no namespaces") }, domain.Ask},
		"the same at level full":             {reads("ls"), none, nil, Profile{Level: domain.LevelFull}, func(domain.Access) bool { return true }, domain.Refuse},
		"a named sandbox that is missing": {reads("ls"), none, nil, Profile{Sandbox: "bubblewrap"}, func(a domain.Access) bool {
			return strings.Contains(a.Forbidden, "bubblewrap") && strings.Contains(a.Forbidden, "no namespaces")
		}, domain.Refuse},
		"git in a sandbox":      {git, strong, nil, Profile{}, func(a domain.Access) bool { return a.Class == domain.AccessRead }, domain.Allow},
		"git without a sandbox": {git, off, nil, Profile{}, func(a domain.Access) bool { return a.Class == domain.AccessRun && strings.Contains(a.Reason, "git") }, domain.Ask},
		"a read that stays": {reads("tail", "-f", "x"), strong, args{"background": true}, Profile{}, func(a domain.Access) bool {
			return a.Class == domain.AccessRun && a.Commands[0].Class == domain.AccessRun && strings.Contains(a.Reason, "background")
		}, domain.Ask},
		"asks for the network": {reads("ls"), strong, args{"network": true}, Profile{}, func(a domain.Access) bool {
			return a.Class == domain.AccessRun && a.Network && a.Scope == "" && strings.Contains(a.Reason, "network")
		}, domain.Ask},
		"needs the network":        {curl, strong, nil, Profile{}, func(a domain.Access) bool { return a.Network && a.Scope == "" }, domain.Ask},
		"the network is off":       {curl, strong, nil, Profile{Network: domain.NetworkDeny}, func(a domain.Access) bool { return a.Network }, domain.Refuse},
		"the network is on":        {curl, strong, nil, Profile{Network: domain.NetworkAllow}, func(a domain.Access) bool { return a.Network && a.Scope != "" }, domain.Ask},
		"forbidden":                {Analysis{Access: domain.Access{Class: domain.AccessRisk, Forbidden: "no"}}, strong, nil, Profile{}, func(a domain.Access) bool { return a.Forbidden == "no" }, domain.Refuse},
		"a change at level read":   {Analysis{Access: domain.Access{Class: domain.AccessRun}}, strong, nil, Profile{Level: domain.LevelReadOnly}, func(domain.Access) bool { return true }, domain.Refuse},
		"a read at level read":     {reads("ls"), strong, nil, Profile{Level: domain.LevelReadOnly}, func(domain.Access) bool { return true }, domain.Allow},
		"background at level read": {reads("ls"), strong, args{"background": true}, Profile{Level: domain.LevelReadOnly}, func(domain.Access) bool { return true }, domain.Refuse},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.analysis, r.posture = c.analysis, c.posture
			r.profile = c.profile
			if r.profile.Level == "" {
				r.profile.Level = domain.LevelSupervised
			}
			r.open()
			a := args{"command": "x"}
			for k, v := range c.args {
				a[k] = v
			}
			p := r.prepare("shell", a)
			defer func() { _ = p.Close() }()
			access := p.Plan().Access
			if !c.want(access) || access.Tool != "shell" || access.Scope != "" && access.Scope != r.session.Cwd {
				t.Errorf("%+v", access)
			}
			got := domain.Decide(domain.Policy{Level: r.profile.Level, Network: r.profile.Network}, nil, access)
			if got.Verdict != c.verdict {
				t.Errorf("verdict %d (%s)", got.Verdict, got.Reason)
			}
			if access.Forbidden != "" {
				res, err := p.Run(context.Background(), func(domain.ToolProgress) {})
				if err != nil || !res.Failed || res.Text != access.Forbidden {
					t.Errorf("Run: %+v %v", res, err)
				}
			}
		})
	}
}

// TestNetworkIsNotRemembered: having allowed a build for always says nothing
// about the build with the network.
func TestNetworkIsNotRemembered(t *testing.T) {
	r := newRig(t)
	r.analysis.Access.Commands[0].Words = []string{"go", "test"}
	r.open()
	plan := func(a args) domain.Access {
		p := r.prepare("shell", a)
		defer func() { _ = p.Close() }()
		return p.Plan().Access
	}
	policy := domain.Policy{Level: domain.LevelSupervised}
	ruling := domain.Decide(policy, nil, plan(args{"command": "go test"}))
	if ruling.Verdict != domain.Ask || len(ruling.Always) != 1 {
		t.Fatalf("%+v", ruling)
	}
	if again := domain.Decide(policy, ruling.Always, plan(args{"command": "go test"})); again.Verdict != domain.Allow {
		t.Errorf("the same again: %+v", again)
	}
	if net := domain.Decide(policy, ruling.Always, plan(args{"command": "go test", "network": true})); net.Verdict != domain.Ask || len(net.Always) != 0 {
		t.Errorf("with the network: %+v", net)
	}
	if sub := domain.Decide(policy, ruling.Always, plan(args{"command": "go test", "cwd": "sub"})); sub.Verdict != domain.Ask {
		t.Errorf("in another directory: %+v", sub)
	}
}

func TestTitle(t *testing.T) {
	many := strings.Repeat("true && ", 60)
	for name, c := range map[string]struct {
		line, decisive string
		class          domain.AccessClass
		words          []string
		want           string // exactly, when set
		begins         string
		contains       []string
	}{
		"raw when short":        {line: "go test ./...", class: domain.AccessRun, want: "go test ./..."},
		"raw when it has parts": {line: "go vet && go test", decisive: "go vet", class: domain.AccessRun, want: "go vet && go test"},
		"the risk first":        {line: "ls && curl https://x.invalid/p", decisive: "curl https://x.invalid/p", class: domain.AccessRisk, begins: "curl https://x.invalid/p", contains: []string{"ls && curl"}},
		"behind many":           {line: many + "curl https://x.invalid/x", decisive: "curl https://x.invalid/x", class: domain.AccessRisk, begins: "curl https://x.invalid/x"},
		"behind blanks":         {line: "ls" + strings.Repeat(" ", 4000) + "; curl https://x.invalid", class: domain.AccessRun, want: "ls [4000 blanks] ; curl https://x.invalid"},
		"behind new lines":      {line: "ls" + strings.Repeat("\n", 400) + "curl x", class: domain.AccessRun, want: "ls [400 blanks] curl x"},
		"two lines":             {line: "ls\nrm x", class: domain.AccessRun, want: `ls\nrm x`},
		"look-alike letters":    {line: "сurl https://x.invalid", class: domain.AccessRun, words: []string{"сurl"}, want: `\u0441url https://x.invalid`},
		"letters in operands":   {line: "touch ünï漢", class: domain.AccessRun, words: []string{"touch", "ünï漢"}, want: "touch ünï漢"},
		"direction marks":       {line: "ls \u202eexe.txt", class: domain.AccessRun, want: `ls \u202eexe.txt`},
		"no width":              {line: "r\u200bm x", class: domain.AccessRun, want: `r\u200bm x`},
		"escape sequences":      {line: "echo \x1b[2J\x07\u009b", class: domain.AccessRun, want: `echo \x1b[2J\x07\u009b`},
		"no UTF-8":              {line: "echo \xff", class: domain.AccessRun, want: "echo \uFFFD"}, // JSON has no such byte
		"long":                  {line: "echo " + strings.Repeat("漢", 500), class: domain.AccessRun, begins: "echo 漢漢"},
		"a long risk":           {line: "ls; curl " + strings.Repeat("x", 500), decisive: "curl " + strings.Repeat("x", 500), class: domain.AccessRisk, begins: "curl xxx", contains: []string{"(in: ls; curl"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.analysis = Analysis{Decisive: c.decisive, Access: domain.Access{Class: c.class, Commands: []domain.SimpleCommand{{Words: c.words, Class: c.class}}}}
			r.open()
			p := r.prepare("shell", args{"command": c.line})
			defer func() { _ = p.Close() }()
			title := p.Plan().Title
			if c.want != "" && title != c.want || !strings.HasPrefix(title, c.begins) || utf8.RuneCountInString(title) > maxTitle {
				t.Errorf("%q", title)
			}
			for _, s := range c.contains {
				if !strings.Contains(title, s) {
					t.Errorf("%q is not in %q", s, title)
				}
			}
		})
	}
}

func TestPreview(t *testing.T) {
	r := newRig(t)
	r.analysis.Access.Reason = "may delete\n\u202ethings"
	r.posture = domain.Posture{Word: domain.PosturePartial, Backend: "landlock", Lacks: []string{"chmod outside"}}
	r.open()
	line := "ls" + strings.Repeat(" ", 4000) + "; cat <<'```'\n```\n\u202e"
	p := r.prepare("shell", args{"command": line, "background": true, "timeout_secs": 90, "description": "see\nwhat is there", "cwd": "sub"})
	defer func() { _ = p.Close() }()
	got := text(t, p.Plan().Content)
	for _, s := range []string{
		"````sh\nls" + strings.Repeat(" ", 4000) + "; cat <<'```'\n```\n\\u202e\n````",
		"Said to be for: see\\nwhat is there", "Directory: " + r.at("ws/sub"), "landlock", "no network", "chmod outside", "Background: it goes on after the answer, for up to 1m30s",
	} {
		if !strings.Contains(got, s) {
			t.Errorf("%q is not in %q", s, got)
		}
	}
	if reason := p.Plan().Access.Reason; !strings.HasPrefix(reason, `may delete\n\u202ethings; it stays in the background`) || strings.Contains(got, "may delete") {
		t.Errorf("the reason %q, in %q", reason, got)
	}
	r.analysis.Access.Reason = strings.Repeat("because ", 1000)
	long := strings.Repeat("echo 漢;\n", 4000)
	q := r.prepare("shell", args{"command": long})
	defer func() { _ = q.Close() }()
	if n := utf8.RuneCountInString(q.Plan().Access.Reason); n > maxReason {
		t.Errorf("a reason of %d characters", n)
	}
	got = text(t, q.Plan().Content)
	if len(got) > maxPreview+1024 || !strings.Contains(got, "of 40000 bytes") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), lastBytes(got, 300))
	}
}

func TestDirectory(t *testing.T) {
	r := newRig(t)
	for link, to := range map[string]string{"ws/to-out": "../out", "ws/to-sub": "sub"} {
		if err := os.Symlink(to, r.at(link)); err != nil {
			t.Fatal(err)
		}
	}
	r.write("ws/file", "")
	if err := os.Mkdir(r.at("ws/forbidden"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, level := range []domain.Level{domain.LevelReadOnly, domain.LevelSupervised, domain.LevelFull} {
		r.profile.Level = level
		r.open()
		for dir, code := range map[string]domain.Code{
			"/": domain.Denied, "../out": domain.Denied, "to-out": domain.Denied, "sub/../../out": domain.Denied, r.at("out"): domain.Denied,
			"forbidden": domain.Denied, "none": domain.NotFound, "file": domain.InvalidArgument,
		} {
			_, err := r.tools["shell"].Prepare(t.Context(), r.call("shell", args{"command": "touch x", "cwd": dir}))
			var e *domain.Error
			if !errors.As(err, &e) || e.Code != code || len(e.Msg) < 20 {
				t.Errorf("%s at %s: %v", dir, level, err)
			}
		}
		for dir, want := range map[string]string{"": "ws", ".": "ws", "sub": "ws/sub", "to-sub": "ws/sub", "sub/..": "ws", r.at("agent"): "agent"} {
			res := r.run("shell", args{"command": "pwd", "cwd": dir})
			if out(res) != r.at(want)+"\n" {
				t.Errorf("%q: %q", dir, res.Text)
			}
		}
	}
}

// TestPinned: what was approved is what is run, or nothing is.
func TestPinned(t *testing.T) {
	for name, c := range map[string]struct {
		commands []domain.SimpleCommand
		line     string
		change   string
		runs     bool
	}{
		"nothing changes":      {[]domain.SimpleCommand{{Words: []string{"sh", "build.sh"}}}, "sh build.sh", ":", true},
		"another file changes": {[]domain.SimpleCommand{{Words: []string{"sh", "build.sh"}}}, "sh build.sh", "echo >other", true},
		"the script":           {[]domain.SimpleCommand{{Words: []string{"sh", "build.sh"}}}, "sh build.sh", "echo 'touch evil' >>build.sh", false},
		"by its name":          {[]domain.SimpleCommand{{Words: []string{"./build.sh"}}}, "./build.sh", "echo 'touch evil' >>build.sh", false},
		"with flags":           {[]domain.SimpleCommand{{Words: []string{"/bin/bash", "-e", "build.sh"}}}, "/bin/bash -e build.sh", "echo 'touch evil' >>build.sh", false},
		"behind a wrapper":     {[]domain.SimpleCommand{{Words: []string{"timeout", "9", "sh", "build.sh"}, Forms: [][]string{{"sh", "build.sh"}}}}, "timeout 9 sh build.sh", "echo 'touch evil' >>build.sh", false},
		"in another directory": {[]domain.SimpleCommand{{Words: []string{"cd", "sub"}}, {Words: []string{"sh", "in.sh"}}}, "cd sub && sh in.sh", "echo 'touch evil' >>sub/in.sh", false},
		"is replaced":          {[]domain.SimpleCommand{{Words: []string{"sh", "build.sh"}}}, "sh build.sh", "rm build.sh; echo 'touch evil' >build.sh", false},
		"is gone":              {[]domain.SimpleCommand{{Words: []string{"sh", "build.sh"}}}, "sh build.sh", "rm build.sh", false},
		"the second one":       {[]domain.SimpleCommand{{Words: []string{"sh", "build.sh"}}, {Words: []string{"python3", "sub/in.sh"}}}, "sh build.sh; true", "echo 'touch evil' >>sub/in.sh", false},
		"a makefile":           {[]domain.SimpleCommand{{Words: []string{"make", "test"}}}, "true", "echo '\ttouch evil' >>Makefile", false},
		"a makefile by option": {[]domain.SimpleCommand{{Words: []string{"make", "-f", "sub/in.sh"}}}, "true", "echo '\ttouch evil' >>sub/in.sh", false},
		"a package":            {[]domain.SimpleCommand{{Words: []string{"npm", "run", "x"}}}, "true", "echo >package.json", false},
		"the directory":        {nil, "pwd", "mv ../ws ../ws2; mkdir -p ../ws", false},
		"a link for it":        {nil, "pwd", "mv ../ws ../ws2; ln -s out ../ws", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write("ws/build.sh", "echo built\n")
			r.write("ws/sub/in.sh", "echo built\n")
			r.write("ws/Makefile", "test:\n")
			r.write("ws/package.json", "{}")
			r.analysis.Access.Commands = c.commands
			r.open()
			p := r.prepare("shell", args{"command": c.line})
			defer func() { _ = p.Close() }()
			if c.commands != nil && !strings.Contains(text(t, p.Plan().Content), "SHA-256") {
				t.Errorf("the script's hash is not shown: %s", text(t, p.Plan().Content))
			}
			other := newRig(t)
			other.session.Cwd = r.session.Cwd
			if res := other.open().shell(c.change); res.Failed {
				t.Fatal(res.Text)
			}
			res, err := p.Run(context.Background(), func(domain.ToolProgress) {})
			if err != nil || res.Failed == c.runs || !c.runs && !strings.Contains(res.Text, "Nothing was run") {
				t.Errorf("%+v %v", res, err)
			}
			for _, f := range []string{"ws/evil", "ws2/evil", "ws/sub/evil"} {
				if _, err := os.Stat(r.at(f)); err == nil {
					t.Errorf("%s is there", f)
				}
			}
		})
	}
}

// specs keeps what the confiner was asked for.
type asked struct {
	Confiner
	spec Spec
	err  error
}

func (a *asked) Command(ctx context.Context, s Spec) (Process, error) {
	a.spec = s
	if a.err != nil {
		return nil, a.err
	}
	return a.Confiner.Command(ctx, s)
}

func TestWhatIsOpened(t *testing.T) {
	for name, c := range map[string]struct {
		analysis Analysis
		args     args
		want     func(r *rig, s Spec) bool
	}{
		"a read": {reads("ls"), nil, func(r *rig, s Spec) bool {
			return s.ReadOnly && !s.Network && len(s.Extra)+len(s.Readable)+len(s.AllowProtected) == 0 && s.Limits.Processes == 256
		}},
		"a read that stays": {reads("ls"), args{"background": true}, func(r *rig, s Spec) bool { return !s.ReadOnly && !s.Network }},
		"a change":          {Analysis{Access: domain.Access{Class: domain.AccessRun}}, nil, func(r *rig, s Spec) bool { return !s.ReadOnly && !s.Network }},
		"the network":       {Analysis{Access: domain.Access{Class: domain.AccessRun}}, args{"network": true}, func(r *rig, s Spec) bool { return s.Network }},
		"needs the network": {Analysis{Access: domain.Access{Class: domain.AccessRisk, Network: true}}, nil, func(r *rig, s Spec) bool { return s.Network }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			a := &asked{Confiner: r.conf.Confiner}
			r.conf.Confiner, r.analysis = a, c.analysis
			r.open()
			all := args{"command": "echo x"}
			for k, v := range c.args {
				all[k] = v
			}
			if res := r.run("shell", all); res.Failed {
				t.Fatal(res.Text)
			}
			if !c.want(r, a.spec) || a.spec.Dir != r.session.Cwd || a.spec.Argv[len(a.spec.Argv)-1] != "echo x" || len(a.spec.Roots) != 2 {
				t.Errorf("%+v", a.spec)
			}
		})
	}
	t.Run("paths", func(t *testing.T) {
		r := newRig(t)
		a := &asked{Confiner: r.conf.Confiner}
		r.conf.Confiner = a
		r.analysis.Writes, r.analysis.Reads = []string{r.at("out/x"), r.at("ws/.git/config")}, []string{r.at("out/r")}
		r.open().shell("true")
		if s := a.spec; len(s.Extra)+len(s.Readable) != 0 || strings.Join(s.AllowProtected, " ") != r.at("ws/.git/config") {
			t.Errorf("outside is opened where it cannot have been allowed: %+v", s)
		}
		r.profile.Level = domain.LevelFull
		r.shell("true")
		if s := a.spec; strings.Join(s.Extra, " ") != r.at("out/x") || strings.Join(s.AllowProtected, " ") != r.at("ws/.git/config") || strings.Join(s.Readable, " ") != r.at("out/r") {
			t.Errorf("%+v", s)
		}
		r.analysis.Writes = []string{r.at("out/forbidden")}
		if res := r.shell("touch x"); !res.Failed || !strings.Contains(res.Text, "forbidden") {
			t.Errorf("%q", res.Text)
		}
		if _, err := os.Stat(r.at("ws/x")); err == nil {
			t.Error("it ran")
		}
	})
	t.Run("cannot be confined", func(t *testing.T) {
		r := newRig(t)
		r.conf.Confiner = &asked{Confiner: r.conf.Confiner, err: domain.Errorf(domain.Unavailable, "there is no bwrap here")}
		r.open()
		if res := r.shell("touch x"); !res.Failed || !strings.Contains(res.Text, "Nothing was run") || !strings.Contains(res.Text, "no bwrap") {
			t.Errorf("%q", res.Text)
		}
	})
}

func TestEnvironment(t *testing.T) {
	r := newRig(t)
	canary := "canary-3b1f"
	hidden := []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "NPM_TOKEN", "SSH_AUTH_SOCK",
		"DATABASE_PASSWORD", "BASH_ENV", "ENV", "PS4", "IFS", "LD_PRELOAD", "BASH_FUNC_ls%%", "GIT_CONFIG_COUNT", "MY_SECRET", "SOME_KEY", "DBUS_SESSION_BUS_ADDRESS",
		"BERTH_GATEWAY_TOKEN", "PROVIDER", "PROMPT_COMMAND"}
	r.conf.Environ = []string{"PATH=" + r.at("ws/bin") + ":/usr/bin:/bin:relative", "HOME=/home/u", "LC_ALL=C", "FOO_A=1", "NOT_LISTED=" + canary, "BROKEN", "=x"}
	for _, name := range hidden {
		r.conf.Environ = append(r.conf.Environ, name+"="+canary)
	}
	r.conf.Hidden = func() []string { return []string{"PROVIDER"} }
	r.profile.ShellEnv = append(DefaultShellEnv(), append(hidden, "FOO_*", "AWS_*")...)
	if err := os.Mkdir(r.at("ws/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.write("ws/bin/ls", "#!/bin/sh\necho planted\n")
	r.open()
	res := r.shell("env; set; declare -f 2>/dev/null; ls >/dev/null; :")
	if strings.Contains(res.Text, canary) {
		t.Errorf("a secret got through: %q", res.Text)
	}
	for _, want := range []string{"\nHOME=/home/u\n", "\nLC_ALL=C\n", "\nFOO_A=1\n", "\nBERTH_SHELL=1\n", "\nGIT_PAGER=cat\n", "\nPATH=" + r.at("ws/bin") + ":"} {
		if !strings.Contains(res.Text, want) {
			t.Errorf("%q is missing in %q", want, res.Text)
		}
	}
	r.analysis = reads("ls")
	res = r.shell("ls; echo $PATH; echo $GIT_CONFIG_COUNT $GIT_OPTIONAL_LOCKS; git config core.fsmonitor")
	if strings.Contains(res.Text, "planted") || strings.Contains(res.Text, "ws/bin:") || !strings.Contains(res.Text, "\n"+joinPath(SystemPath(), []string{"/usr/bin", "/bin"})+"\n") || !strings.Contains(res.Text, " 0\n") {
		t.Errorf("a read runs with %q", res.Text)
	}
	if _, err := os.Stat("/usr/bin/git"); err == nil && !strings.HasSuffix(strings.TrimSpace(res.Text), "false") {
		t.Errorf("git is not hardened: %q", res.Text)
	}
}
