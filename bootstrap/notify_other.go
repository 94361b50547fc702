//go:build !linux

package bootstrap

import "time"

// sinceBoot is the clock that a service manager orders its signals by: none
// asks for it here.
func sinceBoot() (time.Duration, bool) { return 0, false }
