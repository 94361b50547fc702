package providers

import (
	"os"
	"testing"

	"github.com/berth-dev/berth/bootstrap"
)

func TestMain(m *testing.M) {
	bootstrap.RunHelper() // this program may be started as the sandbox's helper
	os.Exit(m.Run())
}
