//go:build !linux

package acceptance

// becomeStage does nothing: machines are staged on Linux.
func becomeStage() {}
