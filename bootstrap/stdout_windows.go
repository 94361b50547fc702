package bootstrap

import (
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// takeStdout keeps the real standard output for the protocol alone and points
// everything that prints at standard error.
func takeStdout() (*os.File, error) {
	real := os.Stdout
	if err := windows.SetStdHandle(windows.STD_OUTPUT_HANDLE, windows.Handle(os.Stderr.Fd())); err != nil {
		return nil, fmt.Errorf("point standard output at standard error: %w", err)
	}
	os.Stdout = os.Stderr
	return real, nil
}
