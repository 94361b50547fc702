package bootstrap

import (
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// serviceManager is told how the daemon is, as sd_notify(3) has it.
type serviceManager struct {
	socket string
	// patience is how long it waits for a sign of life before it ends the
	// process; 0 is for ever.
	patience time.Duration
}

// findServiceManager takes what it said out of the environment: it is nothing
// to our children.
func findServiceManager() serviceManager {
	m := serviceManager{socket: os.Getenv("NOTIFY_SOCKET")}
	if pid := os.Getenv("WATCHDOG_PID"); pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64); err == nil && usec > 0 {
			m.patience = time.Duration(usec) * time.Microsecond
		}
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"} {
		_ = os.Unsetenv(name)
	}
	return m
}

// tellLimit is how long a manager may take to make room for what it is told.
const tellLimit = time.Second

// tell sends a state, for tellLimit at most. Without a manager it does nothing.
func (m serviceManager) tell(lines ...string) error {
	if m.socket == "" {
		return nil
	}
	name := m.socket
	if strings.HasPrefix(name, "@") {
		name = "\x00" + name[1:] // of the abstract name space
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(tellLimit)); err != nil {
		return err
	}
	_, err = c.Write([]byte(strings.Join(lines, "\n")))
	return err
}

// ready tells that the daemon serves.
func (m serviceManager) ready(status string) error { return m.tell("READY=1", "STATUS="+status) }

// reloading tells that the configuration is read again; ready follows. The
// time, which managers want that sent the signal themselves, says that it is
// about no earlier reload.
func (m serviceManager) reloading() error {
	lines := []string{"RELOADING=1"}
	if now, ok := sinceBoot(); ok {
		lines = append(lines, "MONOTONIC_USEC="+strconv.FormatInt(now.Microseconds(), 10))
	}
	return m.tell(lines...)
}

// leaving tells that the daemon ends and how long that may take.
func (m serviceManager) leaving(limit time.Duration) error {
	return m.tell("STOPPING=1", "STATUS=ending", "EXTEND_TIMEOUT_USEC="+strconv.FormatInt((limit+2*leaveLimit).Microseconds(), 10))
}

// reassure gives signs of life, twice in the time that the manager waits for
// one, each after works has returned, until over is closed.
func (m serviceManager) reassure(over <-chan struct{}, works func()) {
	if m.socket == "" || m.patience <= 0 {
		return
	}
	every := time.NewTicker(max(m.patience/2, time.Millisecond))
	defer every.Stop()
	for {
		works()
		_ = m.tell("WATCHDOG=1") // a manager that is not there ends nobody
		select {
		case <-every.C:
		case <-over:
			return
		}
	}
}
