//go:build darwin || windows

package keyring

// reachable reports true: the key store is part of the system.
func reachable(string) bool { return true }
