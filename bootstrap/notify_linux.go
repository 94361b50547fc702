package bootstrap

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the clock that a service manager orders its signals by.
func sinceBoot() (time.Duration, bool) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, false
	}
	return time.Duration(now.Nano()), true
}
