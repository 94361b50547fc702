package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// modes are those in which commands must work.
func modes() []string { return []string{Namespaces, Bubblewrap, Landlock, None} }

func TestWork(t *testing.T) {
	withoutRace(t)
	tests := []struct {
		name, line string
		want       string // in the output
		code       int
		not        []string // modes that cannot do it
	}{
		{name: "working directory", line: `pwd; cat main.txt`, want: "/home/work\nhello\n"},
		{name: "environment is what was given", line: `env | cut -d= -f1 | sort | tr '\n' ' '`, want: "BERTH_SANDBOX "},
		{name: "arguments are kept", line: `printf '[%s]' "a b" '' $'x\ny'`, want: "[a b][][x\ny]"},
		{name: "input is empty", line: `cat; echo "end $?"`, want: "end 0"},
		{name: "write in the root", line: `mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && cat a/d && rm -r a`, want: "x"},
		{name: "git directory is writable", line: `echo x > .git/index && cat .git/index`, want: "x"},
		{name: "file modes", line: `touch f && chmod 750 f && stat -c %a f`, want: "750"},
		{name: "links", line: `ln main.txt hard && ln -s main.txt soft && cat hard soft`, want: "hello\nhello\n"},
		{name: "null", line: `echo gone > /dev/null && cat /dev/null && echo ok`, want: "ok"},
		{name: "other devices", line: `head -c 4 /dev/zero | od -An -tx1; head -c 4 /dev/urandom | wc -c`, want: "00 00 00 00"},
		{name: "standard streams by name", line: `echo a > /dev/stdout; echo b > /dev/stderr; echo c > /dev/fd/1`, want: "a\nb\nc"},
		{name: "shared memory", line: `echo x > /dev/shm/f && cat /dev/shm/f`, want: "x", not: []string{Landlock, None}},
		{name: "temporary file", line: `f=$(mktemp) && echo x > $f && cat $f && rm $f`, want: "x"},
		{name: "sort with a temporary file", line: `seq 1 200000 | sort -S 1M -r | tail -1`, want: "1\n"},
		{name: "process substitution", line: `diff <(echo a) <(echo a) && cat <(echo ok)`, want: "ok"},
		{name: "here document", line: "cat <<E\nok\nE", want: "ok"},
		{name: "pipeline", line: `yes | head -3 | wc -l`, want: "3"},
		{name: "background and wait", line: `(sleep 0.01; echo late) & wait; echo done`, want: "late\ndone"},
		{name: "own processes", line: `sleep 5 & kill $! && wait $!; echo $?`, want: "143"},
		{name: "ids", line: `[ "$(stat -c %u main.txt)" = "$(id -u)" ] && echo same`, want: "same"},
		{name: "home is writable", line: `echo x > ~/.cache-test && cat ~/.cache-test`, want: "x"},
		{name: "server of its own", line: `"$ME" act serve && echo ok`, want: "ok", not: []string{Landlock}},
		{name: "python", line: `command -v python3 >/dev/null || { echo 4; exit; }; python3 -c 'print(2+2)'`, want: "4"},
		{name: "threads and pipes of python", line: `command -v python3 >/dev/null || { echo 6; exit; }; python3 -c 'import subprocess as s; print(len(s.run(["echo","hello"],capture_output=True).stdout))'`, want: "6"},
		{name: "perl", line: `perl -e 'print "ok\n"'`, want: "ok"},
		{name: "node", line: `command -v node >/dev/null || { echo ok; exit; }; node -e 'require("child_process").execFile("echo",["ok"],(e,o)=>console.log(o))'`, want: "ok"},
		{name: "exit code", line: `exit 42`, code: 42},
		{name: "marker", line: `echo "in $BERTH_SANDBOX"`, want: "in "},
	}
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			if mode != None {
				newWorld(t, mode).needs()
			}
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					if slices.Contains(tt.not, mode) {
						t.Skip(mode + " has no place of its own for this")
					}
					w := newWorld(t, mode)
					res, out := w.mustRun(w.spec(tt.line))
					if res.Code != tt.code || res.Signal != 0 {
						t.Errorf("code %d, signal %v: %s", res.Code, res.Signal, out)
					}
					if !strings.Contains(out, tt.want) {
						t.Errorf("said %q, want %q", out, tt.want)
					}
				})
			}
		})
	}
}

func TestExitCodesAndSignals(t *testing.T) {
	withoutRace(t)
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if mode != None {
				w.needs()
			}
			for _, code := range []int{0, 1, 2, 42, 125, 126, 127, 128, 129, 137, 143, 254, 255} {
				if res, out := w.mustRun(w.spec(fmt.Sprint("exit ", code))); res.Code != code || res.Signal != 0 {
					t.Errorf("exit %d: %+v %s", code, res, out)
				}
			}
			for _, sig := range []int{1, 2, 6, 8, 9, 11, 13, 14, 15, 31} {
				if res, out := w.mustRun(w.spec(fmt.Sprintf("kill -%d $$", sig))); int(res.Signal) != sig || res.Code != 128+sig {
					t.Errorf("signal %d: %+v %s", sig, res, out)
				}
			}
		})
	}
}

func TestNotStarted(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if mode != None {
				w.needs()
			}
			tests := []struct {
				name   string
				change func(*Spec)
				code   domain.Code
			}{
				{"no such program", func(s *Spec) { s.Argv[0] = "/usr/bin/no-such-program" }, domain.NotFound},
				{"not a program", func(s *Spec) { s.Argv[0] = filepath.Join(w.root, "main.txt") }, domain.Denied},
				{"relative program", func(s *Spec) { s.Argv[0] = "bash" }, domain.InvalidArgument},
				{"no directory", func(s *Spec) { s.Dir = filepath.Join(w.root, "none") }, domain.Denied},
				{"zero byte", func(s *Spec) { s.Env = append(s.Env, "A=\x00") }, domain.InvalidArgument},
				{"everything writable", func(s *Spec) { s.Writable = append(s.Writable, "/") }, domain.InvalidArgument},
			}
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					spec := w.spec("true")
					tt.change(&spec)
					_, _, err := w.run(spec)
					wantCode(t, err, tt.code)
				})
			}
		})
	}
}

func TestReadOnly(t *testing.T) {
	for _, mode := range []string{Namespaces, Bubblewrap, Landlock} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode).needs()
			before := tree(t, w.base)
			spec := w.spec(`cat main.txt; ls >/dev/null; seq 1 100000 | sort -S 1M -r | tail -1
				for f in main.txt new sub/x .git/index ~/x; do echo x 2>/dev/null > $f && echo "wrote $f"; done; rm -f main.txt; true`)
			spec.ReadOnly = true
			_, out := w.mustRun(spec)
			if !strings.Contains(out, "hello\n1\n") {
				t.Errorf("reading said %q", out)
			}
			if got := tree(t, w.base); got != before {
				t.Errorf("changed:\n%s\nwas\n%s", got, before)
			}
		})
	}
}

func TestOpened(t *testing.T) {
	for _, mode := range []string{Namespaces, Bubblewrap, Landlock} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode).needs()
			other := filepath.Join(w.base, "other")
			write(t, filepath.Join(other, "file"), "one\n")
			write(t, filepath.Join(other, "dir", "in"), "two\n")
			tests := []struct {
				name, line string
				change     func(*Spec)
				want       string
			}{
				{"readable file", `cat ` + other + `/file; echo x >> ` + other + `/file || echo denied`, func(s *Spec) { s.Readable = append(s.Readable, other+"/file") }, "one\n"},
				{"and nothing beside it", `cat ` + other + `/dir/in || echo denied`, func(s *Spec) { s.Readable = append(s.Readable, other+"/file") }, "denied"},
				{"extra directory", `echo three > ` + other + `/dir/new && cat ` + other + `/dir/*`, func(s *Spec) { s.Extra = append(s.Extra, other+"/dir") }, "two\nthree\n"},
				{"extra file", `echo four > ` + other + `/file && cat ` + other + `/file`, func(s *Spec) { s.Extra = append(s.Extra, other+"/file") }, "four\n"},
				{"extra that is missing", `echo five > ` + other + `/dir/five && cat ` + other + `/dir/five`, func(s *Spec) { s.Extra = append(s.Extra, other+"/dir/five") }, "five\n"},
			}
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					spec := w.spec(tt.line)
					tt.change(&spec)
					_, out := w.mustRun(spec)
					if !strings.Contains(out, tt.want) {
						t.Errorf("said %q, want %q", out, tt.want)
					}
				})
			}
			if mode != Landlock && strings.HasPrefix(w.base, "/tmp/") {
				t.Run("the system's temporary directory", func(t *testing.T) {
					for _, path := range []string{"/tmp", "/tmp/berth-is-not-there/x", "/var/tmp"} {
						spec := w.spec(`cat ` + other + `/file || echo hidden; echo x > /tmp/x && cat /tmp/x; echo y > /var/tmp/y && cat /var/tmp/y`)
						spec.Extra, spec.Readable = []string{path}, []string{path}
						if _, out := w.mustRun(spec); !strings.Contains(out, "hidden\nx\ny\n") {
							t.Errorf("with %s opened: %q", path, out)
						}
					}
					if _, err := os.Lstat("/tmp/x"); err == nil {
						t.Error("/tmp/x was written outside")
					}
				})
			}
			t.Run("forbidden stays forbidden", func(t *testing.T) {
				spec := w.spec("true")
				spec.Extra = []string{filepath.Join(w.home, ".ssh", "new")}
				_, _, err := w.run(spec)
				wantCode(t, err, domain.Denied)
			})
		})
	}
}

// TestHomeAsRoot is a session in the home directory itself.
func TestHomeAsRoot(t *testing.T) {
	w := newWorld(t, Namespaces).needs()
	spec := w.spec(`cat .ssh/id; echo x >> .bashrc; echo x > .npmrc; echo x > plain; ls -d .ssh`)
	spec.Writable, spec.Dir = []string{w.home}, w.home
	res, out := w.mustRun(spec)
	if strings.Contains(out, "canary") || !strings.Contains(out, ".ssh") {
		t.Errorf("said %q", out)
	}
	if got := read(t, filepath.Join(w.home, ".bashrc")); got != "# mine\n" {
		t.Errorf(".bashrc is %q", got)
	}
	if got := read(t, filepath.Join(w.home, "plain")); got != "x\n" {
		t.Errorf("plain is %q", got)
	}
	if want := []string{filepath.Join(w.home, ".npmrc")}; !slices.Equal(res.Undone, want) {
		t.Errorf("undone %v, want %v", res.Undone, want)
	}
}

// TestWorkspaceInHidden is an agent's workspace inside our own data, which is
// hidden as a whole.
func TestWorkspaceInHidden(t *testing.T) {
	w := newWorld(t, Namespaces).needs()
	data := filepath.Join(w.base, "data")
	write(t, filepath.Join(data, "berth.db"), "canary")
	root := filepath.Join(data, "workspace")
	write(t, filepath.Join(root, "notes"), "mine\n")
	w.box = New(Config{Mode: Namespaces, Home: w.home, Hidden: []string{data}})
	spec := w.spec(`cat notes; echo more >> notes; ls ..; cat ../berth.db`)
	spec.Writable, spec.Dir, spec.Readable = []string{root}, root, nil
	_, out := w.mustRun(spec)
	if strings.Contains(out, "canary") || strings.Contains(out, "berth.db\n") || !strings.Contains(out, "mine") {
		t.Errorf("said %q", out)
	}
	if got := read(t, filepath.Join(root, "notes")); got != "mine\nmore\n" {
		t.Errorf("notes are %q", got)
	}
}

// TestHomeIsKept is what commands write below the home: the next one finds
// it, the person's home does not have it.
func TestHomeIsKept(t *testing.T) {
	w := newWorld(t, Namespaces).needs()
	write(t, filepath.Join(w.home, ".cache", "go-build", "entry"), "built outside\n")
	w.mustRun(w.spec(`echo kept > ~/.tool; echo changed > ~/.cache/go-build/entry; echo new > ~/.cache/go-build/other`))
	_, out := w.mustRun(w.spec(`cat ~/.tool ~/.cache/go-build/entry ~/.cache/go-build/other`))
	if want := "kept\nchanged\nnew\n"; out != want {
		t.Errorf("the next command found %q, want %q", out, want)
	}
	if got := read(t, filepath.Join(w.home, ".cache", "go-build", "entry")); got != "built outside\n" {
		t.Errorf("the person's cache holds %q", got)
	}
	for _, name := range []string{".tool", ".cache/go-build/other"} {
		if _, err := os.Lstat(filepath.Join(w.home, name)); err == nil {
			t.Errorf("%s is in the person's home", name)
		}
	}
}

// TestPlantedInHome is a command that leaves links in the home it shares with
// later ones: they must neither lead out nor stop those.
func TestPlantedInHome(t *testing.T) {
	w := newWorld(t, Namespaces).needs()
	w.mustRun(w.spec(`cd ~ && rm -rf work .cache; ln -s "$OUT" work; ln -s /etc .cache; ls -la >/dev/null`))
	write(t, filepath.Join(w.home, ".cache", "go-build", "entry"), "x")
	res, out := w.mustRun(w.spec(`pwd; echo fine > new && cat new`))
	if res.Code != 0 || !strings.Contains(out, "fine") {
		t.Errorf("code %d: %s", res.Code, out)
	}
	if _, err := os.Lstat(filepath.Join(w.outside, "new")); err == nil {
		t.Error("a planted link led outside")
	}
}

func TestGit(t *testing.T) {
	withoutRace(t)
	git := tool(t, "git")
	for _, mode := range modes() {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode)
			if mode != None {
				w.needs()
			}
			root := filepath.Join(w.base, "repo")
			write(t, filepath.Join(root, "a"), "a\n")
			cmd := exec.Command(git, "-c", "init.defaultBranch=main", "init", "-q", root)
			cmd.Env = []string{"HOME=" + w.home, "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			steps := []struct {
				name, line, want string
				code             int
				undone           int
				not              []string
			}{
				{name: "status", line: `git status --porcelain`, want: "?? a"},
				{name: "commit", line: `git add a && git commit -qm one && git log --format=%s`, want: "one"},
				{name: "branch", line: `git checkout -qb side && echo b > b && git add b && git commit -qm two && git checkout -q - && git merge -q side && git log --format=%s | head -1`, want: "two"},
				{name: "stash", line: `echo c >> a && git stash -q && git stash pop -q && git diff --stat`, want: "a | 1 +"},
				{name: "gc", line: `git gc -q && git fsck && git status -s`, want: "M a"},
				{name: "configuration", line: `git config core.fsmonitor x && echo OPEN!`, code: 4, not: []string{Landlock, None}},
				{name: "new repository", line: `git init -q n && cd n && echo x > x && git add x && git commit -qm n && git log --format=%s`, want: "n"},
				{name: "clone", line: `git clone -q n m && git -C m log --format=%s && cat m/.git/config`, want: "n"},
				{name: "clone again", line: `git -C m status -sb && git -C m fetch -q`, want: "origin"},
				{name: "worktree", line: `git worktree add -q wt side && git -C wt status -sb`, want: "## side"},
				{name: "worktree again", line: `git -C wt status -sb && git worktree list`, want: "[side]"},
			}
			for _, s := range steps {
				t.Run(s.name, func(t *testing.T) {
					if slices.Contains(s.not, mode) {
						t.Skip(mode + " says that it cannot hold this")
					}
					spec := w.spec(s.line)
					spec.Writable, spec.Dir = []string{root}, root
					spec.Env = append(spec.Env, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_CONFIG_NOSYSTEM=1")
					res, out := w.mustRun(spec)
					if res.Code != s.code || !strings.Contains(out, s.want) || strings.Contains(out, "OPEN!") {
						t.Errorf("code %d, want %d; said %q, want %q", res.Code, s.code, out, s.want)
					}
					if len(res.Undone) != s.undone {
						t.Errorf("undone %v", res.Undone)
					}
				})
			}
		})
	}
}

func TestGoBuild(t *testing.T) {
	withoutRace(t)
	if testing.Short() {
		t.Skip("builds a program")
	}
	gobin := tool(t, "go")
	for _, mode := range []string{Namespaces, Bubblewrap, Landlock} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode).needs()
			root := filepath.Join(w.base, "module")
			write(t, filepath.Join(root, "go.mod"), "module example.test/m\n\ngo 1.24\n")
			write(t, filepath.Join(root, "m.go"), "package main\n\nfunc main() { println(Sum(2, 3)) }\n\nfunc Sum(a, b int) int { return a + b }\n")
			write(t, filepath.Join(root, "m_test.go"), "package main\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(2, 3) != 5 {\n\t\tt.Fatal()\n\t}\n}\n")
			// The person's own cache makes this quick, and shows that it is used.
			home, err := os.UserHomeDir()
			if err != nil {
				t.Skip(err)
			}
			line := `go build -o out . && ./out && go test ./...`
			if mode == Landlock {
				line = `go build -o out . && ./out && echo ok` // has no copies of caches
			}
			w.box = New(Config{Mode: mode, Home: home, State: w.state, Path: os.Getenv("PATH")})
			spec := w.spec(line)
			spec.Writable, spec.Dir = []string{root}, root
			spec.Env = append(spec.Env, "HOME="+home, "CGO_ENABLED=0", "GOFLAGS=-vet=off", "GOTOOLCHAIN=local")
			spec.Readable = append(spec.Readable, filepath.Dir(filepath.Dir(gobin)))
			res, out := w.mustRun(spec)
			if res.Code != 0 || !strings.Contains(out, "5\n") || !strings.Contains(out, "ok") {
				t.Errorf("code %d: %s", res.Code, out)
			}
		})
	}
}
