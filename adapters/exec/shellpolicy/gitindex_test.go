package shellpolicy

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/core/domain"
)

// git runs git in dir with no settings but its own.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", args...)
	c.Dir = dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b",
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// withSubmodules makes the session's directory a repository with an ordinary
// file, a repository in it that .gitmodules does not know, and one in that.
func withSubmodules(t *testing.T, r *rig, init ...string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	r.must(t, os.RemoveAll(r.ws+"/.git"))
	r.must(t, os.RemoveAll(r.ws+"/nested"))
	for _, dir := range []string{r.ws, r.ws + "/sub/mod", r.ws + "/sub/mod/in"} {
		r.must(t, os.MkdirAll(dir, 0o755))
		git(t, dir, append([]string{"init", "-q"}, init...)...)
	}
	for _, dir := range []string{r.ws + "/sub/mod/in", r.ws + "/sub/mod", r.ws} {
		r.must(t, os.WriteFile(dir+"/a file", []byte("x"), 0o600))
		git(t, dir, "add", ".")
		git(t, dir, "commit", "-qm", "x")
	}
}

// Git looks into submodules with the settings that these have.
func TestAnalyze_GitSubmodules(t *testing.T) {
	const filter = "[filter \"x\"]\n\tclean = ./x\n"
	add := func(t *testing.T, r *rig, name, text string) {
		t.Helper()
		f, err := os.OpenFile(r.ws+name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		r.must(t, err)
		_, err = f.WriteString(text)
		r.must(t, err)
		r.must(t, f.Close())
	}
	for name, c := range map[string]struct {
		init []string
		set  func(t *testing.T, r *rig)
		want domain.AccessClass
	}{
		"harmless": {nil, func(*testing.T, *rig) {}, read},
		"one that says where its work tree is": {nil, func(t *testing.T, r *rig) {
			add(t, r, "/sub/mod/.git/config", "[core]\n\tworktree = ../../mod\n")
		}, read},
		"one that names a program":       {nil, func(t *testing.T, r *rig) { add(t, r, "/sub/mod/.git/config", filter) }, run},
		"one in one that does":           {nil, func(t *testing.T, r *rig) { add(t, r, "/sub/mod/in/.git/config", filter) }, run},
		"one that names it for its tree": {nil, func(t *testing.T, r *rig) { add(t, r, "/sub/mod/.git/config.worktree", filter) }, run},
		"with long hashes":               {[]string{"--object-format=sha256"}, func(t *testing.T, r *rig) { add(t, r, "/sub/mod/in/.git/config", filter) }, run},
		"in an index of version 4": {nil, func(t *testing.T, r *rig) {
			git(t, r.ws, "update-index", "--index-version", "4")
			add(t, r, "/sub/mod/.git/config", filter)
		}, run},
		"in an index of version 3": {nil, func(t *testing.T, r *rig) {
			add(t, r, "/a2", "")
			git(t, r.ws, "add", "-N", "a2")
			add(t, r, "/sub/mod/.git/config", filter)
		}, run},
		"in a split index": {nil, func(t *testing.T, r *rig) { git(t, r.ws, "update-index", "--split-index") }, run},
		"its repository is elsewhere": {nil, func(t *testing.T, r *rig) {
			r.must(t, os.Rename(r.ws+"/sub/mod/.git", r.ws+"/dist/g"))
			r.must(t, os.WriteFile(r.ws+"/sub/mod/.git", []byte("gitdir: ../../dist/g\n"), 0o600))
			add(t, r, "/dist/g/config", filter)
		}, run},
		"no submodule, only a repository in the directory": {nil, func(t *testing.T, r *rig) {
			git(t, r.ws, "rm", "-q", "--cached", "sub/mod")
			add(t, r, "/sub/mod/.git/config", filter)
		}, read},
		"an index of another form": {nil, func(t *testing.T, r *rig) { r.must(t, os.WriteFile(r.ws+"/.git/index", []byte("link"), 0o600)) }, run},
		"settings where commondir says": {nil, func(t *testing.T, r *rig) {
			r.must(t, os.MkdirAll(r.ws+"/dist/c", 0o755))
			add(t, r, "/dist/c/config", filter)
			add(t, r, "/.git/commondir", "../dist/c\n")
		}, run},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			withSubmodules(t, r, c.init...)
			c.set(t, r)
			if a := r.analyze(t, "git status"); a.Class != c.want {
				t.Errorf("%v, want %v: %+v", a.Class, c.want, a)
			}
		})
	}
}

func TestGitlinks(t *testing.T) {
	r := newRig(t)
	withSubmodules(t, r)
	paths, ok := gitlinks(r.ws+"/.git/index", false)
	if !ok || !slices.Equal(paths, []string{"sub/mod"}) {
		t.Errorf("%q, %v", paths, ok)
	}
	if paths, ok := gitlinks(r.ws+"/none", false); !ok || paths != nil {
		t.Errorf("without an index: %q, %v", paths, ok)
	}
	raw, err := os.ReadFile(r.ws + "/.git/index")
	r.must(t, err)
	for n := range raw { // whatever is cut off
		if got, ok := parseIndex(raw[:n], false); ok && !slices.Equal(got, paths) && len(got) > 1 {
			t.Errorf("the first %d bytes: %q", n, got)
		}
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x01"), false)
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"+strings.Repeat("\xff", 90)), true)
	f.Fuzz(func(_ *testing.T, raw []byte, long bool) { _, _ = parseIndex(raw, long) })
}
