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

// withoutRace skips a test that starts many processes: the race detector makes
// each of them slow and large. "go run ./test/all" runs it once more without.
func withoutRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("it starts many processes; it runs once more without the race detector")
	}
}
