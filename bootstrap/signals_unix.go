//go:build unix

package bootstrap

import (
	"os"
	"syscall"
)

// endSignals are the signals that ask the process to end.
func endSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }
