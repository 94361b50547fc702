package acpclient

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C from the agent: it is for the client, which cancels the
// turn; the agent must live to answer that.
func apart(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
