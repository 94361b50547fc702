package fs

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// asOrdinaryUser runs fn as a user whom the modes of files bind. For root that
// is a thread of its own with another user's file rights, which ends with it.
func asOrdinaryUser(t *testing.T, fn func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		fn()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread goes with the goroutine
		if err := unix.Setfsuid(65534); err != nil {
			t.Error(err)
			return
		}
		fn()
	}()
	<-done
}

func (r *rig) chmod(modes map[string]os.FileMode) {
	r.t.Helper()
	for name, mode := range modes {
		if err := os.Chmod(r.at(name), mode); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestWrite_FailedLeavesNothing(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/d/f", "old")
	r.chmod(map[string]os.FileMode{".": 0o755, "ws/d/f": 0o666, "ws/d": 0o555})
	defer func() { _ = os.Chmod(r.at("ws/d"), 0o755) }()
	asOrdinaryUser(t, func() {
		r.call("write_file", "path", "d/f", "content", "new").want(t, "deny").holds(t, "d/f: its directory is not writable")
		r.call("write_file", "path", "d/new", "content", "new").want(t, "deny").holds(t, "not writable")
		r.call("write_file", "path", "d/e/new", "content", "new").want(t, "deny").holds(t, "permission denied")
	})
	if names := r.names("ws/d"); r.read("ws/d/f") != "old" || !slices.Equal(names, []string{"f"}) {
		t.Errorf("left behind: %v", names)
	}
}

func TestRead_NotPermitted(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f", "old")
	r.write("ws/d/f", "old")
	r.chmod(map[string]os.FileMode{".": 0o755, "ws/f": 0, "ws/d": 0o711})
	asOrdinaryUser(t, func() {
		if os.Geteuid() == 0 { // the owner may list it
			r.call("list_directory", "path", "d").want(t, "deny").holds(t, "permission denied")
		}
		r.call("read_file", "path", "f").want(t, "deny").holds(t, "the system does not permit it")
		r.call("read_file", "path", "d/f").want(t, "allow") // going through needs no right to list
	})
}

// TestWrite_KeepsExtendedAttributes: what a file carries besides its bytes
// stays.
func TestWrite_KeepsExtendedAttributes(t *testing.T) {
	r := newRig(t).open()
	r.write("ws/f", "one")
	if err := unix.Setxattr(r.at("ws/f"), "user.note", []byte("kept"), 0); err != nil {
		t.Skipf("this file system has no extended attributes: %v", err)
	}
	r.call("edit_file", "path", "f", "old_text", "one", "new_text", "two").want(t, "allow")
	buf := make([]byte, 16)
	n, err := unix.Getxattr(r.at("ws/f"), "user.note", buf)
	if err != nil || string(buf[:n]) != "kept" {
		t.Errorf("attribute %q, %v", buf[:max(n, 0)], err)
	}
}
