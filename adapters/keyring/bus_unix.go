//go:build !darwin && !windows

package keyring

import (
	"os"
	"path/filepath"
	"strconv"
)

// reachable reports whether there is a session bus to ask. Without this look
// the library would start one, which nobody asked for and nobody ends.
func reachable(bus string) bool {
	if bus != "" && bus != "autolaunch:" {
		return true
	}
	dir := filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
