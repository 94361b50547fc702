//go:build !linux

package bootstrap

// forgetVariables does nothing: this system has no file of a process's
// environment, or none that the process could change.
func forgetVariables([]string) error { return nil }
