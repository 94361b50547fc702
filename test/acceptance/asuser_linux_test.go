package acceptance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// somebody is the number of an ordinary user, who need not have a name.
const somebody = 23456

// TestAsUser runs the tests of attacks and of what commands leave behind once
// more as somebody without rights.
func TestAsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this test becomes an ordinary user, which needs root; the others just ran as one")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("", "berth-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "acceptance.test")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, somebody, somebody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.v", "-test.timeout=300s", "-test.run=^(TestAttacks_SandboxAlone|TestAttacks_Unheld|TestNothingStays)$")
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), binaryVariable + "=" + binary}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: somebody, Gid: somebody}, Setsid: true}
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	if err != nil {
		t.Fatalf("%v\n%s", err, failures(out))
	}
	for _, want := range []string{"--- PASS: TestAttacks_SandboxAlone", "--- PASS: TestAttacks_Unheld", "--- PASS: TestNothingStays"} {
		if !strings.Contains(out, want) && !strings.Contains(out, strings.Replace(want, "PASS", "SKIP", 1)) {
			t.Errorf("no %q in the tests of the ordinary user", want)
		}
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "attacks") || strings.Contains(line, "nothing left") || strings.Contains(line, "SKIP") {
			t.Log(strings.TrimSpace(line))
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
	return all.String() + out[max(0, len(out)-4000):]
}
