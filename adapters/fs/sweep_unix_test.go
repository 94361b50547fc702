//go:build unix

package fs

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/core/domain"
)

// TestSweep_Leaves guards T72: nothing outside, forbidden, special or on
// another device is read or entered, and that is said.
func TestSweep_Leaves(t *testing.T) {
	r := newRig(t)
	r.symlink("ws/leak", r.at("out"))
	r.symlink("ws/leakfile", r.at("out/secret.txt"))
	r.symlink("ws/src/loop", "..")
	r.symlink("ws/.ignore", r.at("out/secret.txt"))
	r.write("out/rules", "*.txt\n")
	r.symlink("ws/src/.gitignore", r.at("out/rules"))
	r.write("ws/src/seen.txt", "SECRET of our own")
	if err := unix.Mkfifo(r.at("ws/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(r.at("home/.ssh/id_rsa"), r.at("ws/hard")); err != nil {
		t.Fatal(err)
	}
	r.write("ws/plain", "text")
	if err := os.Link(r.at("ws/plain"), r.at("ws/plain2")); err != nil {
		t.Fatal(err)
	}
	r.open()
	a := r.call("search", "pattern", "SECRET|text", "hidden", true).want(t, "allow")
	want := "[3 matches in 3 of 5 files in the working directory]\nplain:1: text\nplain2:1: text\nsrc/seen.txt:1: SECRET of our own\n" +
		"[not searched: private, hard (forbidden); 5 symbolic links; 1 special file]\n"
	if a.text != want {
		t.Errorf("got\n%s\nwant\n%s", a.text, want)
	}
	g := r.call("glob", "pattern", "**/*").want(t, "allow").holds(t, "fifo  (a named pipe)\n", "leak -> "+r.at("out")+"\n", "src/loop -> ..\n", "[not looked at: private (forbidden)]")
	if strings.Contains(g.text, "p.txt") || strings.Contains(g.text, "leak/") || strings.Contains(g.text, "loop/") {
		t.Errorf("went too far: %s", g.text)
	}
	r.call("search", "pattern", "x", "path", "fifo").want(t, "deny").holds(t, "a named pipe")
	r.call("search", "pattern", "x", "path", "hard").want(t, "deny").holds(t, "forbidden")
	r.call("search", "pattern", "x", "path", "leakfile").want(t, "deny")
}

// TestSweep_ForbiddenByIdentity: a forbidden directory that is bound or moved
// below the root is still one.
func TestSweep_ForbiddenByIdentity(t *testing.T) {
	r := newRig(t)
	r.open()
	if err := os.Rename(r.at("home/.ssh"), r.at("ws/src/keys")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.at("ws/src/keys"), r.at("home/.ssh")); err != nil {
		t.Fatal(err)
	}
	a := r.call("search", "pattern", "SECRET").want(t, "allow").holds(t, "src/keys (forbidden)")
	if strings.Contains(a.text, "id_rsa") {
		t.Error(a.text)
	}
}

func TestSweep_Unreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may open everything")
	}
	r := newRig(t)
	r.write("ws/src/closed.txt", "M")
	r.write("ws/shut/f", "M")
	for _, p := range []string{"ws/src/closed.txt", "ws/shut"} {
		if err := os.Chmod(r.at(p), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(r.at("ws/shut"), 0o755) })
	r.open()
	r.call("search", "pattern", "M").want(t, "allow").holds(t, "src/main.go:1: M", "shut, src/closed.txt (cannot be opened)")
}

func TestSweep_OtherDevice(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("mounts a file system the way of Linux")
	}
	r := newRig(t)
	r.write("ws/mnt/below", "M")
	if err := mountScratch(r.at("ws/mnt")); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(r.at("ws/mnt"), 0); err != nil {
			t.Error(err)
		}
	})
	r.write("ws/mnt/other", "M")
	r.open()
	a := r.call("search", "pattern", "M").want(t, "allow").holds(t, "src/main.go:1: M", "mnt (on another device)")
	if strings.Contains(a.text, "other:") {
		t.Error(a.text)
	}
	r.call("search", "pattern", "M", "path", "mnt").want(t, "allow").holds(t, "mnt/other:1: M")
}

// TestSweep_Swaps guards T64 for glob and search: while a directory and a
// link to the outside change places, nothing outside is told.
func TestSweep_Swaps(t *testing.T) {
	for name, op := range map[string]swapped{
		"search": {did: "INSIDE", try: func(r *rig, _ int) string { return r.attempt("search", "pattern", "SECRET|E", "path", "d") }},
		"search file": {did: "INSIDE", try: func(r *rig, _ int) string {
			return r.attempt("search", "pattern", "SECRET|E", "path", "d/secret.txt")
		}},
		"search all": {did: "INSIDE", try: func(r *rig, _ int) string { return r.attempt("search", "pattern", "E") }},
		"glob": {did: "d/inside", set: func(r *rig) { r.write("ws/d/inside", "") }, try: func(r *rig, _ int) string {
			text := r.attempt("glob", "pattern", "**/*", "path", "d")
			if strings.Contains(text, "d/secret.txt") && !strings.Contains(text, "d/inside") {
				return "SECRET: " + text
			}
			return text
		}},
	} {
		op.dir, op.tries = "d", 500
		t.Run(name, func(t *testing.T) { playSwaps(t, op) })
	}
}

// TestPathPolicy_Search plays the cases of the path policy about reading and
// listing with search and glob: what may not be read may not be searched, and
// what may not be listed may not be looked through.
func TestPathPolicy_Search(t *testing.T) {
	for _, c := range policyCases(t) {
		if c.Input.Op != "read" && c.Input.Op != "list" || c.Input.Repeat > 0 {
			continue
		}
		if c.ID == "PA-042" {
			continue // a directory, which cannot be read but can be searched
		}
		t.Run(c.ID, func(t *testing.T) {
			if len(c.Input.OS) > 0 && !slices.Contains(c.Input.OS, runtime.GOOS) {
				t.Skipf("for %v only", c.Input.OS)
			}
			if slices.Contains(c.Input.Needs, "root") && os.Geteuid() != 0 {
				t.Skip("needs root, to make a device node")
			}
			r := newRig(t)
			fill := func(s string) string { return strings.ReplaceAll(s, "{{BASE}}", r.base) }
			var after []map[string]json.RawMessage
			for _, step := range c.Input.Setup {
				for kind, raw := range step {
					switch kind {
					case "after_session_new":
						if err := json.Unmarshal(raw, &after); err != nil {
							t.Fatal(err)
						}
					case "agent_workspace":
						r.session.Workspace = fill(text(t, raw))
					default:
						r.setUp(kind, raw)
					}
				}
			}
			r.open()
			for _, step := range after {
				for kind, raw := range step {
					r.setUp(kind, raw)
				}
			}
			path := ""
			if c.Input.Path != nil {
				path = fill(*c.Input.Path)
			} else {
				path = strings.Repeat(c.Input.PathGen.Repeat, c.Input.PathGen.Times)
			}
			var a answer
			if c.Input.Op == "read" {
				a = r.call("search", "path", path, "pattern", ".")
			} else {
				a = r.call("glob", "path", path, "pattern", "*")
				r.call("search", "path", path, "pattern", "SECRET").want(t, append([]string{c.Expected.Verdict}, c.Expected.AlsoOK...)...)
			}
			a.want(t, append([]string{c.Expected.Verdict}, c.Expected.AlsoOK...)...)
			if strings.Contains(a.text, "SECRET") || strings.Contains(a.text, "EVIL") {
				t.Errorf("told: %s", a.text)
			}
		})
	}
}

// TestSweep_HoldsWhatItPrepared: the directory that was looked up is the one
// that is searched.
func TestSweep_HoldsWhatItPrepared(t *testing.T) {
	r := newRig(t).open()
	p, err := r.prepare("search", args("path", "src", "pattern", "."))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(r.at("ws/src"), r.at("ws/was")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(r.at("out"), r.at("ws/src")); err != nil {
		t.Fatal(err)
	}
	if res, err := p.Run(t.Context(), nil); err != nil || !strings.Contains(res.Text, "main.go:1: M") || strings.Contains(res.Text, "SECRET") {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestSweep_Deep: a tree that is deeper than is looked at ends there, and so
// does one at level full that begins outside the roots.
func TestSweep_Deep(t *testing.T) {
	r := newRig(t)
	r.pol.Level, r.policy.Level = domain.LevelFull, domain.LevelFull
	at, err := unix.Open(r.at("ws"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range maxDepth + 5 {
		if err = errors.Join(err, unix.Mkdirat(at, "d", 0o755)); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(at)
		at = next
	}
	_ = unix.Close(at)
	r.open()
	r.call("glob", "pattern", "**/none*").want(t, "allow").holds(t, "(too deep)")
	r.call("search", "pattern", "SECRET", "path", r.at("out")).want(t, "allow").holds(t, r.at("out/secret.txt")+":1: SECRET")
	r.call("search", "pattern", "SECRET", "path", r.at("home"), "hidden", true).want(t, "allow").holds(t, "[no match", r.at("home/.ssh")+" (forbidden)")
}
