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

// daemonSignals are the signals that ask a daemon to end.
func daemonSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM} }

// reloadSignals are those that ask a daemon to read its configuration again. A
// daemon has no terminal to lose.
func reloadSignals() []os.Signal { return []os.Signal{syscall.SIGHUP} }

// endSignals are the signals that ask the process to end.
func endSignals() []os.Signal { return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} }
