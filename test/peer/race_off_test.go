//go:build !race

package peer

// raced says that the tests run under the race detector; the agent then does.
const raced = false
