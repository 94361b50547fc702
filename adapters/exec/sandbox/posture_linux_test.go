package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/core/domain"
)

// fakeBwrap is a program in place of bubblewrap.
func fakeBwrap(t *testing.T, script string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bwrap")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPosture(t *testing.T) {
	if landlockABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
	if p := New(Config{Mode: Namespaces}).Posture(t.Context()); !p.Confined() {
		t.Skipf("namespaces do not work here: %s", p.Reason)
	}
	missing := filepath.Join(t.TempDir(), "bwrap")
	old := fakeBwrap(t, "echo bubblewrap 0.8.0", 0o755)
	// One that says it is new and confines nothing: it runs what it is given.
	liar := fakeBwrap(t, `[ "$1" = --version ] && { echo bubblewrap 0.12.1; exit; }
while [ "$1" != -- ]; do shift; done; shift; p=$1; shift; cd /; exec "$p" "$@"`, 0o755)
	broken := fakeBwrap(t, `[ "$1" = --version ] && { echo bubblewrap 1.0.0; exit; }; echo no >&2; exit 1`, 0o755)
	open := fakeBwrap(t, "echo bubblewrap 1.0.0", 0o777)
	tests := []struct {
		name   string
		mode   string
		breaks breaks
		word   domain.PostureWord
		by     string
		reason string
		lacks  []string
	}{
		{"auto, all there", Auto, breaks{}, domain.PostureStrong, Namespaces, "", nil},
		{"auto, no bubblewrap", Auto, breaks{bwrap: missing}, domain.PostureStrong, Namespaces, "", nil},
		{"auto, no namespaces", Auto, breaks{namespaces: true, bwrap: missing}, domain.PosturePartial, Landlock, "bubblewrap is not installed", []string{lackMetadata, lackProtected}},
		{"auto, no namespaces, old bubblewrap", Auto, breaks{namespaces: true, bwrap: old}, domain.PosturePartial, Landlock, "0.8.0 is too old", []string{lackMetadata}},
		{"auto, no namespaces, lying bubblewrap", Auto, breaks{namespaces: true, bwrap: liar}, domain.PosturePartial, "", "", []string{lackMetadata}},
		{"auto, no Landlock", Auto, breaks{landlock: true, bwrap: missing}, domain.PosturePartial, Namespaces, "no Landlock", []string{lackSecond}},
		{"auto, no filter", Auto, breaks{seccomp: true, bwrap: missing}, domain.PosturePartial, Namespaces, "the probe could", []string{lackKernel}},
		{"auto, nothing", Auto, breaks{namespaces: true, landlock: true, bwrap: missing}, domain.PostureNone, "", "install", everything()},
		{"namespaces", Namespaces, breaks{}, domain.PostureStrong, Namespaces, "", nil},
		{"namespaces, none", Namespaces, breaks{namespaces: true}, domain.PostureNone, "", "switched off", everything()},
		{"namespaces, no Landlock", Namespaces, breaks{landlock: true}, domain.PosturePartial, Namespaces, "no Landlock", []string{lackSecond}},
		{"bubblewrap, missing", Bubblewrap, breaks{bwrap: missing}, domain.PostureNone, "", "not installed", everything()},
		{"bubblewrap, old", Bubblewrap, breaks{bwrap: old}, domain.PostureNone, "", "0.8.0 is too old", everything()},
		{"bubblewrap, broken", Bubblewrap, breaks{bwrap: broken}, domain.PostureNone, "", "ended with code 1 and told nothing: no", everything()},
		{"bubblewrap, open to all", Bubblewrap, breaks{bwrap: open}, domain.PostureNone, "", "can be changed by others", everything()},
		{"landlock", Landlock, breaks{}, domain.PosturePartial, Landlock, "without namespaces", []string{lackMetadata, lackProtected}},
		{"landlock, none", Landlock, breaks{landlock: true}, domain.PostureNone, "", "no Landlock", everything()},
		{"landlock, no filter", Landlock, breaks{seccomp: true}, domain.PostureNone, "", "filter", everything()},
		{"seatbelt", Seatbelt, breaks{}, domain.PostureNone, "", "macOS", everything()},
		{"unknown", "jail", breaks{}, domain.PostureNone, "", `"jail"`, everything()},
		{"none", None, breaks{}, domain.PostureOff, "", "", everything()},
		{"none, nothing there", None, breaks{namespaces: true, landlock: true, seccomp: true}, domain.PostureOff, "", "", everything()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Config{Mode: tt.mode})
			s.breaks = tt.breaks
			p := s.Posture(t.Context())
			t.Logf("%+v", p)
			if p.Word != tt.word || tt.by != "" && p.Backend != tt.by || tt.word == domain.PostureNone && p.Backend != "" {
				t.Errorf("%s by %q, want %s by %q (%s)", p.Word, p.Backend, tt.word, tt.by, p.Reason)
			}
			if !strings.Contains(p.Reason, tt.reason) || tt.reason != "" && p.Reason == "" {
				t.Errorf("the reason is %q, want %q", p.Reason, tt.reason)
			}
			for _, lack := range tt.lacks {
				if !slices.Contains(p.Lacks, lack) {
					t.Errorf("does not say that it lacks %q: %v", lack, p.Lacks)
				}
			}
			dir := t.TempDir()
			proc, err := s.Command(Spec{Argv: []string{"/bin/sh", "-c", "echo ran > ran"}, Dir: dir, Writable: []string{dir}})
			if tt.word == domain.PostureNone {
				wantCode(t, err, domain.Unavailable)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer proc.Close()
			if err := proc.Start(); err != nil {
				t.Fatal(err)
			}
			if res, err := proc.Wait(); err != nil || res.Code != 0 {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
}

// TestUserNamespacesOff is a machine whose user namespaces are switched off.
// The setting is per namespace, so it is made in one of our own.
func TestUserNamespacesOff(t *testing.T) {
	if os.Getenv("BERTH_TEST_NO_USERNS") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestUserNamespacesOff$", "-test.v")
		cmd.Env = append(os.Environ(), "BERTH_TEST_NO_USERNS=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if err != nil && len(out) == 0 {
			t.Skipf("no user namespace to test in: %v", err)
		}
		if err != nil || bytes.Contains(out, []byte("SKIP")) {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	p := New(Config{Mode: Namespaces}).Posture(t.Context())
	if p.Word != domain.PostureNone || !strings.Contains(p.Reason, "user.max_user_namespaces") {
		t.Errorf("%+v", p)
	}
	if p := New(Config{}).Posture(t.Context()); landlockABI() > 0 && (p.Word != domain.PosturePartial || p.Backend != Landlock) {
		t.Errorf("%+v", p)
	}
}

// TestAsUser runs the other tests as somebody without rights.
func TestAsUser(t *testing.T) {
	withoutRace(t)
	if os.Getuid() != 0 {
		t.Skip("this test becomes an ordinary user, which needs root; the others just ran as one")
	}
	const uid = 23456
	dir, err := os.MkdirTemp("", "berth-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "sandbox.test")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{dir, home} {
		if err := os.Chown(p, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "-test.short", "-test.v", "-test.timeout=200s",
		"-test.run=^(TestEscapes|TestMadeAndUndone|TestApproved|TestWork|TestReadOnly|TestOpened|TestHomeIsKept|TestPlantedInHome|TestGit|TestLimits|TestForkBomb|TestPosture|TestNotDumpable)$")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Setsid: true}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, failures(string(out)))
	}
	for _, want := range []string{"--- PASS: TestEscapes/namespaces", "--- PASS: TestPosture/auto,_all_there", "--- PASS: TestForkBomb", "--- PASS: TestWork/namespaces"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in the tests of the ordinary user", want)
		}
	}
}

// failures are the parts of a verbose test's output that belong to failed
// tests.
func failures(out string) string {
	var all strings.Builder
	for part := range strings.SplitSeq(out, "=== RUN ") {
		if strings.Contains(part, "--- FAIL") || strings.Contains(part, "panic:") {
			all.WriteString(part)
		}
	}
	return all.String() + out[max(0, len(out)-2000):]
}

// TestNotDumpable is a host that nobody may look into: its files in /proc
// belong to root then, and it must still be able to make namespaces.
func TestNotDumpable(t *testing.T) {
	if os.Getenv("BERTH_TEST_NOT_DUMPABLE") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestNotDumpable$", "-test.v")
		cmd.Env = append(os.Environ(), "BERTH_TEST_NOT_DUMPABLE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, Namespaces).needs()
	if _, out := w.mustRun(w.spec("echo fine")); out != "fine\n" {
		t.Errorf("said %q", out)
	}
}

// TestForgottenMain is a program that does not call Main and so, started as
// the helper, does once more what it always does. It must not go on like that.
func TestForgottenMain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "starts")
	cmd := exec.Command("/proc/self/exe", "act", "forgetful", out)
	said, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("a command ran without a helper: %s", said)
	}
	if starts := strings.Count(read(t, out), "start\n"); starts > 2 {
		t.Errorf("the program was started %d times", starts)
	}
}

// TestBinaryReplaced replaces the file of a running host by something else.
func TestBinaryReplaced(t *testing.T) {
	w := newWorld(t, Namespaces).needs()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(w.base, "host")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "act", "replaced", w.root, binary)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "still ours") {
		t.Errorf("%v: %s", err, out)
	}
}
