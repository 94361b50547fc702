//go:build !unix

package bootstrap

import "os"

// endSignals are the signals that ask the process to end.
func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// brokenPipes are the signals of a write that finds no reader: none here.
func brokenPipes() []os.Signal { return nil }
