package sandbox

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// signalGroup can only end the process here, not what it started.
func signalGroup(p *os.Process, _ syscall.Signal) error { return p.Kill() }

func signalOf(*os.ProcessState) (syscall.Signal, bool) { return 0, false }
