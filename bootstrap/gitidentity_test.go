package bootstrap

import (
	"os"
	osexec "os/exec"
	"path/filepath"
	"testing"
)

// The private home gets the user's name and address for git and nothing else.
func TestKeepGitIdentity(t *testing.T) {
	git, err := osexec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	t.Setenv("XDG_CONFIG_HOME", "")
	home, state := t.TempDir(), t.TempDir()
	put(t, filepath.Join(home, ".gitconfig"), "[user]\n\tname = Ada \\\"L\\\" Byron\n\temail = ada@example.org\n[core]\n\tpager = touch planted\n[credential]\n\thelper = secret\n")
	file := filepath.Join(state, "home", ".gitconfig")
	keepGitIdentity(state, home, []string{"/nowhere", filepath.Dir(git)})
	got, err := os.ReadFile(file)
	want := "[user]\n\tname = \"Ada \\\"L\\\" Byron\"\n\temail = \"ada@example.org\"\n"
	if err != nil || string(got) != want {
		t.Fatalf("%v\n%s\nwant\n%s", err, got, want)
	}
	for key, value := range map[string]string{"user.name": "Ada \"L\" Byron", "user.email": "ada@example.org", "core.pager": ""} {
		if v := globalGit(git, filepath.Dir(file), key); v != value {
			t.Errorf("git reads %s as %q, want %q", key, v, value)
		}
	}
	put(t, file, "mine")
	keepGitIdentity(state, home, []string{filepath.Dir(git)})
	if got, _ := os.ReadFile(file); string(got) != "mine" {
		t.Errorf("a file that was there became %q", got)
	}
	for name, args := range map[string][2]string{"no home": {"", filepath.Dir(git)}, "no git": {home, "/nowhere"}, "no identity": {t.TempDir(), filepath.Dir(git)}} {
		state := t.TempDir()
		keepGitIdentity(state, args[0], []string{args[1]})
		if _, err := os.Stat(filepath.Join(state, "home", ".gitconfig")); err == nil {
			t.Errorf("%s: a file was written", name)
		}
	}
}
