//go:build !race

package conformance

// raced says that the tests run with the race detector, and so the binary.
const raced = false
