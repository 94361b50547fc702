package bootstrap

import (
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// serviceManager is told how the daemon is, as sd_notify(3) has it.
type serviceManager struct{ socket string }

// findServiceManager takes the address out of the environment: it is nothing
// to our children.
func findServiceManager() serviceManager {
	socket := os.Getenv("NOTIFY_SOCKET")
	_ = os.Unsetenv("NOTIFY_SOCKET")
	return serviceManager{socket}
}

// tell sends a state. Without a manager it does nothing.
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
	_, err = c.Write([]byte(strings.Join(lines, "\n")))
	return err
}

// leaving tells that the daemon ends and how long that may take.
func (m serviceManager) leaving(limit time.Duration) error {
	return m.tell("STOPPING=1", "EXTEND_TIMEOUT_USEC="+strconv.FormatInt((limit+2*leaveLimit).Microseconds(), 10))
}
