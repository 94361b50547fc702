//go:build !unix

package bootstrap

import "os"

// endSignals are the signals that ask the process to end.
func endSignals() []os.Signal { return []os.Signal{os.Interrupt} }
