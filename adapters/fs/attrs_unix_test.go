//go:build unix

package fs

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWrite_KeepsTheMode(t *testing.T) {
	r := newRig(t).open()
	for name, mode := range map[string]os.FileMode{
		"secret": 0o600, "plain": 0o644, "program": 0o755, "group": 0o664, "setuid": 0o755 | os.ModeSetuid,
	} {
		r.write("ws/"+name, "one\n")
		if err := os.Chmod(r.at("ws/"+name), mode); err != nil {
			t.Fatal(err)
		}
		r.call("edit_file", "path", name, "old_text", "one", "new_text", "two").want(t, "allow")
		if fi, err := os.Stat(r.at("ws/" + name)); err != nil || fi.Mode() != mode {
			t.Errorf("%s: %v, %v", name, fi.Mode(), err)
		}
	}
	r.call("write_file", "path", "new", "content", "x").want(t, "allow")
	r.write("ws/other", "")
	made, err := os.Stat(r.at("ws/new"))
	if err != nil {
		t.Fatal(err)
	}
	if like, err := os.Stat(r.at("ws/other")); err != nil || made.Mode() != like.Mode() {
		t.Errorf("a new file has mode %v, one of this user has %v", made.Mode(), like.Mode())
	}
}

// TestWrite_KeepsTheOwner: root edits a user's file and leaves it the user's.
func TestWrite_KeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files away")
	}
	r := newRig(t).open()
	r.write("ws/f", "one")
	if err := os.Chown(r.at("ws/f"), 1234, 2345); err != nil {
		t.Fatal(err)
	}
	r.call("edit_file", "path", "f", "old_text", "one", "new_text", "two").want(t, "allow")
	var st unix.Stat_t
	if err := unix.Stat(r.at("ws/f"), &st); err != nil || st.Uid != 1234 || st.Gid != 2345 {
		t.Errorf("owner %d:%d, %v", st.Uid, st.Gid, err)
	}
}

// TestWrite_HardLinks guards T65: the file's other names keep their bytes, and
// the answer says so.
func TestWrite_HardLinks(t *testing.T) {
	r := newRig(t)
	r.write("ws/f", "one")
	r.must(os.Link(r.at("ws/f"), r.at("out/twin")))
	r.open()
	r.call("edit_file", "path", "f", "old_text", "one", "new_text", "two").want(t, "allow").holds(t, "other names")
	if r.read("out/twin") != "one" || r.read("ws/f") != "two" {
		t.Errorf("twin %q, f %q", r.read("out/twin"), r.read("ws/f"))
	}
	if a := r.call("write_file", "path", "f", "content", "three").want(t, "allow"); strings.Contains(a.text, "other names") {
		t.Error(a.text)
	}
}
