//go:build !linux

package sqlite

// lockHolder would name the process that holds the write lock, where that can
// be seen.
func lockHolder(string) string { return "" }
