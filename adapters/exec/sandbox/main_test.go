package sandbox

import (
	"os"
	"testing"
)

// TestMain lets this test binary be the helper that its tests start, the
// programs that try to get out, and a host that is killed.
func TestMain(m *testing.M) {
	forgets := len(os.Args) > 2 && os.Args[2] == "forgetful"
	if IsHelper(os.Args) && !forgets {
		Main()
	}
	if len(os.Args) > 2 && os.Args[1] == "act" {
		os.Exit(act(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}
