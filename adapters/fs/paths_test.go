package fs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/core/domain"
)

// TestPathProduct combines dot forms, separators and targets for every
// operation: whatever is made of them, nothing outside is read or written.
func TestPathProduct(t *testing.T) {
	r := newRig(t).open()
	r.symlink("ws/up", "..")
	r.symlink("ws/top", "/")
	outside := state(t, r.at("out"))
	ours := state(t, r.at("data"))
	dots := []string{"..", ".", "...", ".. ", "..\x00", "%2e%2e", "..%00", "\uFF0E\uFF0E", "\u2025", "src/..", "up", "top" + r.base, "src/../..", "..;", "~", "~/..", "$HOME/.."}
	separators := []string{"/", "//", "/./", `\`, "%2f", "\u2215", "\uFF0F", "/../out/../"}
	targets := []string{"out/secret.txt", "out", "data/sessions/acp-sessions.db", "ws-evil/secret.txt", "home/.ssh/id_rsa", "out/new.txt", "", "a.txt"}
	operations := map[string][]any{
		"read_file": nil, "list_directory": nil, "write_file": {"content", "OVERWRITTEN"},
		"edit_file": {"old_text", "SECRET", "new_text", "OVERWRITTEN"},
	}
	tried := 0
	for _, dot := range dots {
		for _, sep := range separators {
			for _, target := range targets {
				for _, path := range []string{dot + sep + target, r.at("ws") + "/" + dot + sep + target, dot + sep + dot + sep + target} {
					for tool, rest := range operations {
						tried++
						a := r.call(tool, append([]any{"path", path}, rest...)...)
						if strings.Contains(a.text, "SECRET") || strings.Contains(a.text, "BASE-A") || strings.Contains(a.text, "EVIL-A") {
							t.Errorf("%s %q told %s", tool, path, a.text)
						}
						if a.verdict == "allow" && a.plan.Access.Outside {
							t.Errorf("%s %q was allowed outside", tool, path)
						}
					}
				}
			}
		}
	}
	if tried < 3000 {
		t.Errorf("only %d", tried)
	}
	if state(t, r.at("out")) != outside || state(t, r.at("data")) != ours || r.read("a.txt") != "BASE-A" {
		t.Error("something outside changed")
	}
}

func TestAbsolutePathsOfARoot(t *testing.T) {
	r := newRig(t)
	r.symlink("given", r.at("ws"))
	r.symlink("alias", r.at("ws"))
	r.write("extra/e.txt", "E")
	r.symlink("ws/to-extra", r.at("extra/e.txt"))
	r.symlink("ws/rel-extra", "../extra/e.txt")
	r.session.CwdGiven = r.at("given")
	r.session.Additional = []string{r.at("extra")}
	r.open()
	for path, want := range map[string]string{
		r.at("ws/a.txt"):            "A",
		r.at("given/a.txt"):         "A",
		r.at("given/src/main.go"):   "M",
		r.at("alias/a.txt"):         "A", // a name we were not told, of a directory we hold
		r.at("out/../ws/a.txt"):     "A",
		r.at("ws/src/../a.txt"):     "A",
		r.at("extra/e.txt"):         "E",
		"../extra/e.txt":            "E",
		"to-extra":                  "E",
		"rel-extra":                 "E",
		r.at("ws") + "//./a.txt":    "A",
		r.at("agent") + "/notes.md": "N",
	} {
		r.call("read_file", "path", path).want(t, "allow").holds(t, "\n"+want)
	}
	a := r.call("write_file", "path", "to-extra", "content", "e").want(t, "allow")
	if a.plan.Access.Scope != r.at("extra") || a.plan.Access.Paths[0] != r.at("extra/e.txt") {
		t.Errorf("access %+v", a.plan.Access)
	}
	// Relative paths mean the working directory, never another root.
	r.call("read_file", "path", "e.txt").want(t, "not_found")
	r.call("read_file", "path", "notes.md").want(t, "not_found")
}

func TestHome(t *testing.T) {
	r := newRig(t)
	r.write("home/project/a.txt", "H")
	r.session.Cwd, r.session.CwdGiven = r.at("home/project"), r.at("home/project")
	r.open()
	r.call("read_file", "path", "~/project/a.txt").want(t, "allow").holds(t, "\nH")
	r.call("list_directory", "path", "~").want(t, "deny")
	r.call("read_file", "path", "~root/x").want(t, "deny").holds(t, "a user's home", "./~root/x")
	r.call("write_file", "path", "./~root", "content", "x").want(t, "allow")
}

// TestForbiddenBeatsRoots: a home directory as root keeps its secrets, also
// those that do not exist yet, whatever they are called.
func TestForbiddenBeatsRoots(t *testing.T) {
	r := newRig(t)
	r.session.Cwd, r.session.CwdGiven = r.at("home"), r.at("home")
	r.conf.DataDir = r.at("home/.local/share/berth")
	r.session.Workspace = r.at("home/.local/share/berth/agents/default/workspace")
	r.write("home/.local/share/berth/agents/default/workspace/n.md", "N")
	r.write("home/.local/share/berth/agents/other/workspace/n.md", "O")
	r.write("home/.local/share/berth/token", "SECRET")
	r.symlink("home/keys", ".ssh")
	r.pol = Policy{AllowedRoots: []string{"~/.gnupg", r.at("out")}}
	r.policy.Level = domain.LevelFull // forbidden in full too
	r.pol.Level = domain.LevelFull
	r.open()
	for _, path := range []string{
		".ssh/id_rsa", "~/.ssh/id_rsa", "keys/id_rsa", ".ssh", ".aws/credentials", ".config/x/y", ".gnupg/a",
		".local/share/berth/token", ".local/share/berth", ".local/share/berth/agents/other/workspace/n.md", ".ssh/../.ssh/id_rsa",
		".local/share/berth/agents/default/workspace/../../../token", "/etc/passwd", "/proc/self/environ", "/dev/zero", "/proc/self/root" + r.at("out"),
	} {
		for _, tool := range []string{"read_file", "list_directory", "write_file"} {
			pairs := []any{"path", path}
			if tool == "write_file" {
				pairs = append(pairs, "content", "x")
			}
			a := r.call(tool, pairs...).want(t, "deny").holds(t, "forbidden")
			if strings.Contains(a.text, "SECRET") {
				t.Errorf("%s %s told the secret", tool, path)
			}
		}
	}
	r.absent("home/.aws")
	r.absent("home/.gnupg/a")
	for path, want := range map[string]string{
		".local/share/berth/agents/default/workspace/n.md":              "N",
		r.session.Workspace + "/n.md":                                   "N",
		r.at("out/secret.txt"):                                          "SECRET",
		".local/share/berth/agents/default/workspace/../workspace/n.md": "N",
	} {
		r.call("read_file", "path", path).want(t, "allow").holds(t, "\n"+want)
	}
}

func TestPolicyLists(t *testing.T) {
	r := newRig(t)
	r.conf.ConfigDir = r.at("home/.config/berth")
	r.write("home/.config/nvim/init.lua", "L")
	r.write("home/.config/berth/config.toml", "SECRET")
	r.write("extra/e.txt", "E")
	r.pol = Policy{AllowedRoots: []string{"~/.config/nvim", r.at("extra"), r.at("none")}, Forbidden: []string{"!~/.config", "!" + r.at("home/.config/berth"), "!" + r.at("data"), r.at("extra/no")}}
	r.open()
	r.call("read_file", "path", "~/.config/nvim/init.lua").want(t, "allow")
	r.call("read_file", "path", "~/.config/berth/config.toml").want(t, "deny").holds(t, "forbidden")
	r.call("read_file", "path", r.at("data/sessions/acp-sessions.db")).want(t, "deny").holds(t, "forbidden")
	r.call("read_file", "path", r.at("extra/e.txt")).want(t, "allow")
	r.call("write_file", "path", r.at("extra/no"), "content", "").want(t, "deny").holds(t, "forbidden")
	r.call("read_file", "path", r.at("none/x")).want(t, "not_found")

	// Profiles are read again for every call.
	r.pol = Policy{}
	r.call("read_file", "path", r.at("extra/e.txt")).want(t, "deny")
	r.call("read_file", "path", "private/p.txt").want(t, "allow")

	// A configured root that appears later is taken then.
	r.pol = Policy{AllowedRoots: []string{r.at("later")}}
	r.call("read_file", "path", r.at("later/x")).want(t, "not_found")
	r.write("later/x", "X")
	r.call("read_file", "path", r.at("later/x")).want(t, "allow")

	for _, bad := range []Policy{{AllowedRoots: []string{"x"}}, {Forbidden: []string{"!x/y"}}, {Forbidden: []string{"~other/x"}}} {
		if err := bad.Validate(); !domain.HasCode(err, domain.InvalidArgument) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := (Policy{AllowedRoots: []string{"/x", "~/y"}, Forbidden: []string{"!~/.config", "~"}}).Validate(); err != nil {
		t.Error(err)
	}
}

// TestFullLevel: paths outside can be used without being asked; protected and
// forbidden ones cannot.
func TestFullLevel(t *testing.T) {
	r := newRig(t)
	r.pol.Level, r.policy.Level = domain.LevelFull, domain.LevelFull
	r.symlink("ws/leak", r.at("out/secret.txt"))
	r.symlink("out/back", r.at("ws/a.txt"))
	r.open()
	a := r.call("read_file", "path", r.at("out/secret.txt")).want(t, "allow").holds(t, "SECRET")
	if !a.plan.Access.Outside {
		t.Error("not marked as outside")
	}
	r.call("read_file", "path", "leak").want(t, "allow").holds(t, "SECRET")
	r.call("read_file", "path", "../out/secret.txt").want(t, "allow").holds(t, "SECRET")
	if back := r.call("read_file", "path", r.at("out/back")).want(t, "allow").holds(t, "\nA"); back.plan.Access.Outside {
		t.Error("a link back into the root is outside")
	}
	r.call("list_directory", "path", "/").want(t, "allow")
	if a := r.call("write_file", "path", r.at("out/new.txt"), "content", "x").want(t, "allow"); a.plan.Access.Scope != "" {
		t.Errorf("access outside can be remembered for %q", a.plan.Access.Scope)
	}
	r.call("write_file", "path", r.at("out/.git/hooks/x"), "content", "x").want(t, "deny")
	r.call("write_file", "path", ".git/config", "content", "x").want(t, "deny")
	r.call("write_file", "path", ".github/workflows/ci.yml", "content", "x").want(t, "allow")
	r.call("write_file", "path", "private/x", "content", "x").want(t, "deny")
}

func TestProtectedNames(t *testing.T) {
	for path, want := range map[string]protection{
		"a.txt": ordinary, "src/config": ordinary, ".gitignore": ordinary, ".git/refs/heads/x": ordinary, ".git/HEAD": ordinary, "git/config": ordinary,
		"x.npmrc": ordinary, "hooks/pre-commit": ordinary, ".github/CODEOWNERS": ordinary, "vscode/x": ordinary, ".vscodex/a": ordinary,
		".git/config": protected, ".git/hooks/pre-commit": protected, "sub/.git/hooks/a/b": protected, ".git/info/attributes": protected, ".git": protected,
		".git/modules/lib/hooks/x": protected, ".git/modules/lib/config": protected, ".git/worktrees/w/config.worktree": protected,
		".gitmodules": protected, "a/b/.gitmodules": protected, ".vscode/tasks.json": protected, ".vscode": protected, "x/.idea/y": protected,
		".zed/settings.json": protected, ".cursor/rules": protected, ".claude/settings.json": protected, ".codex/x": protected, ".gemini/x": protected,
		".berth/x": protected, ".mcp.json": protected, ".envrc": protected, ".ripgreprc": protected, ".npmrc": protected, "home/.bashrc": protected,
		".local/share/systemd/user/default.target.wants/x.service": protected, ".local/share/applications/x.desktop": protected, ".local/share/systemd": protected,
		"home/u/Library/LaunchAgents/x.plist": protected, ".local/share/dbus-1/services/x.service": protected, "sub/.hg/hgrc": protected, ".hg/store/x": ordinary,
		".local/share/x": ordinary, "applications/x": ordinary, ".devcontainer/devcontainer.json": protected, ".tmux.conf": protected, ".Rprofile": protected,
		".yarnrc.yml": protected, ".vim/plugin/x.vim": protected, ".windsurf/x": protected, "yarn.lock": ordinary, ".vimrc.md": ordinary,
		".zshrc": protected, ".profile": protected, ".husky/pre-push": protected, ".pre-commit-config.yaml": protected,
		".github/workflows/ci.yml": askOnly, "x/.github/workflows/y": askOnly,
		// Other spellings of the same names.
		".GIT/hooks/x": protected, ".Git/Config": protected, ".git\u200c/hooks/x": protected, ".g\u00adit/config": protected, ".gi\u200dt/hoo\ufeffks/x": protected,
		".git./config": protected, ".git /config": protected, "git~1/config": protected, "GIT~1/hooks/x": protected, ".git::$INDEX_ALLOCATION/config": protected,
		".git/config::$DATA": protected, ".VSCODE/tasks.json": protected, ".vſcode/tasks.json": protected, ".huſ\u212Ay/x": protected, ".mcp.json.": protected, ".ENVRC": protected,
		".GitHub/WorkFlows/x": askOnly,
	} {
		names, _ := components(path)
		if got := protectionOf("/home/u/project", names); got != want {
			t.Errorf("%q: %d, want %d", path, got, want)
		}
	}
	for _, c := range []struct {
		root, path string
		want       protection
	}{
		{"/p/.git", "hooks/x", protected}, {"/p/.git/hooks", "x", protected}, {"/p/.git", "HEAD", ordinary},
		{"/p/.vscode", "tasks.json", protected}, {"/h/.local/share", "systemd/user/x", protected}, {"/p/.claude/skills", "x.md", protected}, {"/p/.github/workflows", "ci.yml", askOnly},
		{"/home/u/.cursor/worktrees/x/p", "main.go", ordinary}, {"/home/u/.claude/worktrees/p", "main.go", ordinary},
		{"", "home/u/.bashrc", protected}, {"", "home/u/.vscode/x", protected},
	} {
		names, _ := components(c.path)
		if got := protectionOf(c.root, names); got != c.want {
			t.Errorf("%q below %q: %d, want %d", c.path, c.root, got, c.want)
		}
	}
}

// TestProtectedThroughLinks: what counts is where the path leads.
func TestProtectedThroughLinks(t *testing.T) {
	r := newRig(t)
	r.write("ws/.git/hooks/x", "")
	r.symlink("ws/h", ".git/hooks")
	r.symlink("ws/c.txt", ".git/config")
	r.open()
	r.call("write_file", "path", "h/pre-commit", "content", "x").want(t, "ask")
	a := r.call("write_file", "path", "c.txt", "content", "x").want(t, "ask")
	if rule := domain.Decide(domain.Policy{Level: domain.LevelSupervised}, nil, a.plan.Access); len(rule.Always) > 0 {
		t.Error("a protected write can be remembered")
	}
	r.call("read_file", "path", "h/x").want(t, "allow")
}

func TestHardLinkMadeAfterAScan(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a scan is trusted for a second here")
	}
	r := newRig(t).open()
	r.write("ws/pair", "P")
	if err := os.Link(r.at("ws/pair"), r.at("ws/twin")); err != nil {
		t.Fatal(err)
	}
	r.call("read_file", "path", "pair").want(t, "allow") // scans
	if err := errors.Join(os.Link(r.at("home/.ssh/id_rsa"), r.at("ws/key")), os.Link(r.at("data/sessions/acp-sessions.db"), r.at("ws/db"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"key", "db"} {
		a := r.call("read_file", "path", name).want(t, "deny").holds(t, "forbidden")
		if strings.Contains(a.text, "SECRET") {
			t.Error("told")
		}
		r.call("edit_file", "path", name, "old_text", "SECRET", "new_text", "x").want(t, "deny")
	}
}

func TestSharedDirectories(t *testing.T) {
	r := newRig(t)
	r.disk = New(r.conf)
	source := NewSource(r.disk)
	var sets []interface{ Close() error }
	for i := range 1000 {
		s := r.session
		s.ID = domain.SessionID(fmt.Sprint("s", i))
		set, err := source.Open(t.Context(), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		sets = append(sets, set)
	}
	if n := len(r.disk.handles); n != 2 {
		t.Errorf("%d directories are open for 1,000 sessions over two", n)
	}
	for _, s := range sets {
		if err := errors.Join(s.Close(), s.Close()); err != nil { // twice is no harm
			t.Fatal(err)
		}
	}
	if n := len(r.disk.handles) + len(r.disk.open); n != 0 {
		t.Errorf("%d stay", n)
	}
}

func TestClosedSession(t *testing.T) {
	r := newRig(t).open()
	p, err := r.prepare("write_file", args("path", "a.txt", "content", "B"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.set.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.prepare("read_file", args("path", "a.txt")); !domain.HasCode(err, domain.Cancelled) {
		t.Errorf("err %v", err)
	}
	// A call under way keeps what it holds.
	if res, err := p.Run(t.Context(), nil); err != nil || res.Failed || r.read("ws/a.txt") != "B" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestMissingRootComesBack(t *testing.T) {
	r := newRig(t)
	if err := os.Rename(r.at("ws"), r.at("away")); err != nil {
		t.Fatal(err)
	}
	r.open() // a session is no error
	r.call("read_file", "path", "a.txt").want(t, "not_found").holds(t, r.at("ws")+" does not exist")
	r.call("read_file", "path", r.at("agent/notes.md")).want(t, "allow")
	if err := os.Rename(r.at("away"), r.at("ws")); err != nil {
		t.Fatal(err)
	}
	r.call("read_file", "path", "a.txt").want(t, "allow")
}

// TestDeepPaths: the way is bounded in time and in descriptors.
func TestDeepPaths(t *testing.T) {
	r := newRig(t).open()
	start := time.Now()
	deep := strings.Repeat("d/", 1500)
	if runtime.GOOS == "linux" { // made a step at a time; the whole is longer than a system call takes
		d, err := openPath(r.at("ws"))
		if err != nil {
			t.Fatal(err)
		}
		for range 1500 {
			if err := d.mkdir("d", 0o755); err != nil {
				t.Fatal(err)
			}
			sub, err := d.sub("d")
			_ = d.close()
			if err != nil {
				t.Fatal(err)
			}
			d = sub
		}
		_ = d.close()
		r.call("read_file", "path", deep+"none").want(t, "not_found")
		r.call("read_file", "path", deep+strings.Repeat("../", 1500)+"a.txt").want(t, "error", "deny")
	}
	r.call("write_file", "path", strings.Repeat("n/", 100)+"x", "content", "").want(t, "deny").holds(t, "100 directories")
	r.call("read_file", "path", strings.Repeat("src/../", 2000)+"a.txt").want(t, "allow")
	if took := time.Since(start); took > time.Minute { // it would take for ever
		t.Errorf("took %v", took)
	}
	_ = os.RemoveAll(r.at("ws/d"))
}
