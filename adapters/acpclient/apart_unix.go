//go:build unix

package acpclient

import (
	"os/exec"
	"syscall"
)

// apart keeps the agent out of the terminal's foreground group: Ctrl-C is for
// the client, which cancels the turn; the agent must live to answer that.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
