package providers

import (
	"fmt"
	"os"
	"testing"

	"github.com/berth-dev/berth/bootstrap"
)

func TestMain(m *testing.M) {
	bootstrap.RunHelper() // this program may be started as the sandbox's helper
	if os.Getenv(bodiesVariable) != "" {
		if err := printBodies(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
