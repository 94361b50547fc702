//go:build unix

package exec

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
)

// superviseName is argv[0] of our own binary when it is to hold a command.
const superviseName = "berth-hold"

// The helper's descriptors besides its streams.
const (
	lifelineFD = 3
	statusFD   = 4
)

// Supervise runs a command and ends all that it leaves behind, when args, the
// arguments of this process with its name, say so; otherwise it returns false
// at once. The program must end with the code then. It must be called before
// anything else is started or opened.
//
// The helper adopts whatever the command lets go of, tells its host the
// command's end, and ends all the rest: at the command's end, or when the
// host closes the lifeline, which it does by dying too.
func Supervise(args []string) (code int, mine bool) {
	if len(args) < 4 || args[0] != superviseName {
		return 0, false
	}
	memory, _ := strconv.ParseUint(args[1], 10, 64)
	args = args[2:]
	runtime.LockOSThread()
	adoptOrphans()
	closeOnExec(lifelineFD)
	syscall.CloseOnExec(lifelineFD)
	syscall.CloseOnExec(statusFD)
	// Whoever wants to end the host by name means the host. What is caught,
	// unlike what is ignored, is not passed on to the command.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	status := os.NewFile(statusFD, "status")
	shell, err := syscall.ForkExec(args[0], args[1:], &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	// The output ends when the command and its children have ended, whether
	// we are there or not.
	_ = syscall.Close(1)
	_ = syscall.Close(2)
	if err != nil {
		var no syscall.Errno
		_ = errors.As(err, &no)
		_, _ = fmt.Fprintf(status, "error %d\n", int(no))
		return 126, true
	}
	if memory > 0 {
		limitMemory(shell, memory)
	}
	all := family{root: os.Getpid(), session: os.Getpid(), spare: true}
	go func() { // ends with the process
		var b [1]byte
		for {
			if n, err := syscall.Read(lifelineFD, b[:]); n == 0 || err != nil && err != syscall.EINTR && err != syscall.EAGAIN {
				break
			}
		}
		all.kill()
	}()
	return hold(shell, all, status), true
}

// hold waits for the command and then ends everything else.
func hold(shell int, all family, status *os.File) int {
	code, ended := 0, false
	left := map[int]bool{}
	for {
		flags := 0
		if ended {
			flags = syscall.WNOHANG // is there anything else?
		}
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, flags, nil)
		if pid == 0 && err == nil {
			for _, p := range all.kill() {
				left[p] = true
			}
			pid, err = syscall.Wait4(-1, &ws, 0, nil)
		}
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil: // no child any more
			_, _ = fmt.Fprintf(status, "left %d\n", len(left))
			return code
		case pid != shell:
			continue
		}
		ended = true
		end := endOf(ws)
		code = end.Code
		if end.Signal != 0 {
			_, _ = fmt.Fprintf(status, "signal %d\n", int(end.Signal))
		} else {
			_, _ = fmt.Fprintf(status, "exit %d\n", end.Code)
		}
	}
}
