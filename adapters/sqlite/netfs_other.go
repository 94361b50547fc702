//go:build !linux && !darwin

package sqlite

// networkFileSystem cannot be asked here.
func networkFileSystem(string) string { return "" }
