//go:build unix

package bootstrap

import (
	"os"
	"syscall"
)

// brokenPipes are the signals of a write that finds no reader. The runtime
// ends the process for one on standard error unless somebody waits for it,
// and an agent should outlive the reader of its log.
func brokenPipes() []os.Signal { return []os.Signal{syscall.SIGPIPE} }

// endSignals are the signals that ask the process to end.
func endSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }
