//go:build !unix

package bootstrap

import "os"

// endSignals are the signals that ask the process to end.
func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// daemonSignals are the signals that a daemon obeys.
func daemonSignals() []os.Signal { return endSignals() }

// asksReload reports whether a signal asks a daemon to read its configuration
// again: none does here.
func asksReload(os.Signal) bool { return false }

// brokenPipes are the signals of a write that finds no reader: none here.
func brokenPipes() []os.Signal { return nil }
