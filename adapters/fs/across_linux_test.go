package fs

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMove_AcrossFileSystems: what cannot just get another name stays where it
// is, and the answer says why.
func TestMove_AcrossFileSystems(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "b")
	if err != nil {
		t.Skip("there is no second file system to be written to")
	}
	t.Cleanup(func() { _ = os.RemoveAll(other) })
	r := newRig(t)
	r.pol.Forbidden = append(r.pol.Forbidden, "!/dev")
	r.pol.AllowedRoots = []string{other}
	if a, err := statPath(other); err != nil {
		t.Fatal(err)
	} else if b, err := statPath(r.at("ws")); err != nil || a.id.dev == b.id.dev {
		t.Skip("both directories lie on the same file system")
	}
	r.open()
	for _, source := range []string{"a.txt", "src"} {
		a := r.call("move_file", "source", source, "destination", other+"/x/y").want(t, "deny").holds(t, "different file systems", "nothing was changed")
		if strings.Contains(a.text, "cross-device") {
			t.Error(a.text)
		}
	}
	if list, err := os.ReadDir(other); err != nil || len(list) > 0 || r.read("ws/a.txt") != "A" || r.read("ws/src/main.go") != "M" {
		t.Errorf("%v, %v", list, err)
	}
}

// TestDelete_StopsAtMounts: what is mounted in a directory is not deleted with
// it, even if it is a part of the same file system.
func TestDelete_StopsAtMounts(t *testing.T) {
	r := newRig(t)
	r.write("ws/d/mnt/x", "")
	if err := unix.Mount(r.at("out"), r.at("ws/d/mnt"), "", unix.MS_BIND, ""); err != nil {
		t.Skipf("needs the right to mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(r.at("ws/d/mnt"), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	r.open()
	r.call("delete_file", "path", "d", "recursive", true).want(t, "deny").holds(t, "mounted on d/mnt")
	if r.read("out/secret.txt") != "SECRET" {
		t.Error("what was mounted is gone")
	}
}
