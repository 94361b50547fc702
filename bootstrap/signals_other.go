//go:build !unix

package bootstrap

import "os"

// endSignals are the signals that ask the process to end.
func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// daemonSignals are the signals that ask a daemon to end.
func daemonSignals() []os.Signal { return endSignals() }

// reloadSignals are those that ask a daemon to read its configuration again:
// none here.
func reloadSignals() []os.Signal { return nil }

// brokenPipes are the signals of a write that finds no reader: none here.
func brokenPipes() []os.Signal { return nil }
