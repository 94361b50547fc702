// Package conformance holds the binary against what the Agent Client Protocol
// demands of an agent, one test for each demand, named by its id:
//
//	TestTCK_ACP_INIT_001      a requirement of the protocol's official test kit
//	TestChecklist_007_...     a line of our own list of everything the
//	                          specification says an agent must do
//
// requirements_test.go lists the demands in our own words; complete_test.go
// proves that each has its test and that docs/conformance.md says so. A demand
// on a feature that this version does not offer stands in waits_test.go with
// the reason, and its test proves the absence: nothing advertised, -32601
// answered, nothing sent. When the feature comes, that test fails, and the
// demand is tested for real.
//
// Every test starts the binary afresh, as an editor does, and speaks to it by
// a script (adapters/jsonrpc/transcript; the model's part is one of
// adapters/llm/scripted) or byte by byte. watch_test.go holds whatever the
// agent sends in any of them against the rules that always apply. Where a case
// of test/acceptance shows a demand already, the test plays that file.
//
// With BERTH_ACP_SCHEMA set to the path of the protocol's published schema
// (its schema.json for version 1), every frame is checked against that too.
package conformance
