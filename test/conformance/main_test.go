package conformance

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

var update = flag.Bool("update", false, "write docs/conformance.md")

// binary is the built command, made once by TestMain; schema is the published
// schema, nil when none was named.
var (
	binary string
	schema *published
)

func TestMain(m *testing.M) {
	if os.Getenv(brokenEnv) != "" {
		os.Exit(serveBroken())
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	flag.Parse()
	// Tests mostly wait for a process, so more of them than there are cores
	// may be under way.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(fmt.Sprint(max(6, runtime.NumCPU())))
	}
	dir, err := os.MkdirTemp("", "berth-conformance-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if path := os.Getenv("BERTH_ACP_SCHEMA"); path != "" {
		if schema, err = readSchema(path); err != nil {
			fmt.Fprintln(os.Stderr, "BERTH_ACP_SCHEMA:", err)
			return 1
		}
	}
	binary = filepath.Join(dir, "berth")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	args := []string{"build", "-o", binary}
	if raced {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "github.com/berth-dev/berth/cmd/berth")...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binary: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
