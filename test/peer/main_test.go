package peer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestMain builds the program once, with the race detector where the tests
// have it, and runs the tests against that binary.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-peer-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, program())
	args := []string{"build", "-o", binary}
	if raced {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "github.com/berth-dev/berth/cmd/berth")...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "go build ./cmd/berth:", err)
		return 1
	}
	return m.Run()
}

// binary is the program under test; TestMain sets it before any test runs.
var binary string

func program() string {
	if runtime.GOOS == "windows" {
		return "berth.exe"
	}
	return "berth"
}
