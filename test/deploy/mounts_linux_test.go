package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// somebody is an account without rights.
const somebody = 65534

// The sandbox of commands is as strong in the mounts of the unit as without,
// and what the unit leaves out would weaken it: then the comment there is still
// true.
func TestSandboxInTheUnit(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounts are made by root alone")
	}
	for _, tool := range []string{"unshare", "setpriv", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed", tool)
		}
	}
	// Not below /tmp, of which the service has its own.
	dir, err := os.MkdirTemp("/var/lib", "berth-test-")
	if err != nil {
		t.Skipf("no place for the program: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "berth")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/berth")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// Each run has a state of its own: what a sandbox can do is remembered there.
	fresh := func(name string) string {
		state := filepath.Join(dir, name)
		if err := os.Mkdir(state, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(state, somebody, somebody); err != nil {
			t.Fatal(err)
		}
		return state
	}
	id := strconv.Itoa(somebody)
	script, err := filepath.Abs("testdata/mounts.sh")
	if err != nil {
		t.Fatal(err)
	}
	posture := func(change string) string {
		cmd := exec.CommandContext(t.Context(), "unshare", "-m", "bash", script, change, fresh(change), id, program, "doctor")
		out, _ := cmd.CombinedOutput() // it ends with 1 when anything is to be mended
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "sandbox of profile") {
				return line
			}
		}
		t.Skipf("the mounts cannot be made here:\n%s", out)
		return ""
	}
	if got := posture("none"); !strings.Contains(got, "strong") {
		plain := exec.CommandContext(t.Context(), "setpriv", "--reuid", id, "--regid", id, "--clear-groups", "env", "HOME="+dir, "BERTH_DATA_DIR="+fresh("plain"), program, "doctor")
		if out, _ := plain.CombinedOutput(); !strings.Contains(string(out), "strong") {
			t.Skipf("name spaces are not to be had here at all:\n%s", out)
		}
		t.Errorf("in the unit: %s", got)
	}
	for _, change := range []string{"ProtectKernelTunables", "ProtectKernelLogs"} {
		if got := posture(change); strings.Contains(got, "strong") {
			t.Errorf("with %s: %s", change, got)
		}
	}
}
