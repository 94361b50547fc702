package shellpolicy

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// rig is a session's directory with everything that a command may meet, and
// the path rules for it.
type rig struct {
	base, ws, home, out, data, agentWS, bin string
	forbidden                               []string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{base: base}
	r.ws, r.home, r.out = base+"/ws", base+"/home", base+"/out"
	r.data, r.agentWS, r.bin = base+"/data", base+"/agent", base+"/opt/berth"
	for _, dir := range []string{
		"ws/src", "ws/sub", "ws/build", "ws/dist", "ws/.git/hooks", "ws/.git/info", "ws/.git/objects", "ws/.git/refs/heads", "ws/nested/.git",
		"ws/many", "home/.ssh", "home/.config", "out", "data", "agent", "opt",
	} {
		r.must(t, os.MkdirAll(base+"/"+dir, 0o755))
	}
	for name, text := range map[string]string{
		"ws/README.md": "# Read me\n", "ws/a.txt": "A\nB\nC\n", "ws/b.txt": "B\n", "ws/notes.txt": "note\n", "ws/list.txt": "a.txt\n",
		"ws/main.go": "package main\n\nfunc main() {}\n", "ws/script.sh": "echo hi\n", "ws/src/x.go": "package x // TODO\n", "ws/src/y.go": "package x\n",
		"ws/sub/c.txt": "C\n", "ws/.git/HEAD": "ref: refs/heads/main\n", "ws/.git/config": "[core]\n\trepositoryformatversion = 0\n",
		"ws/many/-rf": "", "ws/many/plain": "", "out/secret.txt": "SECRET\n", "home/.ssh/id_rsa": "SECRET\n", "home/.bashrc": "", "data/sessions.db": "",
		"opt/berth": "#!/bin/sh\n", "secret.txt": "SECRET\n",
	} {
		r.must(t, os.WriteFile(base+"/"+name, []byte(text), 0o600))
	}
	r.must(t, os.Symlink("/etc", r.ws+"/link-etc"))
	r.must(t, os.Symlink("src", r.ws+"/link-src"))
	r.must(t, os.Symlink(r.out, r.ws+"/link-out"))
	r.forbidden = []string{"/etc", "/proc", "/sys", "/boot", "/run", "/var/run", "/dev", "/root", r.home + "/.ssh", r.home + "/.gnupg", r.home + "/.aws", r.home + "/.config", r.data}
	return r
}

func (r *rig) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// env is the fixture's environment: the sandbox is on.
func (r *rig) env() Env {
	return Env{
		Home: r.home, Cwd: r.ws, Own: []string{r.bin}, Forbidden: r.forbidden, ReadOnlySandbox: true,
		SystemPath: []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"},
	}
}

// Judge follows links as far as a path exists and compares names, which is
// what the path rules of the file tools come to here.
func (r *rig) Judge(_ context.Context, dir, path string) domain.Place {
	if dir == "" {
		dir = r.ws
	}
	switch {
	case path == "~" || strings.HasPrefix(path, "~/"):
		path = r.home + path[1:]
	case !filepath.IsAbs(path):
		path = dir + "/" + path
	}
	switch filepath.Clean(path) {
	case "/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/stdin", "/dev/stdout", "/dev/stderr":
		return domain.Place{Path: filepath.Clean(path), Where: domain.WhereInside, Exists: true}
	}
	real := resolve(path)
	p := domain.Place{Path: real, Where: domain.WhereOutside}
	if info, err := os.Stat(real); err == nil {
		p.Exists, p.Dir = true, info.IsDir()
	}
	for _, root := range []string{r.ws, r.agentWS, r.home} {
		p.Root = p.Root || below(real, root)
	}
	for _, root := range []string{r.ws, r.agentWS} {
		if below(root, real) {
			p.Where = domain.WhereInside
		}
	}
	for _, f := range r.forbidden {
		if below(f, real) {
			p.Where, p.Why = domain.WhereForbidden, real+" is forbidden"
		}
	}
	names := strings.Split(real, "/")
	for i, n := range names {
		switch strings.ToLower(n) {
		case ".bashrc", ".gitconfig", ".mcp.json", ".envrc", ".npmrc", ".gitmodules":
			p.Protected = p.Protected || i == len(names)-1
		case ".vscode", ".claude", ".husky", ".idea":
			p.Protected = true
		case ".git":
			rest := names[i+1:]
			p.Protected = p.Protected || len(rest) == 0 || rest[0] == "hooks" || rest[0] == "config"
		}
	}
	return p
}

// resolve follows the links of a path, component by component.
func resolve(path string) string {
	at, rest := "/", strings.Split(path, "/")
	for hops := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		if to, err := os.Readlink(next); err == nil && hops < 40 {
			hops++
			if filepath.IsAbs(to) {
				at = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
			continue
		}
		at = next
	}
	return at
}

// analyze judges a line in the fixture.
func (r *rig) analyze(t testing.TB, line string) Analysis {
	t.Helper()
	return analyze(t.Context(), line, r.env(), r)
}

// fill puts the fixture's paths into a line.
func (r *rig) fill(line string) string {
	return strings.NewReplacer("{{WS}}", r.ws, "{{HOME}}", r.home, "{{OUT}}", r.out, "{{DATA}}", r.data, "{{AGENT_BIN}}", r.bin).Replace(line)
}
