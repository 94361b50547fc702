// Package porttest holds the conformance suites of core/ports. An adapter is
// proven by a test of its own that hands a harness to the suite:
//
//	func TestStore(t *testing.T) {
//		porttest.Store(porttest.T(t), porttest.StoreHarness{Open: open, Reopen: reopen})
//	}
//
// Every case has a name and a rule; a failure prints the rule, so that it
// tells the author of an adapter what users would lose. The suites take the
// small TB instead of *testing.T so that mutants_test.go can run them over
// broken adapters and demand that they fail.
package porttest
