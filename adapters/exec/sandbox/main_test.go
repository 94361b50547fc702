package sandbox

import (
	"os"
	"testing"
)

// TestMain lets this test binary be the helper that its tests start.
func TestMain(m *testing.M) {
	if IsHelper(os.Args) {
		Main()
	}
	os.Exit(m.Run())
}
