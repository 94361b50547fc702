//go:build unix

package acceptance

import (
	"os"
	"syscall"
)

// endDaemon tells a daemon to end in an orderly way.
func endDaemon(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
