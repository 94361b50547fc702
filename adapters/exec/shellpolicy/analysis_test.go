package shellpolicy

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func TestGate(t *testing.T) {
	r := newRig(t)
	bad := map[string]string{
		"nothing": "", "blanks": " \t\n ", "a comment alone": "# ls", "no UTF-8": "ls \xff", "too long": "echo " + strings.Repeat("a", maxLine), "no end of quotes": "ls '",
		"nested too deep": strings.Repeat("(", 300) + "ls" + strings.Repeat(")", 300), "deep arithmetic": "echo $((" + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + "))",
		"a deep test": "[[ " + strings.Repeat("( ", 300) + "x" + strings.Repeat(" )", 300) + " ]]", "hopelessly deep": strings.Repeat("(", 100_000),
	}
	for c := range 0x20 {
		if c != '\t' && c != '\n' {
			bad[fmt.Sprintf("control character %#x", c)] = "ls" + string(rune(c)) + "a.txt"
		}
	}
	bad["delete"] = "ls\x7f"
	for name, line := range bad {
		t.Run(name, func(t *testing.T) {
			a := r.analyze(t, line)
			if a.Forbidden == "" || a.Class != risk || a.ReadOnly() {
				t.Errorf("%+v", a)
			}
			for _, level := range []domain.Level{domain.LevelReadOnly, domain.LevelSupervised, domain.LevelFull} {
				if got := domain.Decide(domain.Policy{Level: level}, nil, a.Access("shell", r.ws)); got.Verdict != domain.Refuse {
					t.Errorf("%s: %v", level, got)
				}
			}
		})
	}
	if a := r.analyze(t, "ls\ta.txt\n"); !a.ReadOnly() {
		t.Errorf("tabs and newlines: %+v", a)
	}
}

// A dialect that is parsed is the dialect that runs.
func TestAnalyze_Posix(t *testing.T) {
	r := newRig(t)
	env := r.env()
	env.Dialect = Posix
	for line, want := range map[string]string{
		"ls -la": "R0", "cat a.txt | wc -l": "R0", "{curl,https://x.invalid}": "R2", "ls {a,b}.txt": "R2", "cat {a,b}.txt": "R2", "$'\\x72m' a.txt": "R2", "alias ls='rm -r build'\nls": "R2",
		"[[ -f a.txt ]]": "R1", "cat <(ls)": "R3", "export X=1": "R2", "f() { ls; }; f": "R2", "cat <<< x": "R3",
		"pushd src; cat ../secret.txt": "R2", "builtin cd src; cat a.txt": "R2", "cd -e src; cat ../secret.txt": "R2", "cd src && cat x.go": "R0", "time ls": "R0",
	} {
		if a := analyze(t.Context(), line, env, r); classOf(a) != want {
			t.Errorf("%q: %s, want %s: %+v", line, classOf(a), want, a)
		}
	}
}

// The verdict does not depend on how much stands before.
func TestAnalyze_LongChains(t *testing.T) {
	r := newRig(t)
	for _, n := range []int{1, 60, 5000} {
		for _, join := range []string{" && ", "; ", "\n", " || ", " | "} {
			line := strings.Repeat("true"+join, n) + "curl https://x.invalid"
			if a := r.analyze(t, line); a.Class != risk || !a.Network || a.Forbidden != "" || a.Decisive != "curl https://x.invalid" {
				t.Errorf("%d times true%q: %d %q %q", n, join, a.Class, a.Forbidden, a.Decisive)
			}
		}
	}
	var many strings.Builder
	for i := range maxJudged + 1 {
		fmt.Fprintf(&many, "cat f%d\n", i)
	}
	if a := r.analyze(t, many.String()); a.Forbidden == "" {
		t.Error("more paths than are looked up are let pass")
	}
}

func TestAnalyze_EndsWithItsContext(t *testing.T) {
	r := newRig(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if a := analyze(ctx, "ls", r.env(), r); a.Forbidden == "" {
		t.Errorf("%+v", a)
	}
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	if a := analyze(ctx, "cat a.txt", r.env(), stopping{r, stop}); a.Forbidden == "" {
		t.Errorf("ended while a path was looked up: %+v", a)
	}
}

type stopping struct {
	*rig
	stop func()
}

func (s stopping) Judge(ctx context.Context, dir, path string) domain.Place {
	s.stop()
	return s.rig.Judge(ctx, dir, path)
}

type broken struct{}

func (broken) Judge(context.Context, string, string) domain.Place { panic("broken") }

func TestAnalyze_FaultsFailClosed(t *testing.T) {
	if a := Analyze(t.Context(), "cat a.txt", Env{}, broken{}); a.Forbidden == "" || a.ReadOnly() {
		t.Errorf("%+v", a)
	}
	r := newRig(t)
	if a := Analyze(t.Context(), "cat a.txt", r.env(), r); !a.ReadOnly() {
		t.Errorf("%+v", a)
	}
}

func TestAnalyze_Commands(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ line, want string }{
		{"ls; rm a.txt", "[ls]0 [rm a.txt]1!"},
		{"timeout 5 nice rm a.txt", "[rm a.txt]1! <timeout 5 nice rm a.txt> <nice rm a.txt>"},
		{"/usr/bin/make x", "[make x]1!2 </usr/bin/make x>"},
		{"./make x", "[./make x]1!"},
		{"go test ./...", "[go test ./...]1!2"},
		{"npm run build -- -x", "[npm run build -- -x]1!3"},
		{"npm run", "[npm run]1!"},
		{"make", "[make]1!"},
		{"pytest -q", "[pytest -q]1!1"},
		{"ruff check .", "[ruff check .]1!2"},
		{"cargo test", "[cargo test]1!2"},
		{"git add .", "[git add .]1!2"},
		{"go test -exec ./x .", "[go test -exec ./x .]2"},
		{"python3 x.py", "[python3 x.py]1"},
		{"bash x.sh", "[bash x.sh]2"},
		{"go vet *.go", "[go vet *.go]1"},
		{"make > log", "[make]1! [> {{WS}}/log]1!"},
		{"make &", "[make]2"},
		{"CGO_ENABLED=0 go build", "[go build]1!2 [CGO_ENABLED= 0]1!"},
		{"X=1", "[X= 1]1!"},
		{"LD_PRELOAD=x make", "[make]2"},
		{"cd src && make", "[cd src]0 [make]1! [cd {{WS}}/src]1!"},
		{"cd {{WS}} && make", "[cd {{WS}}]0 [make]1!"},
		{"cd nosuch; make", "[cd nosuch]0 [make]1! [cd]1"},
		{"git commit -m \"$(cat a.txt)\"", "[cat a.txt]0 [git commit -m…]2"},
		{"$X a", "[…]2"},
		{"ls $X", "[ls…]2"},
		{"echo $?", "[echo…]0"},
		{"xargs rm -f", "[rm -f]1 [xargs rm -f]2"},
		{"sh -c 'make; ls'", "[make]1 [ls]0 [sh -c make; ls]2"},
		{"find . -exec rm {} +", "[rm {}]1 [find . -exec rm {} +]2"},
		{"f() { make; }", "[]2 [make]1!"},
		{"env FOO=1 make", "[make]1! <env FOO=1 make> [FOO= 1]1!"},
	} {
		t.Run(c.line, func(t *testing.T) {
			got := ""
			for _, s := range r.analyze(t, r.fill(c.line)).Commands {
				more, exact, prefix := "", "", ""
				if s.More {
					more = "…"
				}
				if s.Exact {
					exact = "!"
				}
				if s.Prefix > 0 {
					prefix = fmt.Sprint(s.Prefix)
				}
				class := map[domain.AccessClass]string{read: "0", run: "1", risk: "2"}[s.Class]
				got += " [" + strings.Join(s.Words, " ") + more + "]" + class + exact + prefix
				for _, f := range s.Forms {
					got += " <" + strings.Join(f, " ") + ">"
				}
			}
			if got = strings.TrimSpace(got); got != r.fill(c.want) {
				t.Errorf("%s\nwant %s", got, r.fill(c.want))
			}
		})
	}
}

// What was remembered covers what its text said, through everything that can
// be put around a command.
func TestAnalyze_Remembered(t *testing.T) {
	r := newRig(t)
	rules := []domain.Rule{
		{Allow: true, Tool: "shell", Scope: r.ws, Words: []string{"go", "test"}},
		{Allow: true, Tool: "shell", Scope: r.ws, Words: []string{"make"}, Exact: true},
		{Allow: true, Tool: "shell", Scope: r.ws, Words: []string{"cd", r.ws + "/sub"}, Exact: true},
	}
	for line, want := range map[string]domain.Verdict{
		"go test ./...": domain.Allow, "go test -run X .; make": domain.Allow, "timeout 60 go test .": domain.Allow, "go test . 2>&1 | tail -n 5": domain.Allow,
		"/usr/bin/make": domain.Allow, "cd sub && make": domain.Allow, "make >/dev/null": domain.Allow,
		"go test . > log": domain.Ask, "cd src && make": domain.Ask, "make x": domain.Ask, "./make": domain.Ask, "sub/make": domain.Ask, "FOO=1 make": domain.Ask, "LD_PRELOAD=x make": domain.Ask,
		"go test -exec ./x .": domain.Ask, "go test $X": domain.Ask, "go test \"$(ls)\"": domain.Ask, "make &": domain.Ask, "setsid make": domain.Ask, "sh -c make": domain.Ask,
		"eval make": domain.Ask, "xargs make": domain.Ask, "go testx": domain.Ask, "make; curl https://x.invalid": domain.Ask, "f() { make; }; f": domain.Ask, "go test -o .git/hooks/x .": domain.Ask,
		"go test -o /etc/x .": domain.Refuse, "go test ../x": domain.Refuse,
	} {
		got := domain.Decide(domain.Policy{Level: domain.LevelSupervised}, rules, r.analyze(t, line).Access("shell", r.ws))
		if got.Verdict != want {
			t.Errorf("%q: %v, want %v: %+v", line, got, want, r.analyze(t, line).Commands)
		}
	}
}

func TestAnalyze_WithoutSandbox(t *testing.T) {
	r := newRig(t)
	env := r.env()
	env.ReadOnlySandbox = false
	a := analyze(t.Context(), "git status", env, r)
	if a.Class != run || !a.Git {
		t.Errorf("%+v", a)
	}
	if a := analyze(t.Context(), "ls", env, r); a.Class != read || a.Git {
		t.Errorf("%+v", a)
	}
}

// A repository's own settings are no reason to start programs.
func TestAnalyze_GitSettings(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       domain.AccessClass
	}{
		{"what git init and clone write", "[core]\n\tbare = false\n\tfilemode = true\n[remote \"origin\"]\n\turl = x\n[branch \"main\"]\n\tremote = origin\n", read},
		{"what GitEnv has other values for", "[core]\n\tfsmonitor = ./x\n\thooksPath = h\n[gpg]\n\tprogram = x\n", read},
		{"comments", "# [diff] external = x\n; x\n", read},
		{"an external diff", "[diff]\n\texternal = x", run},
		{"a textconv", "[diff \"x\"]\n\ttextconv = y", run},
		{"a filter", "[filter \"x\"]\n\tclean = y", run},
		{"another file", "[include]\n\tpath = /x", run},
		{"a condition", "[includeIf \"gitdir:x\"]\n\tpath = /x", run},
		{"a work tree elsewhere", "[core]\n\tworktree = /etc", run},
		{"an alias", "[alias]\n\tst = !x", run},
		{"on the line of its section", "[diff] external = x", run},
		{"in any letters", "[DIFF]\nExternal=x", run},
		{"an extension", "[extensions]\n\tx = y", run},
		{"a mailmap", "[log]\n\tmailmap = x", run},
		{"no end of a section", "[diff\n", run},
		{"outside a section", "x = y", run},
		{"too much", strings.Repeat("#\n", maxSettings), run},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.must(t, os.WriteFile(r.ws+"/.git/config", []byte(c.text), 0o600))
			if a := r.analyze(t, "git diff"); a.Class != c.want {
				t.Errorf("%+v", a)
			}
		})
	}
	worktree := func(link, config string) domain.AccessClass {
		r := newRig(t)
		r.must(t, os.Rename(r.ws+"/.git", r.ws+"/main.git"))
		r.must(t, os.WriteFile(r.ws+"/main.git/config", []byte(config), 0o600))
		r.must(t, os.MkdirAll(r.ws+"/main.git/worktrees/x", 0o755))
		r.must(t, os.WriteFile(r.ws+"/main.git/worktrees/x/commondir", []byte("../..\n"), 0o600))
		r.must(t, os.WriteFile(r.ws+"/.git", []byte(r.fill(link)), 0o600))
		return r.analyze(t, "git status").Class
	}
	for _, c := range []struct {
		name, link, config string
		want               domain.AccessClass
	}{
		{"a worktree", "gitdir: {{WS}}/main.git/worktrees/x\n", "[core]\nbare=false", read},
		{"a worktree whose repository names a program", "gitdir: {{WS}}/main.git/worktrees/x", "[filter \"x\"]\nclean=y", run},
		{"a repository named by a relative path", "gitdir: main.git", "[diff]\nexternal=y", run},
		{"a repository outside", "gitdir: {{OUT}}/x", "[diff]\nexternal=y", read},
		{"no repository", "x", "", run},
	} {
		if got := worktree(c.link, c.config); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	r := newRig(t)
	r.must(t, os.RemoveAll(r.ws+"/.git"))
	if a := r.analyze(t, "git status"); a.Class != read {
		t.Errorf("without a repository: %+v", a)
	}
}

func TestAnalyze_WalksAboveForbidden(t *testing.T) {
	r := newRig(t)
	env := r.env()
	env.Forbidden = append(env.Forbidden, r.ws+"/src/private")
	for line, want := range map[string]domain.AccessClass{
		"ls -R .": risk, "ls -R src": risk, "ls -R": risk, "ls -R sub": read, "ls .": read, "grep -r x": risk, "grep -r x sub": read, "grep x a.txt": read, "rg x": risk, "rg x sub": read,
		"find .": risk, "find": risk, "find sub": read, "du": risk, "du src sub": risk, "ls -R $X": risk, "ls -R s*": read,
	} {
		if a := analyze(t.Context(), line, env, r); a.Class != want {
			t.Errorf("%q: %d, want %d: %s", line, a.Class, want, a.Reason)
		}
	}
}

func TestAnalyze_ManyMatches(t *testing.T) {
	r := newRig(t)
	for i := range maxMatches + 1 {
		r.must(t, os.WriteFile(fmt.Sprintf("%s/many/f%d", r.ws, i), nil, 0o600))
	}
	if a := r.analyze(t, "cat many/*"); a.Class != risk {
		t.Errorf("%+v", a)
	}
	if a := r.analyze(t, "cat many/f1?"); a.Class != read {
		t.Errorf("%+v", a)
	}
}

func TestAnalyze_OpensWhatIsNamed(t *testing.T) {
	r := newRig(t)
	a := r.analyze(t, r.fill("cat {{OUT}}/secret.txt b.txt; cp a.txt {{OUT}}/x; cp a.txt .git/hooks/y; cat {{OUT}}/x"))
	if want := []string{r.out + "/secret.txt"}; !slices.Equal(a.Reads, want) {
		t.Errorf("reads %q, want %q", a.Reads, want)
	}
	if want := []string{r.out + "/x", r.ws + "/.git/hooks/y"}; !slices.Equal(a.Writes, want) {
		t.Errorf("writes %q, want %q", a.Writes, want)
	}
	if !slices.Contains(a.Paths, r.ws+"/b.txt") || !slices.IsSorted(a.Paths) {
		t.Errorf("paths %q", a.Paths)
	}
}

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"git status": {"git", "status"}, "git  'st'atus": {"git", "status"}, `npm run "a b"`: {"npm", "run", "a b"}, "{a,b}": {"a", "b"}, "'*'": {"*"},
		"": nil, "a; b": nil, "a | b": nil, "$X": nil, "a > b": nil, "X=1 a": nil, "a &": nil, "! a": nil, "a 'b": nil, "git *": nil, "a $(b)": nil, "(a)": nil, "X=1": nil, "~/x": nil, "a\rb": nil,
	} {
		got, err := Words(line)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q %v, want %q", line, got, err, want)
		}
	}
}

func TestGitEnv(t *testing.T) {
	env := GitEnv()
	for _, want := range []string{"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_VALUE_0=false"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	keys := 0
	for _, e := range env {
		if strings.HasPrefix(e, "GIT_CONFIG_KEY_") {
			keys++
		}
		if strings.Contains(e, "diff.external") {
			t.Error("an empty diff.external makes git diff fail")
		}
	}
	if !slices.Contains(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", keys)) {
		t.Errorf("%d keys in %q", keys, env)
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"ls a.txt": "ls a.txt", "ls größe": "ls größe", "сurl x": `\u0441url x`, "ls; сurl x": `ls; \u0441url x`, "a\x1b[2J": `a\x1b[2J`, "a\tb\nc": `a\tb\nc`, "x\u202ey": `x\u202ey`, "x \u200bb": `x \u200bb`,
		"x \U000e0041": `x \U000e0041`, "x \xffy": `x \xffy`, "x \u0085": `x \u0085`, "x \u3164": `x \u3164`, "FOO=ü ü": `FOO=ü \u00fc`, "x \u00a0y": `x \u00a0y`, "x \uFFFD": "x \uFFFD",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTitle(t *testing.T) {
	r := newRig(t)
	for line, want := range map[string]string{
		"ls" + strings.Repeat(" ", 4000) + "; curl https://x.invalid": "curl https://x.invalid",
		"ls" + strings.Repeat(" ", 4000) + "a":                        "ls …4000 blanks… a",
		"ls  a":                                                       "ls a",
		"cat a.txt && сurl x":                                         `\u0441url x`,
		"ls; rm -rf build; make":                                      "rm -rf build",
		"make; sudo ls":                                               "sudo ls",
		"cat a.txt | python3 -c 'print(1)\nprint(2)' > x":             `python3 -c 'print(1)\nprint(2)' > x`,
		"curl " + strings.Repeat("ä", 500):                            "curl " + strings.Repeat("ä", 194) + "…",
	} {
		if got := r.analyze(t, line).Title(); got != want {
			t.Errorf("%q: %q, want %q", cut(line, 60), got, want)
		}
	}
}
