// Package peer drives the built `berth acp` with an ACP client that we did not
// write, github.com/coder/acp-go-sdk, over stdio. Where the acceptance tests
// prove what Berth promises, these prove that somebody else's reading of the
// protocol meets ours: their decoding of our updates, their notion of order,
// their cancellation.
//
// The agent's standard error and exit code are part of every test: it must end
// by itself with code 0 when its input ends.
package peer
