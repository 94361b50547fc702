package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

func errorsIs(err error, code domain.Code) bool { return errors.Is(err, &domain.Error{Code: code}) }

// escape is a command that tries to get out. It prints "OPEN!" if it got
// through.
type escape struct {
	name string
	line string
	// weak names the backends that cannot hold it; their posture must say
	// lack.
	weak []string
	lack string
}

// escapes are commands that the sandbox alone must hold, whatever the shell
// policy says of them.
func escapes() []escape {
	landlock := []string{Landlock}
	act := func(name, what string) escape {
		return escape{name: name, line: `"$ME" act ` + what + ` && echo OPEN!`}
	}
	shell := func(name, line string) escape { return escape{name: name, line: line} }
	weak := func(e escape, lack string) escape {
		e.weak, e.lack = landlock, lack
		return e
	}
	return []escape{
		// T20, T28: files outside
		shell("append to a startup file", `echo x >> ~/.bashrc; echo x >> "$REALHOME/.bashrc"; true`),
		shell("startup file by its real path", `[ -w "$REALHOME/.bashrc" ] && grep -q mine "$REALHOME/.bashrc" && echo OPEN!`),
		shell("read outside", `cat "$OUT/secret" && echo OPEN!`),
		shell("write outside", `echo x >> "$OUT/secret" && echo OPEN!`),
		shell("make a file outside", `echo x > "$OUT/new" && echo OPEN!`),
		shell("remove outside", `rm -f "$OUT/secret" && [ -e "$OUT" ] && echo OPEN!`),
		shell("link to the outside", `ln -s "$OUT/secret" l && cat l && echo OPEN!`),
		shell("climb out", `cat ../../outside/secret && echo OPEN!`),
		shell("hard link from outside", `ln "$OUT/secret" hard && echo OPEN!`),
		shell("read through another process's root", `cat /proc/1/root"$OUT/secret" && echo OPEN!`),
		shell("read through the host's root", `cat /proc/$HOSTPID/root"$OUT/secret" && echo OPEN!`),
		shell("read through the host's directory", `cat /proc/$HOSTPID/cwd/* && echo OPEN!`),
		shell("forbidden directory", `cat "$REALHOME/.ssh/id" && echo OPEN!`),
		shell("shadow", `cat /etc/shadow && echo OPEN!`),
		shell("remount writable", `mount -o remount,rw / && echo OPEN!`),
		shell("write to the system", `touch /usr/x && echo OPEN!`),
		act("kernel setting", "sysctl"),
		{name: "forbidden directory in the root", line: `cat keys/secret && echo OPEN!`, weak: landlock, lack: ""},
		// T38: metadata
		weak(shell("chmod outside", `chmod 600 "$OUT/secret" && echo OPEN!`), lackMetadata),
		weak(shell("touch outside", `touch -c -d 2001-01-01 "$OUT/secret" && [ -e "$OUT/secret" ] && echo OPEN!`), lackMetadata),
		// T21-T24: protected names
		weak(shell("existing git configuration", `echo '[core] fsmonitor = x' >> .git/config && echo OPEN!`), lackProtected),
		weak(shell("git configuration by rename", `echo x > .git/c && mv -f .git/c .git/config && echo OPEN!`), lackProtected),
		weak(shell("remove the git configuration", `rm -f .git/config && echo OPEN!`), lackProtected),
		weak(shell("editor settings", `echo x > .vscode/settings.json && echo OPEN!`), lackProtected),
		weak(shell("new file in an editor's directory", `echo x > .vscode/tasks.json && echo OPEN!`), lackProtected),
		weak(shell("move the editor's directory", `mv .vscode v && echo OPEN!`), lackProtected),
		weak(shell("move the repository", `mv .git .g && echo OPEN!`), lackProtected),
		weak(shell("hook in a nested repository", `echo x > sub/.git/hooks/pre-commit && echo OPEN!`), lackProtected),
		weak(shell("configuration of a nested repository", `echo x > sub/.git/config && echo OPEN!`), lackProtected),
		// T29-T33: network and sockets
		act("TCP", `tcp "$TCP"`),
		shell("UDP", `"$ME" act udp "$UDP"`), // a packet may leave; it must not arrive
		act("name lookup", `resolve berth.invalid`),
		shell("TCP by bash", `exec 3<>/dev/tcp/${TCP%:*}/${TCP#*:} && echo OPEN!`),
		act("container socket", `unix "$SOCK"`),
		act("abstract socket", `unix "$ABSTRACT"`),
		act("raw socket", "raw"),
		act("packet socket", "packet"),
		act("socket of the hypervisor", "vsock"),
		act("kernel cryptography", "alg"),
		act("kernel events", "netlink"),
		// T34, T46: the agent
		shell("environment of the agent", `cat /proc/$HOSTPID/environ && echo OPEN!`),
		shell("environment of the first process", `cat /proc/$PPID/environ | tr '\0' '\n' | grep . && echo OPEN!`),
		shell("memory of the first process", `head -c 1 /proc/$PPID/mem; exec 3</proc/$PPID/mem && echo OPEN!`),
		shell("output of the agent", `echo x > /proc/$HOSTPID/fd/1 && echo OPEN!`),
		shell("output of the first process", `ls /proc/$PPID/fd/ && echo x > /proc/$PPID/fd/4 && echo OPEN!`),
		act("signal the agent", `kill "$HOSTPID"`),
		shell("kill the first process", `kill -9 $PPID && echo OPEN!`),
		act("trace the first process", `ptrace $PPID`),
		act("read the memory of the first process", `vm-read $PPID`),
		// T35, T36, T37
		act("inherited descriptor", "descriptors"),
		act("type into the terminal", "tiocsti"),
		act("terminal", "tty"),
		act("user namespace", "unshare"),
		act("user namespace by clone", "clone"),
		act("network namespace by clone", "clone-net"),
		act("clone3", "clone3"),
		act("setns", "setns"),
		act("mount", "mount"),
		act("umount", "umount"),
		act("fsopen", "fsopen"),
		act("open_tree", "open-tree"),
		act("pivot_root", "pivot-root"),
		act("chroot", "chroot"),
		act("io_uring", "io-uring"),
		act("keyring", "keyctl"),
		act("new key", "add-key"),
		act("bpf", "bpf"),
		act("perf", "perf"),
		act("userfaultfd", "userfaultfd"),
		act("kernel module", "module"),
		act("kexec", "kexec"),
		act("reboot", "reboot"),
		act("open by handle", "handle"),
		act("device file", "mknod dev"),
		act("become another user", "setuid"),
		shell("unshare", `unshare -Ur true && echo OPEN!`),
		shell("set-user-id program", `cp /bin/bash b && chmod u+s b && ./b -p -c 'grep -q "^CapEff:.*[1-9a-f]" /proc/self/status' && echo OPEN!`),
		shell("capabilities", `grep -q '^Cap\(Eff\|Prm\|Inh\|Amb\):.*[1-9a-f]' /proc/self/status && echo OPEN!`),
		shell("processes of others", `[ -d /proc/$HOSTPID ] && kill -0 $HOSTPID && echo OPEN!`),
	}
}

func TestEscapes(t *testing.T) {
	withoutRace(t)
	for _, mode := range []string{Namespaces, Bubblewrap, Landlock} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode).needs()
			posture := w.box.Posture(t.Context())
			env, reached := w.listeners()
			outside := tree(t, w.outside)
			bashrc := read(t, filepath.Join(w.home, ".bashrc"))
			for _, e := range escapes() {
				t.Run(e.name, func(t *testing.T) {
					if slices.Contains(e.weak, mode) {
						if e.lack != "" && !slices.Contains(posture.Lacks, e.lack) {
							t.Errorf("the posture does not say that it lacks %q: %v", e.lack, posture.Lacks)
						}
						t.Skipf("%s cannot hold this, and says so", mode)
					}
					spec := w.spec(e.line)
					spec.Env = append(spec.Env, env...)
					spec.Env = append(spec.Env, fmt.Sprint("HOSTPID=", os.Getpid()), "REALHOME="+w.home)
					_, out := w.mustRun(spec)
					if strings.Contains(out, "OPEN!") || strings.Contains(out, "canary") {
						t.Errorf("%s\ngot out: %s", e.line, out)
					}
					if r := reached(); len(r) > 0 {
						t.Errorf("%s\nreached us by %v", e.line, r)
					}
				})
			}
			if got := tree(t, w.outside); got != outside {
				t.Errorf("outside changed:\n%s\nwas\n%s", got, outside)
			}
			if got := read(t, filepath.Join(w.home, ".bashrc")); got != bashrc {
				t.Errorf(".bashrc is now %q", got)
			}
		})
	}
}

// TestEscapesAreReal runs escapes without a sandbox, where they must work:
// else the test above would prove nothing.
func TestEscapesAreReal(t *testing.T) {
	real := []string{
		"read outside", "write outside", "make a file outside", "climb out", "link to the outside", "hard link from outside", "forbidden directory",
		"forbidden directory in the root", "chmod outside", "existing git configuration", "git configuration by rename", "editor settings",
		"move the repository", "hook in a nested repository", "TCP", "TCP by bash", "container socket", "abstract socket",
		"environment of the agent", "signal the agent", "processes of others",
	}
	for _, e := range escapes() {
		if !slices.Contains(real, e.name) {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			w := newWorld(t, None)
			env, _ := w.listeners()
			spec := w.spec(e.line)
			spec.Env = append(append(spec.Env, env...), fmt.Sprint("HOSTPID=", os.Getpid()), "REALHOME="+w.home)
			if _, out := w.mustRun(spec); !strings.Contains(out, "OPEN!") {
				t.Errorf("%s\ndid nothing even without a sandbox: %s", e.line, out)
			}
		})
	}
}

// TestMadeAndUndone are protected names that did not exist: a command can make
// them, and they are gone when it ends.
func TestMadeAndUndone(t *testing.T) {
	withoutRace(t)
	tests := []struct {
		name, line string
		gone       []string // paths in the root that must not exist afterwards
		stays      []string
	}{
		{"hook where there was no directory", `mkdir -p .git/hooks && echo x > .git/hooks/pre-commit`, []string{".git/hooks/pre-commit"}, nil},
		{"agent settings", `mkdir .claude && echo x > .claude/settings.json`, []string{".claude"}, nil},
		{"mcp servers", `echo x > .mcp.json`, []string{".mcp.json"}, nil},
		{"deep", `mkdir -p a/b/c && echo x > a/b/c/.envrc`, []string{"a/b/c/.envrc"}, []string{"a/b/c"}},
		{"other letters", `echo x > .ENVRC; mkdir .VSCode`, []string{".ENVRC", ".VSCode"}, nil},
		{"workflow", `mkdir -p .github/workflows && echo x > .github/workflows/ci.yml && echo x > .github/CODEOWNERS`, []string{".github/workflows"}, []string{".github/CODEOWNERS"}},
		{"dangling link", `ln -s /nowhere .npmrc`, []string{".npmrc"}, nil},
		{"link to an existing file", `ln -s main.txt .mcp.json`, []string{".mcp.json"}, []string{"main.txt"}},
		{"new repository with a monitor", `mkdir -p n/.git && printf '[core]\n\tfsmonitor = ./x\n' > n/.git/config`, []string{"n/.git/config"}, nil},
		{"new repository with an include", `mkdir -p n/.git && printf '[include]\n\tpath = ../x\n' > n/.git/config`, []string{"n/.git/config"}, nil},
		{"new repository with a hook", `mkdir -p n/.git/hooks && echo x > n/.git/hooks/post-checkout`, []string{"n/.git/hooks/post-checkout"}, nil},
		{"repository elsewhere", `mkdir n && echo "gitdir: /tmp/x" > n/.git`, []string{"n/.git"}, nil},
		{"repository moved together with its directory", `mv sub moved && mkdir -p sub/.git && echo x > sub/.git/config`, []string{"sub/.git/config"}, []string{"moved/.git/config"}},
		{"attributes", `mkdir -p .git/info && echo '* filter=x' > .git/info/attributes`, []string{".git/info/attributes"}, nil},
		{"submodule's configuration", `mkdir -p .git/modules/m && printf '[core]\nsshCommand = x\n' > .git/modules/m/config`, []string{".git/modules/m/config"}, nil},
		{"worktree's configuration", `mkdir -p .git/worktrees/w && echo x > .git/worktrees/w/config.worktree`, []string{".git/worktrees/w/config.worktree"}, nil},
		{"ordinary files stay", `echo x > a.txt; mkdir -p .github .git/refs/heads; echo x > .git/refs/heads/config; echo x > config`, nil, []string{"a.txt", ".github", ".git/refs/heads/config", "config"}},
		{"a branch called hooks", `mkdir -p .git/refs/heads/hooks && echo x > .git/refs/heads/hooks/y`, nil, []string{".git/refs/heads/hooks/y"}},
		{"dependencies are let be", `mkdir -p node_modules/m/.vscode && echo x > node_modules/m/.npmrc`, nil, []string{"node_modules/m/.npmrc", "node_modules/m/.vscode"}},
	}
	for _, mode := range []string{Namespaces, Landlock} {
		t.Run(mode, func(t *testing.T) {
			newWorld(t, mode).needs()
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					w := newWorld(t, mode)
					res, out := w.mustRun(w.spec(tt.line))
					if res.Code != 0 {
						t.Fatalf("exit code %d: %s", res.Code, out)
					}
					for _, p := range tt.gone {
						if _, err := os.Lstat(filepath.Join(w.root, p)); err == nil {
							t.Errorf("%s is still there", p)
						}
						if !slices.ContainsFunc(res.Undone, func(u string) bool { return within(u, filepath.Join(w.root, p)) }) {
							t.Errorf("%s is not told: %v", p, res.Undone)
						}
					}
					for _, p := range tt.stays {
						if _, err := os.Lstat(filepath.Join(w.root, p)); err != nil {
							t.Errorf("%s is gone", p)
						}
					}
					if len(tt.gone) == 0 && len(res.Undone) > 0 {
						t.Errorf("undone: %v", res.Undone)
					}
				})
			}
		})
	}
}

func TestUndoneIsKept(t *testing.T) {
	w := newWorld(t, Namespaces).needs()
	res, _ := w.mustRun(w.spec(`mkdir .claude && echo precious > .claude/settings.json && ln -s "$OUT/secret" .claude/link`))
	if len(res.Undone) != 1 || res.Kept == "" {
		t.Fatalf("%+v", res)
	}
	if got := read(t, filepath.Join(res.Kept, ".claude", "settings.json")); got != "precious\n" {
		t.Errorf("kept %q", got)
	}
	if _, err := os.Lstat(filepath.Join(res.Kept, ".claude", "link")); err == nil {
		t.Error("a link was kept, with what it names")
	}
}

func TestApproved(t *testing.T) {
	tests := []struct {
		name, line string
		approved   []string
		want       int
		file, text string
	}{
		{"a file that exists", `echo x > .git/config`, []string{".git/config"}, 0, ".git/config", "x\n"},
		{"by rename", `echo x > .git/c && mv .git/c .git/config`, []string{".git/config"}, 0, ".git/config", "x\n"},
		{"a file that is missing", `echo x > .envrc`, []string{".envrc"}, 0, ".envrc", "x\n"},
		{"a directory", `echo x > .vscode/new.json`, []string{".vscode"}, 0, ".vscode/new.json", "x\n"},
		{"one file of a directory", `echo x > .vscode/new.json`, []string{".vscode/new.json"}, 0, ".vscode/new.json", "x\n"},
		{"not its neighbour", `echo x > .vscode/settings.json`, []string{".vscode/new.json"}, 1, ".vscode/settings.json", "{}"},
		{"a hook", `mkdir -p .git/hooks; echo x > .git/hooks/pre-push`, []string{".git/hooks/pre-push"}, 0, ".git/hooks/pre-push", "x\n"},
		{"another file", `echo x > .git/config`, []string{".envrc"}, 1, ".git/config", "[core]\n\tbare = false\n"},
	}
	newWorld(t, Namespaces).needs()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, Namespaces)
			spec := w.spec(tt.line)
			for _, a := range tt.approved {
				spec.AllowProtected = append(spec.AllowProtected, filepath.Join(w.root, a))
			}
			res, out := w.mustRun(spec)
			if res.Code != tt.want {
				t.Errorf("exit code %d, want %d: %s", res.Code, tt.want, out)
			}
			if got := read(t, filepath.Join(w.root, tt.file)); got != tt.text {
				t.Errorf("%s holds %q, want %q (undone %v)", tt.file, got, tt.text, res.Undone)
			}
		})
	}
}

func TestRootReplaced(t *testing.T) {
	for _, mode := range []string{Namespaces, Landlock} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t, mode).needs()
			t.Run("by a link, before the command", func(t *testing.T) {
				link := filepath.Join(w.base, "link")
				if err := os.Symlink(w.outside, link); err != nil {
					t.Fatal(err)
				}
				spec := w.spec("true")
				spec.Writable = []string{link}
				_, _, err := w.run(spec)
				wantCode(t, err, domain.Denied)
			})
			t.Run("by another directory, while it starts", func(t *testing.T) {
				root := filepath.Join(w.base, "r")
				write(t, filepath.Join(root, "a"), "")
				spec := w.spec("echo x > planted")
				spec.Writable, spec.Dir = []string{root}, root
				p, err := w.box.Command(spec)
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				if err := os.Rename(root, root+".old"); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(w.outside, root); err != nil {
					t.Fatal(err)
				}
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				_, err = p.Wait()
				wantCode(t, err, domain.Denied)
				if _, err := os.Lstat(filepath.Join(root, "planted")); err == nil {
					t.Error("the command wrote into the directory that took the root's name")
				}
			})
		})
	}
}
